//! The error table: which class an error has in a language, and its text in the words of that language.
//!
//! Owns: the classes, which are those of PEP 249, and the spelling of names in messages and hints. Pure. Invariant:
//! every kind has a class. Leaves out: making the language's own error.

use std::borrow::Cow;

use flatwater::{Error, ErrorKind};

/// The class of an error, as in PEP 249 (<https://peps.python.org/pep-0249/#exceptions>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The database's state or its surroundings: locks, disks, timeouts.
    Operational,
    /// A constraint failed, or a value does not fit its column.
    Integrity,
    /// A value is too large.
    Data,
    /// The call is wrong, or the SQL.
    Programming,
    /// The file is damaged.
    Database,
}

/// `SQLITE_CORRUPT` and `SQLITE_NOTADB`.
const DAMAGED: [i32; 2] = [11, 26];
const TOOBIG: i32 = 18;
const MISMATCH: i32 = 20;

/// Returns the class of an error.
#[must_use]
pub fn class(error: &Error) -> Class {
    let primary = error.sqlite_code().map(|code| code & 0xff);
    match error.kind() {
        _ if primary.is_some_and(|code| DAMAGED.contains(&code)) => Class::Database,
        // As the `sqlite3` module of Python has them.
        _ if primary == Some(MISMATCH) => Class::Integrity,
        _ if primary == Some(TOOBIG) => Class::Data,
        ErrorKind::Constraint => Class::Integrity,
        ErrorKind::Corrupt => Class::Database,
        ErrorKind::Misuse | ErrorKind::Closed | ErrorKind::RowNotFound => Class::Programming,
        // As the `sqlite3` module of Python has it: an error in the SQL is operational.
        _ => Class::Operational,
    }
}

/// How a language spells what the messages of the engine name in Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// With `snake_case`, and the names of PEP 249.
    Python,
}

const ENDED: &str = "ends with its `async with` block: with a commit, or with a rollback if the block raises";
const NESTED: &str = "nest with `async with tx.transaction()`, which is a savepoint";

impl Language {
    /// What stands in the engine's texts, and what stands in its place.
    fn words(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Python => &[
                ("use `transaction(async |tx| ...)`, or `begin()`", "begin it with `async with db.transaction()`"),
                ("nest: `tx.transaction(async |tx| ...)` or `tx.begin()`; by name: `tx.savepoint(name)`", NESTED),
                ("`savepoint` opens one; `release` closes it, and so does `rollback_to` of an earlier one", NESTED),
                ("ends with `tx.commit()` or `tx.rollback()`", ENDED),
                ("inside a transaction or `write_with`", "inside a transaction"),
                ("`Options::", "`"),
                ("`Tuning::", "`tuning=` key `"),
                ("`process::", "`flatwater.process."),
                ("`Migrations::", "`"),
                ("`JsonOptions::", "`"),
                ("`execute_many`", "`executemany`"),
                ("`execute_script`", "`executescript`"),
            ],
        }
    }
}

/// Returns a text of the engine in the words of the language.
#[must_use]
pub fn text(text: &str, language: Language) -> Cow<'_, str> {
    let replace = |text: Cow<'static, str>, (from, to): &(&str, &str)| Cow::Owned(text.replace(from, to));
    if language.words().iter().any(|(from, _)| text.contains(from)) {
        return language.words().iter().fold(Cow::Owned(text.to_owned()), replace);
    }
    Cow::Borrowed(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_use_the_names_of_the_language() {
        let hint = "set `Options::busy_timeout` higher, or use `execute_many`";
        assert_eq!(text(hint, Language::Python), "set `busy_timeout` higher, or use `executemany`");
        assert!(matches!(text("no such table: t", Language::Python), Cow::Borrowed(_)));
    }

    #[test]
    fn hints_of_calls_name_nothing_of_rust() {
        let db = flatwater::Database::open(":memory:").wait().unwrap();
        for sql in [
            "BEGIN",
            "COMMIT",
            "SAVEPOINT a",
            "RELEASE a",
            "ROLLBACK TO a",
            "CREATE TEMP TABLE t (a)",
            "ATTACH 'a' AS b",
        ] {
            let error = db.execute(sql, ()).wait().unwrap_err();
            let hint = text(error.hint().unwrap(), Language::Python).into_owned();
            for rust in ["::", "|tx|", "begin()", "commit()", "write_with", "savepoint(", "rollback_to"] {
                assert!(!hint.contains(rust), "{sql}: {hint}");
            }
        }
    }

    #[test]
    fn errors_of_calls_have_their_class() {
        let db = flatwater::Database::open(":memory:").wait().unwrap();
        db.execute_script("CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1)").wait().unwrap();
        let of = |sql: &str| class(&db.execute(sql, ()).wait().unwrap_err());
        assert_eq!(of("INSERT INTO t VALUES (1)"), Class::Integrity);
        assert_eq!(of("INSERT INTO nowhere VALUES (1)"), Class::Operational);
        db.execute("CREATE TABLE k (id INTEGER PRIMARY KEY)", ()).wait().unwrap();
        assert_eq!(of("INSERT INTO k VALUES ('x')"), Class::Integrity, "SQLITE_MISMATCH");
        assert_eq!(of("INSERT INTO t VALUES (zeroblob(1000000001))"), Class::Data, "SQLITE_TOOBIG");
        assert_eq!(of("SELECT 1"), Class::Programming);
        db.close().wait().unwrap();
        assert_eq!(of("INSERT INTO t VALUES (2)"), Class::Programming);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("no.db");
        std::fs::write(&file, [b'x'; 4096]).unwrap();
        assert_eq!(class(&flatwater::Database::open(&file).wait().unwrap_err()), Class::Database);
    }
}
