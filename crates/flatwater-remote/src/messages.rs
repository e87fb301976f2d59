//! SQLite's messages, of which the server tells no code.
//!
//! Owns: the code of a message. Pure. Invariant: a message that is not known has the code that says no more than that the SQL
//! failed. Leaves out: what an error says besides.

use flatwater::rusqlite::ffi;

/// How a message of SQLite begins, and its code. The driver of the server writes the message alone.
const BEGINNINGS: &[(&str, i32)] = &[
    ("UNIQUE constraint failed: ", ffi::SQLITE_CONSTRAINT_UNIQUE),
    ("NOT NULL constraint failed: ", ffi::SQLITE_CONSTRAINT_NOTNULL),
    ("CHECK constraint failed: ", ffi::SQLITE_CONSTRAINT_CHECK),
    ("FOREIGN KEY constraint failed", ffi::SQLITE_CONSTRAINT_FOREIGNKEY),
    ("cannot store ", ffi::SQLITE_CONSTRAINT_DATATYPE),
    ("constraint failed", ffi::SQLITE_CONSTRAINT),
    ("database or disk is full", ffi::SQLITE_FULL),
    ("database disk image is malformed", ffi::SQLITE_CORRUPT),
    ("disk I/O error", ffi::SQLITE_IOERR),
    ("attempt to write a readonly database", ffi::SQLITE_READONLY),
    ("string or blob too big", ffi::SQLITE_TOOBIG),
    ("datatype mismatch", ffi::SQLITE_MISMATCH),
    ("interrupted", ffi::SQLITE_INTERRUPT),
    ("query timeout", ffi::SQLITE_INTERRUPT),
    ("execute timeout", ffi::SQLITE_INTERRUPT),
];

pub(crate) fn code_of(message: &str) -> i32 {
    let known = BEGINNINGS.iter().find(|(beginning, _)| message.starts_with(beginning));
    known.map_or(ffi::SQLITE_ERROR, |(_, code)| *code)
}

#[cfg(test)]
mod tests {
    use flatwater::rusqlite::Connection;

    use super::*;

    /// Against SQLite itself: what it says, and the code that it gives.
    #[test]
    fn messages_of_sqlite_have_its_codes() {
        let sqlite = Connection::open_in_memory().unwrap();
        let schema =
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE, c NOT NULL, d CHECK (d > 0), e REFERENCES t (a));
                      CREATE TABLE s (a INT) STRICT;
                      INSERT INTO t VALUES (1, 1, 1, 1, NULL); PRAGMA foreign_keys = ON";
        sqlite.execute_batch(schema).unwrap();
        for sql in [
            "INSERT INTO t VALUES (2, 1, 1, 1, NULL)",
            "INSERT INTO t VALUES (2, 2, NULL, 1, NULL)",
            "INSERT INTO t VALUES (2, 2, 2, -1, NULL)",
            "INSERT INTO t VALUES (2, 2, 2, 1, 9)",
            "INSERT INTO s VALUES ('x')",
            "INSERT INTO t VALUES ('x', 2, 2, 1, NULL)",
            "SELECT zeroblob(3000000000)",
            "SELECT * FROM missing",
        ] {
            let error = sqlite.execute_batch(sql).unwrap_err();
            let rusqlite_error = error.sqlite_error().unwrap().extended_code;
            let message = match &error {
                flatwater::rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
                flatwater::rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
                other => panic!("{other}"),
            };
            assert_eq!(code_of(&message), rusqlite_error, "{message}");
        }
    }
}
