//! One use of a large value on a connection: its length, a part of it, or bytes written over a part of it.
//!
//! Owns: SQLite's incremental I/O for one use, and what it changed. Runs on the thread that has the connection, in the
//! transaction that is open or in one of its own. Invariants: no handle of SQLite outlives a use, so that none keeps a
//! snapshot or a lock; a value that has another length than before is not used; a write is recorded. Leaves out: the
//! position of a caller in the value, and transactions.
//!
//! SQLite looks the names up in the schema that the connection has in memory, and does not read it again for a name
//! that is not there (`sqlite3_blob_open` calls `sqlite3LocateTable`, and compares the cookie only afterwards).

use std::sync::Arc;

use flatwater_sqlite::Sqlite;
use rusqlite::{Connection, ffi};

use crate::connection::EngineConnection;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_sql::dependencies::Columns;
use flatwater_sql::dependencies::change::{TableWrites, Writes};
use flatwater_sql::policy;

/// Which value: that of a column in the row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobPlace {
    /// The schema: `main`, or an attached name.
    pub(crate) database: String,
    pub(crate) table: String,
    pub(crate) column: String,
    pub(crate) rowid: i64,
}

/// One use of a value.
pub(crate) struct BlobUse {
    pub(crate) place: Arc<BlobPlace>,
    pub(crate) step: BlobStep,
}

/// What is done with a value. The length is that which it must have.
pub(crate) enum BlobStep {
    Open,
    /// Ends with the value.
    Read {
        at: usize,
        bytes: usize,
        length: usize,
    },
    Write {
        at: usize,
        bytes: Vec<u8>,
        length: usize,
    },
}

/// What a use came to.
pub(crate) struct BlobUsed {
    pub(crate) place: Arc<BlobPlace>,
    pub(crate) length: usize,
    /// What was read.
    pub(crate) bytes: Vec<u8>,
}

impl BlobUse {
    pub(crate) fn open(database: &str, table: &str, column: &str, rowid: i64) -> Self {
        let (database, table, column) = (database.to_owned(), table.to_owned(), column.to_owned());
        Self { place: Arc::new(BlobPlace { database, table, column, rowid }), step: BlobStep::Open }
    }

    pub(crate) fn only_reads(&self) -> bool {
        !matches!(self.step, BlobStep::Write { .. })
    }
}

/// Uses the value. A write is recorded, and committed with the transaction that is open.
pub(crate) fn use_blob(connection: &mut EngineConnection, blob: &BlobUse) -> Result<BlobUsed> {
    let used = run(&connection.sqlite, blob).or_else(|error| {
        if error.sqlite_code() != Some(ffi::SQLITE_ERROR) || !error.message().starts_with("no such") {
            return Err(error);
        }
        connection.schema.load_newest(&mut connection.sqlite)?;
        run(&connection.sqlite, blob)
    });
    if !blob.only_reads() {
        let writes =
            if connection.recording.is_on() { writes(&connection.sqlite, &blob.place) } else { Writes::Everything };
        connection.recording.wrote(&writes);
    }
    used.map_err(|error| explain(error, &blob.place))
}

fn run(sqlite: &Sqlite, blob: &BlobUse) -> Result<BlobUsed> {
    let BlobPlace { database, table, column, rowid } = &*blob.place;
    if !blob.only_reads() && table.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("sqlite_")) {
        return Err(Error::new(
            ErrorCode::ReadOnly,
            format!("the table {table} belongs to SQLite, and its values are not written"),
        ));
    }
    let (database, table, column) = (&**database, &**table, &**column);
    let open = |sqlite| Connection::blob_open(sqlite, database, table, column, *rowid, blob.only_reads());
    let mut value = sqlite.patiently_with(open)?;
    let found = value.len();
    let mut read = Vec::new();
    match &blob.step {
        BlobStep::Open => {}
        BlobStep::Read { length, .. } | BlobStep::Write { length, .. } if *length != found => {
            return Err(replaced(*length, found));
        }
        BlobStep::Read { at, bytes, length } => {
            let at = (*at).min(*length);
            read = vec![0; (*bytes).min(length - at)];
            value.read_at_exact(&mut read, at)?;
        }
        BlobStep::Write { at, bytes, .. } => value.write_at(bytes, *at).map_err(|error| match error {
            rusqlite::Error::BlobSizeError => too_long(found),
            error => error.into(),
        })?,
    }
    value.close()?;
    Ok(BlobUsed { place: blob.place.clone(), length: found, bytes: read })
}

/// Returns what a write changes, by the names that the schema has.
fn writes(sqlite: &Sqlite, place: &BlobPlace) -> Writes {
    let sql = "SELECT t.name, c.name FROM pragma_table_list AS t, pragma_table_info(t.name, t.schema) AS c
               WHERE t.schema = ?1 COLLATE NOCASE AND t.name = ?2 COLLATE NOCASE AND c.name = ?3 COLLATE NOCASE";
    let names = (&place.database, &place.table, &place.column);
    let before = sqlite.hooks().authorizer.set_policy(policy::trusted);
    let found = sqlite.rusqlite().query_row(sql, names, |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    sqlite.hooks().authorizer.set_policy(before);
    let Ok((table, column)) = found else { return Writes::Everything };
    Writes::Tables(vec![TableWrites {
        database: place.database.to_ascii_lowercase().into(),
        table: table.into(),
        has_other_rows: false,
        columns: Columns::Some(vec![column.into()]),
        // SQLite calls no update hook for it.
        is_unreported: true,
    }])
}

#[cold]
fn replaced(before: usize, now: usize) -> Error {
    Error::new(
        ErrorCode::BlobReplaced,
        format!("the value was replaced since the blob was opened: it had {before} bytes, and has {now}"),
    )
    .with_hint("open the blob again; to read all of it as of one point in time, open it in a snapshot or a transaction")
}

#[cold]
fn too_long(length: usize) -> Error {
    Error::new(ErrorCode::BlobBounds, format!("a write would end after the end of the blob, which has {length} bytes"))
        .with_hint("a blob keeps its length; to make it longer, update the row, for instance with `zeroblob(length)`")
}

/// Says what SQLite does not. Its message quotes the rowid, which is a value.
#[cold]
fn explain(error: Error, place: &BlobPlace) -> Error {
    let message = error.message();
    if message.starts_with("no such rowid") {
        let message = format!("the table {} has no row with this rowid", place.table);
        return Error::new(ErrorCode::NoBlob, message);
    }
    if message.starts_with("cannot open value of type") {
        return error.with_hint("a blob is a BLOB or a TEXT; to write one in parts, insert `zeroblob(length)` first");
    }
    if message.starts_with("cannot open") {
        return error.with_hint(hint!["use " Query " and " Execute]);
    }
    error
}
