//! The results of each write of a part, in a file that survives the part.
//!
//! A part writes a complete line before it does anything else. So a part that is killed received the results in its
//! file, and at most one more for each of its tasks.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// One result. The numbers are row numbers, except for `Counted`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Line {
    /// The write was done.
    Acknowledged(i64),
    /// The write was not done, and never will be.
    Denied(i64),
    /// It is unknown whether the write was done.
    Unknown(i64),
    /// The counter was raised to this value.
    Counted(i64),
}

pub(super) struct Ledger(File);

impl Ledger {
    pub(super) fn create(directory: &Path, incarnation: u32) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().append(true).create_new(true).open(file(directory, incarnation))?))
    }

    pub(super) fn note(&self, line: Line) -> io::Result<()> {
        let (what, number) = match line {
            Line::Acknowledged(id) => ('a', id),
            Line::Denied(id) => ('d', id),
            Line::Unknown(id) => ('u', id),
            Line::Counted(value) => ('c', value),
        };
        (&self.0).write_all(format!("{what} {number}\n").as_bytes())
    }
}

/// The results of all parts.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) acknowledged: BTreeSet<i64>,
    pub(super) denied: BTreeSet<i64>,
    pub(super) unknown: BTreeSet<i64>,
    /// With duplicates. A correct database produces none.
    pub(super) counted: Vec<i64>,
}

impl Told {
    /// Reads the results of all parts that ever ran in this directory.
    pub(super) fn read(directory: &Path, incarnations: u32) -> io::Result<Self> {
        let mut told = Self::default();
        for incarnation in 0..incarnations {
            match fs::read_to_string(file(directory, incarnation)) {
                Ok(text) => told.take(&text),
                // The part was killed before it began, or had no result.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(told)
    }

    /// A last line without a line end was not acknowledged.
    fn take(&mut self, text: &str) {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            let (what, number) = line.split_once(' ').expect("a letter and a number");
            let number = number.parse().expect("a number");
            match what {
                "a" => drop(self.acknowledged.insert(number)),
                "d" => drop(self.denied.insert(number)),
                "u" => drop(self.unknown.insert(number)),
                _ => self.counted.push(number),
            }
        }
    }
}

fn file(directory: &Path, incarnation: u32) -> PathBuf {
    directory.join(format!("ledger-{incarnation}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_read_again_and_half_a_line_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let ledger = Ledger::create(directory.path(), 1).unwrap();
        for line in [Line::Acknowledged(3), Line::Denied(4), Line::Unknown(5), Line::Counted(6), Line::Counted(6)] {
            ledger.note(line).unwrap();
        }
        (&ledger.0).write_all(b"a 70").unwrap();
        let told = Told::read(directory.path(), 2).unwrap();
        assert!(told.acknowledged.iter().eq(&[3]) && told.denied.iter().eq(&[4]) && told.unknown.iter().eq(&[5]));
        assert_eq!(told.counted, [6, 6]);
    }
}
