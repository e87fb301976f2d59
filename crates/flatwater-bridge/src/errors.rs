//! Errors as front ends show them: which class an error has, and its hint in the words of the language.
//!
//! Owns: the classes, which are those of PEP 249. Pure. Invariant: every kind has a class. Leaves out: how a language spells
//! the names in a hint (`spelling`), and making the language's own error.

use std::borrow::Cow;

use flatwater::{Error, ErrorKind};

use crate::options::{OPTIONS, TUNING};
use crate::spelling::Language;

/// The class of an error, as in PEP 249 (<https://peps.python.org/pep-0249/#exceptions>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The database's state or its surroundings: locks, disks, timeouts.
    Operational,
    /// A constraint failed, or a value does not fit its column.
    Integrity,
    /// A value is too large, or does not fit the type that is asked for.
    Data,
    /// The call is wrong, or the SQL.
    Programming,
    /// The file is damaged.
    Database,
}

/// `SQLITE_NOTADB`, also of a file that could not be opened.
const NOTADB: i32 = 26;
const TOOBIG: i32 = 18;
const MISMATCH: i32 = 20;

/// Returns the class of an error.
#[must_use]
pub fn class(error: &Error) -> Class {
    let primary = error.sqlite_code().map(|code| code & 0xff);
    match error.kind() {
        // A key that does not open a file says nothing of the file.
        ErrorKind::Key => Class::Operational,
        _ if primary == Some(NOTADB) => Class::Database,
        // As the `sqlite3` module of Python has them.
        _ if primary == Some(MISMATCH) => Class::Integrity,
        _ if primary == Some(TOOBIG) => Class::Data,
        ErrorKind::Decode => Class::Data,
        ErrorKind::Constraint => Class::Integrity,
        ErrorKind::Corrupt => Class::Database,
        ErrorKind::Misuse | ErrorKind::Closed | ErrorKind::RowNotFound => Class::Programming,
        // As the `sqlite3` module of Python has it: an error in the SQL is operational.
        _ => Class::Operational,
    }
}

/// Returns what an error says to do, with the names of the language.
#[must_use]
pub fn hint(error: &Error, language: Language) -> Option<Cow<'_, str>> {
    flatwater::bindings::hint(error, |name| language.spell(name))
}

/// Returns what an error or a hint says, with the options in backquotes as the language has them: the engine names them as
/// Rust and Python do.
#[must_use]
pub fn spelled(text: &str, language: Language) -> Cow<'_, str> {
    let is_option = |name: &str| [OPTIONS, TUNING].iter().any(|table| table.iter().any(|(known, _)| *known == name));
    if language != Language::Node || !text.split('`').any(|part| part.contains('_') && is_option(part)) {
        return Cow::Borrowed(text);
    }
    let parts = text.split('`').map(|part| if is_option(part) { Cow::Owned(camel(part)) } else { part.into() });
    Cow::Owned(parts.collect::<Vec<_>>().join("`"))
}

/// Returns a name as JavaScript has it.
#[must_use]
pub fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let mut letters = part.chars();
        let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
        all + &capital.into_iter().chain(letters).collect::<String>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_what_errors_say_are_those_of_node() {
        let said = "with another value of the option `busy_timeout`, `key` or `journal_of_mine`";
        let node = "with another value of the option `busyTimeout`, `key` or `journal_of_mine`";
        assert_eq!(spelled(said, Language::Node), node);
        assert_eq!(spelled(said, Language::Python), said);
        for (name, _) in OPTIONS.iter().chain(TUNING) {
            assert!(!spelled(&format!("`{name}` is wrong"), Language::Node).contains('_'), "{name}");
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
