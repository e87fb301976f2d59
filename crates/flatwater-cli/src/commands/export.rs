//! `flatwater export`: tables as CSV, JSON or SQL.
//!
//! Owns: what is exported, and the file it goes to. Invariants: all of it is of one point in time; a file has its name only when it is
//! whole. Leaves out: the SQL of a dump (`sql::dump`).

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use flatwater::{Database, Session};
use tempfile::NamedTempFile;

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::text::quoted;
use crate::output::{Format, Out};
use crate::place::Place;
use crate::sql::dump;
use crate::sql::runner::stream;

/// Write a database as SQL, or a table as CSV or JSON lines
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,

    /// The tables; all of them if none is named
    tables: Vec<String>,

    /// The form: `sql`, or `csv` and `jsonl` for one table
    #[arg(short = 'o', long, default_value = "sql")]
    format: Form,

    /// The file to write, which is replaced at the end; standard output if there is none
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Statements that make the database anew
    Sql,
    Csv,
    Jsonl,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let db = arguments.place.reader()?;
    interrupt::closes(&db)?;
    match &arguments.to {
        None => write(&db, arguments, &mut Out::stdout())?,
        Some(file) => {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let failed = || Failure::system(format!("writing {}", file.display()));
            let temporary = NamedTempFile::new_in(folder).map_err(failed())?;
            let mut out = Out::new(temporary.reopen().map_err(failed())?);
            write(&db, arguments, &mut out)?;
            temporary.as_file().sync_all().map_err(failed())?;
            temporary.persist(file).map_err(|error| error.error).map_err(failed())?;
        }
    }
    Ok(db.close().wait()?)
}

fn write(db: &Database, arguments: &Arguments, out: &mut Out) -> Outcome {
    let snapshot = db.snapshot().wait()?;
    let format = match arguments.format {
        Form::Sql => return dump::write(&snapshot, &arguments.tables, out),
        Form::Csv => Format::Csv,
        Form::Jsonl => Format::Jsonl,
    };
    let [table] = &arguments.tables[..] else {
        return Err(Failure::Usage("name one table: this format has no place for several".to_owned()));
    };
    whole_table(&snapshot, table, format, out)
}

fn whole_table(of: &Session, table: &str, format: Format, out: &mut Out) -> Outcome {
    stream(of, &format!("SELECT * FROM {}", quoted(table)), &mut *format.sink(true), out)
}
