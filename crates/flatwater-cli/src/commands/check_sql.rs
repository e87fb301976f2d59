//! `flatwater check-sql`: whether the SQL in the sources of a program can run on the schema that its migrations make.
//!
//! Owns: which schema checks which text. Invariants: no database is needed, and none is changed; the same sources give the same output.
//! Leaves out: finding texts (`checking`), and what is checked (`flatwater-check`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flatwater_check::{Checked, Fault, Project, Schema};

use crate::checking::report::{self, Form};
use crate::checking::{Finding, Text, files, texts};
use crate::failure::{Failure, Outcome};

/// Check the SQL in the sources of a program against its migrations
///
/// Looks at files of SQL, at `query!` and its kin in Rust, and in TypeScript, JavaScript and Python at literals that are the first
/// argument of a call of Flatwater, also templates with the tag `sql`. Needs no database: the schema is what the migrations make. Exits
/// with 3 if there is a fault.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files and folders with sources
    #[arg(default_value = ".")]
    paths: Vec<PathBuf>,

    /// The folder of `flatwater.toml`, or of the folder `migrations`
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    project: PathBuf,

    /// How faults are printed
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,

    /// Report scans of whole tables too, and foreign keys without an index
    #[arg(long)]
    plan: bool,
}

/// The schemas of a program, each built when it is first needed.
struct Schemas {
    project: Project,
    built: BTreeMap<Option<String>, Schema>,
}

impl Schemas {
    fn get(&mut self, name: Option<&str>) -> Result<&mut Schema, Fault> {
        let key = name.map(str::to_owned);
        if !self.built.contains_key(&key) {
            let schema = Schema::new(self.project.database(name)?)?;
            self.built.insert(key.clone(), schema);
        }
        self.built.get_mut(&key).ok_or_else(|| unreachable!("it was just inserted"))
    }
}

/// A fault of the project is none of its SQL.
pub(super) fn refused(fault: Fault) -> Failure {
    let hint = fault.hint.map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
    Failure::Refused(format!("{}{hint}", fault.message))
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let project = Project::of(&arguments.project).map_err(refused)?;
    let databases = std::iter::once(&project.main).chain(project.others.values());
    let migrations: Vec<PathBuf> = databases.flat_map(|database| database.folders()).map(Path::to_owned).collect();
    let mut schemas = Schemas { project, built: BTreeMap::new() };
    schemas.get(None).map_err(refused)?;
    let mut findings = Vec::new();
    if arguments.plan {
        let of_main = shown(&migrations[0]).to_owned();
        findings.extend(schemas.get(None).and_then(|schema| unindexed(schema, &of_main)).map_err(refused)?);
    }
    for path in files::files(&arguments.paths, &migrations)? {
        // What is not text has no SQL.
        let Ok(content) = std::fs::read_to_string(&path) else { continue };
        for text in texts(&path, &content) {
            let faults = check(&mut schemas, &text, arguments.plan);
            findings.extend(faults.into_iter().map(|fault| Finding::of(shown(&path), &content, &text, fault)));
        }
    }
    report::print(&findings, arguments.format);
    if findings.is_empty() { Ok(()) } else { Err(Failure::Found) }
}

fn shown(path: &Path) -> &Path {
    path.strip_prefix(".").unwrap_or(path)
}

fn check(schemas: &mut Schemas, text: &Text, plan: bool) -> Vec<Fault> {
    let checked = schemas.get(text.database.as_deref()).and_then(|schema| schema.check(&text.sql));
    match checked {
        Ok(checked) if plan => scans(&checked),
        Ok(_) => Vec::new(),
        // What stands in a template may be SQL, and not a value.
        Err(fault) if text.has_parts && fault.offset.is_some() && fault.message.ends_with("syntax error") => Vec::new(),
        Err(fault) => vec![fault],
    }
}

fn scans(checked: &Checked) -> Vec<Fault> {
    let scan = |table: &String| Fault {
        message: format!("every row of {table} is read"),
        hint: Some("an index of what it is searched by may help".to_owned()),
        offset: None,
    };
    checked.scans.iter().map(scan).collect()
}

fn unindexed(schema: &Schema, project: &Path) -> Result<Vec<Finding>, Fault> {
    let finding = |(table, columns): (String, Vec<String>)| {
        let (name, list) = (columns.join("_"), columns.join(", "));
        Finding {
            path: project.to_owned(),
            line: 1,
            column: 1,
            message: format!("the foreign key ({list}) of {table} has no index"),
            hint: Some(format!(
                "deleting a parent reads every row: CREATE INDEX {table}_by_{name} ON {table} ({list})"
            )),
        }
    };
    Ok(schema.unindexed_foreign_keys()?.into_iter().map(finding).collect())
}
