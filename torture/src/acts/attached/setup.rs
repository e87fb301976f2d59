//! The files of a round: the main one and those that are attached, all with the same tables.
//!
//! Leaves out: what is done to them.

use std::path::PathBuf;

use flatwater::rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// `counter`: each value is answered to one writer. `pair`: rows that are only changed together. `item`: rows that come
/// and go. Tables `extra_N` and indexes `item_N` come and go too.
const SCHEMA: &str = "
    PRAGMA journal_mode = wal;
    CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
    INSERT INTO counter VALUES (1, 0);
    CREATE TABLE pair (id INTEGER PRIMARY KEY, n INTEGER NOT NULL);
    INSERT INTO pair VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (8, 0);
    CREATE TABLE item (id INTEGER PRIMARY KEY, n INTEGER UNIQUE, body TEXT);";

/// The number of rows of `pair`.
pub(super) const PAIRED: i64 = 8;
/// How many tables `extra_N`, and how many indexes `item_N` there may be in a file.
pub(super) const EXTRA: usize = 3;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Setup {
    pub(super) directory: PathBuf,
    /// The main one included, which is number 0.
    pub(super) files: usize,
}

impl Setup {
    pub(super) fn path(&self, file: usize) -> PathBuf {
        self.directory.join(format!("{}.db", schema(file)))
    }

    /// Creates the files.
    pub(super) fn make(&self) -> Result<(), Finding> {
        (0..self.files).try_for_each(|file| Ok(Connection::open(self.path(file))?.execute_batch(SCHEMA)?))
    }

    /// Opens all files on one connection of plain SQLite.
    pub(super) fn plain(&self) -> Result<Connection, Finding> {
        let plain = Connection::open(self.path(0))?;
        for file in 1..self.files {
            plain.execute(&format!("ATTACH ? AS {}", schema(file)), [self.path(file).to_str()])?;
        }
        Ok(plain)
    }
}

/// Returns the name of the file's schema where all files are open.
pub(super) fn schema(file: usize) -> String {
    if file == 0 { "main".to_owned() } else { format!("beside{file}") }
}
