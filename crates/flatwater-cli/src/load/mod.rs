//! Rows of a file into a table.
//!
//! Owns: the way from a file to the table: a source fills chunks on the main thread, and another thread inserts them. Leaves out: the
//! arguments (`commands::import`, `shell`).

pub(crate) mod chunk;
mod csv;
mod insert;
mod jsonl;
mod pace;
pub(crate) mod table;

use std::io::Read;
use std::sync::mpsc::sync_channel;

use flatwater::Database;

use self::chunk::{Chunk, Source};
use self::insert::Insert;
use self::table::Conflict;
use crate::failure::{Failure, Outcome};

/// What is read, and how.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// Where it comes from, in messages.
    pub(crate) name: String,
    pub(crate) form: Form,
    pub(crate) separator: u8,
    pub(crate) headers: bool,
    /// An empty field is NULL, and not an empty text.
    pub(crate) empty_is_null: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Lines of values, with quotes as RFC 4180 has them
    Csv,
    /// An object on each line
    Jsonl,
}

/// What becomes of the rows.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) table: String,
    pub(crate) creates: bool,
    /// Types of columns, in the place of those that the values suggest.
    pub(crate) types: Vec<(String, String)>,
    pub(crate) conflict: Conflict,
    /// All rows in one transaction.
    pub(crate) atomic: bool,
}

/// Reads all rows into the table, and returns how many there were.
pub(crate) fn import(db: &Database, from: impl Read + Send + 'static, input: &Input, target: &Target) -> Outcome<u64> {
    let mut source: Box<dyn Source> = match input.form {
        Form::Csv => Box::new(csv::Csv::new(from, input)?),
        Form::Jsonl => Box::new(jsonl::Jsonl::new(from)),
    };
    let mut first = Chunk::default();
    let mut read = source.fill(&mut first);
    if target.atomic || first.is_empty() {
        read.map_err(|error| error.in_file(&input.name))?;
        read = Ok(());
    }
    if source.columns().is_empty() && first.is_empty() {
        return Ok(0);
    }
    let sql = table::prepared(db, source.columns(), &first, target)?;
    let insert = Insert::new(db, sql, target.atomic);
    let (send, chunks) = sync_channel::<Chunk>(2);
    std::thread::scope(|scope| {
        let inserted = scope.spawn(move || insert.all(&chunks));
        let mut chunk = first;
        while !chunk.is_empty() {
            if send.send(chunk).is_err() || read.is_err() {
                break;
            }
            chunk = Chunk::default();
            read = source.fill(&mut chunk);
            // The rows before the line that cannot be read stay, or the end of the rows undoes all.
            if read.is_err() && target.atomic {
                chunk = Chunk::broken();
            }
        }
        drop(send);
        let inserted = inserted.join().expect("the inserting thread does not panic");
        match (read, inserted) {
            // A row that was refused stands before the line.
            (Err(_), Err(failed)) if !target.atomic => Err(failed.in_file(&input.name)),
            (Err(error), inserted) => {
                let rows = inserted.as_ref().map_or(0, |rows| *rows);
                Err(error.in_file(&format!("{} ({rows} rows are in the table)", input.name)))
            }
            (Ok(()), Ok(rows)) => Ok(rows),
            (Ok(()), Err(failed)) => Err(failed.in_file(&input.name)),
        }
    })
}

/// Why a file cannot be read any further.
#[derive(Debug)]
pub(crate) struct ReadError {
    pub(crate) line: Option<u64>,
    pub(crate) message: String,
}

impl ReadError {
    fn in_file(self, name: &str) -> Failure {
        let line = self.line.map_or_else(String::new, |line| format!(", line {line}"));
        Failure::System(format!("reading {name}{line}"), std::io::Error::other(self.message))
    }
}
