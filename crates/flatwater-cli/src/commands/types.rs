//! `flatwater types`: typed functions made of files of SQL, and types of tables.
//!
//! Owns: which files are read and written. Invariant: with `--check` nothing is written. Leaves out: the code (`generating`).

use std::path::{Path, PathBuf};

use flatwater_check::{Fault, Project, Schema};

use super::check_sql::refused;
use crate::checking::report::{self, Form};
use crate::checking::{Finding, Text, files};
use crate::failure::{Failure, Outcome};
use crate::generating::queries::queries;
use crate::generating::{kysely, python, rust, typescript};

/// Make typed functions of files of SQL
///
/// Above each query stands `-- name: GetUser :one`; the other commands are `:optional`, `:many`, `:exec`, `:execrows` and `:execlastid`.
/// The types are those of the schema that the migrations make. Exits with 3 if a query is wrong, or with `--check` a file is out of date.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files of SQL, and folders with them
    #[arg(default_value = "queries")]
    paths: Vec<PathBuf>,

    /// The folder of `flatwater.toml`, or of the folder `migrations`
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    project: PathBuf,

    /// Write a module in TypeScript
    #[arg(long, value_name = "FILE")]
    typescript: Option<PathBuf>,

    /// Write a module in Python
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,

    /// Write a module in Rust
    #[arg(long, value_name = "FILE")]
    rust: Option<PathBuf>,

    /// Write the interface `Database` for Kysely
    #[arg(long, value_name = "FILE")]
    kysely: Option<PathBuf>,

    /// Read columns as what they were declared: dates, booleans, JSON
    #[arg(long)]
    standard: bool,

    /// Write nothing, and say which files are out of date
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let project = Project::of(&arguments.project).map_err(refused)?;
    let mut schema = Schema::new(&project.main).map_err(refused)?;
    let mut made = Vec::new();
    if let Some(path) = &arguments.kysely {
        made.push((path, kysely(&schema.tables().map_err(refused)?, arguments.standard)));
    }
    if arguments.typescript.is_some() || arguments.python.is_some() || arguments.rust.is_some() {
        let queries = read(&mut schema, &arguments.paths)?;
        let of = |path: &Option<PathBuf>, code: &dyn Fn() -> String| path.clone().map(|path| (path, code()));
        let standard = arguments.standard;
        let typescript = of(&arguments.typescript, &|| typescript(&queries, standard));
        let python = of(&arguments.python, &|| python(&queries, standard));
        let rust = of(&arguments.rust, &|| rust(&queries));
        for (path, code) in [typescript, python, rust].into_iter().flatten() {
            write(arguments, &path, &code)?;
        }
    } else if made.is_empty() {
        return Err(Failure::Usage("name a file to write: --typescript, --python, --rust or --kysely".to_owned()));
    }
    made.drain(..).try_for_each(|(path, code)| write(arguments, path, &code))
}

fn write(arguments: &Arguments, path: &Path, code: &str) -> Outcome {
    if !arguments.check {
        return std::fs::write(path, code).map_err(Failure::system(format!("writing {}", path.display())));
    }
    if std::fs::read_to_string(path).is_ok_and(|present| present == code) {
        return Ok(());
    }
    say!("{} is out of date: run `flatwater types`", path.display());
    Err(Failure::Found)
}

/// The queries of all files, if none of them is wrong.
fn read(schema: &mut Schema, paths: &[PathBuf]) -> Outcome<Vec<crate::generating::queries::Query>> {
    let (mut all, mut findings) = (Vec::new(), Vec::new());
    for path in files::files(paths, &[])?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "sql")) {
        let failed = Failure::system(format!("reading {}", path.display()));
        let content = std::fs::read_to_string(&path).map_err(failed)?;
        let (queries, faults) = queries(schema, &content);
        all.extend(queries);
        let text = Text::of_file(&content);
        let finding = |fault: Fault| Finding::of(&path, &content, &text, fault);
        findings.extend(faults.into_iter().map(finding));
    }
    report::print(&findings, Form::Text);
    if findings.is_empty() { Ok(all) } else { Err(Failure::Found) }
}
