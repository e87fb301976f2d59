//! The oracle: plain SQLite on its own copy, opened and queried in the same way as Flatwater.
//!
//! One connection writes and another one reads, as in Flatwater, and the file is switched to WAL mode where Flatwater
//! switches it. In a rollback journal mode one connection does both, as in Flatwater: the answers of a damaged file
//! depend on what its connection read and wrote before. A statement that exceeds the limit is interrupted, and its
//! result is not compared.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags, Result};

use super::answer::{Answer, Cell};
use super::ask::Ask;
use super::way::Way;

const LIMIT: Duration = Duration::from_secs(2);
const LOOK_STEPS: i32 = 1000;

pub(super) struct Plain {
    path: PathBuf,
    way: Way,
    /// The connection that writes, if any.
    writer: Option<Connection>,
    /// Opened by the first read, unless the writer's connection is the only one.
    reader: Option<Connection>,
    writer_reads: bool,
}

impl Plain {
    /// Opens the file and reads the schema.
    pub(super) fn open(path: &Path, way: Way) -> Result<Self, Answer> {
        let connection = connect(path, way, !way.only_reads())?;
        let writer_reads = !way.only_reads() && journal_mode(&connection)? != "wal";
        let (writer, reader) = if way.only_reads() { (None, Some(connection)) } else { (Some(connection), None) };
        Ok(Self { path: path.to_owned(), way, writer, reader, writer_reads })
    }

    /// Returns whether SQLite's own check reports a cell that extends beyond the end of its page.
    pub(super) fn has_cells_beyond_pages(&mut self) -> bool {
        let Ok(reader) = self.reader() else { return false };
        let Ok(mut check) = reader.prepare("PRAGMA integrity_check(1000000)") else { return false };
        let Ok(mut found) = check.query([]) else { return false };
        // The check may end with an error caused by the cell.
        while let Ok(Some(row)) = found.next() {
            let text = row.get_ref(0).ok().and_then(|text| text.as_str().ok()).unwrap_or_default();
            if text.contains("Extends off end of page") || text.contains(": Offset ") {
                return true;
            }
        }
        false
    }

    pub(super) fn ask(&mut self, ask: &Ask) -> Answer {
        match self.answer(ask) {
            Ok(answer) => answer,
            Err(error) => error.into(),
        }
    }

    fn answer(&mut self, ask: &Ask) -> Result<Answer> {
        match ask {
            Ask::Read(text) => rows(self.reader()?, text),
            Ask::Check(text) => rows(self.reader()?, text).map(Answer::sorted),
            Ask::Write(text) => self.write(|writer| done(writer, text)),
            Ask::Batch(texts) | Ask::Transaction(texts, true) => self.write(|writer| together(writer, texts, "COMMIT")),
            Ask::Transaction(texts, false) => self.write(|writer| together(writer, texts, "ROLLBACK")),
            Ask::Checkpoint => self.write(checkpoint),
            Ask::Endless(_) => Ok(Answer::NotKnown("it would never end".into())),
        }
    }

    fn reader(&mut self) -> Result<&Connection> {
        if self.reader.is_none() && !self.writer_reads {
            self.reader = Some(connect(&self.path, self.way, false)?);
        }
        let connection = if self.writer_reads { &mut self.writer } else { &mut self.reader };
        let reader = connection.as_mut().expect("it was opened");
        limit(reader)?;
        Ok(reader)
    }

    fn write(&mut self, write: impl FnOnce(&Connection) -> Result<Answer>) -> Result<Answer> {
        let writer = self.writer.as_mut().expect("nothing is written where it is only read");
        limit(writer)?;
        let answer = write(writer);
        if !writer.is_autocommit() {
            writer.execute_batch("ROLLBACK")?;
        }
        answer
    }

    /// Closes the file, as its last user.
    pub(super) fn close(mut self) {
        drop(self.reader.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}

fn connect(path: &Path, way: Way, writes: bool) -> Result<Connection> {
    let rights = if writes { OpenFlags::SQLITE_OPEN_READ_WRITE } else { OpenFlags::SQLITE_OPEN_READ_ONLY };
    let flags = rights | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut plain = match way {
        // SQLite would read the file without them, and Flatwater does not.
        Way::Immutable if has_left_over(path) => return Err(rusqlite::Error::InvalidPath(path.to_owned())),
        Way::Immutable => Connection::open_with_flags(uri_immutable(path), flags | OpenFlags::SQLITE_OPEN_URI)?,
        _ => Connection::open_with_flags(path, flags)?,
    };
    limit(&mut plain)?;
    plain.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if way == Way::Untrusted {
        distrust(&plain)?;
    }
    let mode = journal_mode(&plain)?;
    if writes && way.switches_to_wal() && mode != "wal" {
        // Read all rows: the statement commits only at its end.
        rows(&plain, "PRAGMA main.journal_mode = wal")?;
    }
    plain.execute_batch(&format!(
        "SELECT 1 FROM main.sqlite_schema LIMIT 1; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;
         PRAGMA wal_autocheckpoint = 0; PRAGMA mmap_size = {}",
        way.mapped_bytes()
    ))?;
    if writes {
        plain.execute_batch("PRAGMA cache_spill = OFF")?;
        if journal_mode(&plain)? == "wal" {
            // Flatwater also tests whether it can write.
            plain.execute_batch("BEGIN IMMEDIATE; ROLLBACK")?;
        }
    }
    Ok(plain)
}

/// Sets what Flatwater sets for a file that is not trusted.
fn distrust(plain: &Connection) -> Result<()> {
    plain.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    plain.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, 16 << 20),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (Limit::SQLITE_LIMIT_COLUMN, 500),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 50),
        (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 20),
    ] {
        plain.set_limit(limit, most)?;
    }
    plain.execute_batch("PRAGMA cell_size_check = ON")
}

/// Returns true if a WAL with frames or a hot journal is beside the file.
fn has_left_over(path: &Path) -> bool {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        std::fs::read(name).unwrap_or_default()
    };
    beside("-wal").len() > 32 || beside("-journal").first().is_some_and(|first| *first != 0)
}

fn journal_mode(plain: &Connection) -> Result<String> {
    plain.query_row("PRAGMA main.journal_mode", [], |row| row.get(0))
}

/// Returns the path as a URI, with each byte that has a meaning in URIs percent-encoded.
fn uri_immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri + "?immutable=1"
}

/// From now on the connection interrupts statements that exceed the limit.
fn limit(plain: &mut Connection) -> Result<()> {
    let until = Instant::now() + LIMIT;
    plain.progress_handler(LOOK_STEPS, Some(move || Instant::now() >= until))
}

fn rows(plain: &Connection, text: &str) -> Result<Answer> {
    let mut statement = plain.prepare(text)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push((0..columns).map(|column| row.get_ref(column).map(Cell::from)).collect::<Result<_>>()?);
    }
    Ok(Answer::Rows(all))
}

fn done(plain: &Connection, text: &str) -> Result<Answer> {
    let before = plain.total_changes();
    let mut statement = plain.prepare(text)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    drop(rows);
    // A statement that changes no row does not reset `changes()`.
    let changed = if plain.total_changes() == before { 0 } else { plain.changes() };
    Ok(Answer::Done(changed))
}

/// The PRAGMA reads the schema and its encoding first, which Flatwater's call does not.
fn checkpoint(plain: &Connection) -> Result<Answer> {
    let is_of_the_schema =
        |error: &str| ["malformed database schema", "text encoding"].iter().any(|part| error.contains(part));
    match plain.query_row("PRAGMA main.wal_checkpoint(TRUNCATE)", [], |_| Ok(Answer::Done(0))) {
        Err(error) if is_of_the_schema(&error.to_string()) => Ok(Answer::NotKnown(error.to_string())),
        done => done,
    }
}

fn together(plain: &Connection, texts: &[String], end: &str) -> Result<Answer> {
    plain.execute_batch("BEGIN IMMEDIATE")?;
    let mut changes = 0;
    for text in texts {
        if let Answer::Done(changed) = done(plain, text)? {
            changes += changed;
        }
    }
    plain.execute_batch(end)?;
    Ok(Answer::Done(changes))
}
