//! `regexp(pattern, text)`, behind the operator REGEXP, which SQLite leaves to its users: with the feature of this name.
//!
//! Owns: the function. Runs on the thread that runs the statement. Invariants: a pattern is compiled once for a statement if it is a
//! constant or a parameter; how long a search takes is bounded; no error has the pattern or the text in it. Leaves out: a function
//! of the user, which may have the same name.

use fancy_regex::{Regex, RegexBuilder};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error};

/// Steps of a search that has to go back, after which it fails. Other patterns are searched in linear time.
const STEPS: usize = 1_000_000;

/// Registers REGEXP.
pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("regexp", 2, flags, regexp)
}

/// Returns whether the pattern matches somewhere in the text; NULL if either is NULL. A number is searched as its text.
fn regexp(context: &Context<'_>) -> rusqlite::Result<Option<bool>> {
    if matches!(context.get_raw(0), ValueRef::Null) || matches!(context.get_raw(1), ValueRef::Null) {
        return Ok(None);
    }
    let pattern = context.get_or_create_aux(0, |pattern| compiled(&text(pattern)?))?;
    let found = pattern.is_match(&*text(context.get_raw(1))?);
    found.map(Some).map_err(|_| failed("a search for a pattern of REGEXP took too long"))
}

fn compiled(pattern: &str) -> rusqlite::Result<Regex> {
    let regex = RegexBuilder::new(pattern).backtrack_limit(STEPS).build();
    regex.map_err(|_| failed("a pattern of REGEXP is not a regular expression"))
}

fn text(value: ValueRef<'_>) -> rusqlite::Result<std::borrow::Cow<'_, str>> {
    match value {
        ValueRef::Text(text) => {
            std::str::from_utf8(text).map(Into::into).map_err(|_| failed("a text for REGEXP is not UTF-8"))
        }
        ValueRef::Integer(number) => Ok(number.to_string().into()),
        ValueRef::Real(number) => Ok(format!("{number:?}").into()),
        ValueRef::Null | ValueRef::Blob(_) => Err(failed("REGEXP searches texts, and not a BLOB")),
    }
}

fn failed(message: &'static str) -> Error {
    Error::UserFunctionError(message.into())
}
