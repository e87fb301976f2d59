//! Running a statement under the newest schema.
//!
//! Owns: what happens when the schema in memory is found to be older than that of the files. Runs on the thread that uses the
//! connection, which may block. Invariant: a statement runs again only if its program did not run. Leaves out: compiling a
//! stable statement again (`stable`), and the schema that an inline run may use, which is the engine's.
//!
//! SQLite compares the schema in memory with the file when the program of a statement begins. An error while it compiles comes
//! before that, and only for some of them it compares the schema then (`checkSchema` in `sqlite3Prepare`): not for an INSERT with
//! more values than the table had columns, for example. A cached statement is compiled in its first step after something
//! has expired it:
//!
//! | this connection | another connection |
//! |---|---|
//! | | `ALTER TABLE t ADD COLUMN e` |
//! | runs something: loads the schema with `e` | |
//! | | `ALTER TABLE t DROP COLUMN e` |
//! | steps `INSERT INTO t VALUES (?)`: "t has 2 columns" | |

use std::ffi::CStr;

use rusqlite::ffi;

use super::Sqlite;
use super::prepare::Prepared;
use super::snapshot_wait::patiently;
use super::stable::prepare_again;
use crate::error::{Error, Result, SqliteError};
use crate::hooks::authorizer::allow_all;
use crate::statements::StatementId;
use crate::statements::sink::Discard;

/// So often SQLite tries a statement again whose schema changes (SQLITE_MAX_SCHEMA_RETRY).
const TRIES: u32 = 50;

/// It begins the snapshot of the main database, and SQLite compares the schema in it.
const OF_MAIN: &str = "SELECT 0 FROM main.sqlite_schema LIMIT 0";

/// Without a table there is no column: an error for which SQLite compares the schemas of all databases, and drops from memory
/// those that are older. It ends the snapshots that it begins for this (`schemaIsValid`).
const OF_ALL: &str = "SELECT a";

/// Makes the connection drop from memory each schema, of the main database or an attached one, that is older than that of the
/// file. To be called after an error of a text that may fit the newest schema. May wait for a snapshot of the main database, as a
/// statement does.
///
/// # Errors
/// Returns the error of the main database, which cannot be read.
pub fn drop_older_schemas(connection: &mut Sqlite) -> Result<()> {
    let before = connection.hooks().authorizer.set_policy(allow_all);
    let of_main = read_schema_of_main(connection);
    // Its error is expected, and says nothing of the comparison.
    let _ = connection.prepare(OF_ALL);
    connection.hooks().authorizer.set_policy(before);
    of_main
}

fn read_schema_of_main(connection: &mut Sqlite) -> Result<()> {
    let Some(Prepared { id, .. }) = connection.prepare(OF_MAIN)? else { return Ok(()) };
    let read = patiently(connection, |connection| connection.statement(id).run_once(&(), &mut Discard));
    connection.statement(id).finalize();
    read
}

/// Runs `f`, which steps the statement for the first time. If SQLite could not compile it any more, because the schema has
/// changed, `f` runs again under the newest one.
pub(super) fn current<T>(
    connection: &mut Sqlite,
    id: StatementId,
    mut f: impl FnMut(&mut Sqlite) -> Result<T>,
) -> Result<T> {
    let (mut tries, mut is_newest) = (0, false);
    loop {
        let mut result = f(connection);
        if is(&result, ffi::SQLITE_SCHEMA)
            && tries < TRIES
            && let Some(text) = connection.statements.stable_text(id)
        {
            tries += 1;
            match prepare_again(connection, id, &text) {
                Ok(()) => continue,
                Err(error) => result = Err(error),
            }
        }
        if is_newest || !is(&result, ffi::SQLITE_ERROR) || compiles(connection, id) {
            return result;
        }
        is_newest = true;
        if drop_older_schemas(connection).is_err() {
            return result;
        }
    }
}

fn is<T>(result: &Result<T>, expected: i32) -> bool {
    matches!(result, Err(Error::Sqlite(SqliteError { code, .. })) if *code == expected)
}

/// Returns true if the text of the statement compiles under the schema in memory. If it does not, the program of the statement
/// did not run: it would have been one for this schema.
#[cold]
fn compiles(connection: &mut Sqlite, id: StatementId) -> bool {
    let Some(compiled) = connection.statements.get(id) else { return true };
    // SAFETY: the statement is alive; its text is null or NUL-terminated, lives as long as it, and is copied.
    let text = unsafe {
        let text = ffi::sqlite3_sql(compiled.raw);
        if text.is_null() {
            return true;
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    };
    match connection.prepare(&text) {
        Ok(Some(prepared)) => {
            connection.statement(prepared.id).finalize();
            true
        }
        Ok(None) => true,
        Err(error) => !is::<()>(&Err(error), ffi::SQLITE_ERROR),
    }
}
