//! What is printed: the formats of results, and how they reach the output.
//!
//! Owns: the list of formats, and the one way from rows to bytes. Invariants: a result is written in batches, and never held whole;
//! nothing is copied but into the buffer that is written. Leaves out: the formats themselves, a file each.

mod csv;
pub(crate) mod json;
mod out;
pub(crate) mod style;
mod table;
pub(crate) mod text;

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use flatwater::Rows;

use crate::failure::Outcome;
pub(crate) use csv::Csv;
pub(crate) use out::Out;
pub(crate) use table::Borders;

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table with lines of `-` and `|`
    #[value(alias = "column")]
    Table,
    /// A table with lines of box-drawing characters
    Box,
    /// A table as Markdown has it
    Markdown,
    /// An array of objects for each result
    Json,
    /// An object on a line for each row
    Jsonl,
    /// Values with commas between, as RFC 4180 has it
    Csv,
    /// Values with tabs between, as they are
    Tabs,
    /// Values with `|` between, as they are
    List,
    /// A value on a line, with the name of its column
    Line,
}

impl Format {
    /// The format for people on a terminal, and for programs otherwise.
    pub(crate) fn of_output() -> Self {
        if std::io::stdout().is_terminal() { Self::Box } else { Self::Csv }
    }

    pub(crate) fn sink(self, headers: bool) -> Box<dyn Sink> {
        match self {
            Self::Table => Box::new(table::Table::new(Borders::Ascii, headers)),
            Self::Box => Box::new(table::Table::new(Borders::Unicode, headers)),
            Self::Markdown => Box::new(table::Table::new(Borders::Markdown, headers)),
            Self::Json => Box::new(json::Json::array()),
            Self::Jsonl => Box::new(json::Json::lines()),
            Self::Csv => Box::new(Csv::new(b',', true, headers)),
            Self::Tabs => Box::new(Csv::new(b'\t', false, headers)),
            Self::List => Box::new(Csv::new(b'|', false, headers)),
            Self::Line => Box::new(table::Lines::default()),
        }
    }
}

/// One format, as it writes one result: `begin`, `rows` as often as there are batches, `end`.
pub(crate) trait Sink {
    /// Begins a result with these columns.
    fn begin(&mut self, columns: &[&str], out: &mut Out) -> Outcome;

    fn rows(&mut self, rows: &Rows, out: &mut Out) -> Outcome;

    fn end(&mut self, out: &mut Out) -> Outcome;
}

/// Prints a line that is no result. If its reader went away, the process ends, as other programs do.
pub(crate) fn line(text: std::fmt::Arguments<'_>) {
    if writeln!(std::io::stdout(), "{text}").is_err() {
        std::process::exit(0);
    }
}
