//! What SQL texts are, for front ends, by the engine's own tokens.
//!
//! Owns: the form in which front ends get it. Pure. Leaves out: reading texts (`sql`).

use std::borrow::Cow;

use crate::error::shorten;
use crate::sql::{parameters, script, tokens};

/// Returns a text as errors show it: shortened, and without a key.
#[must_use]
pub fn shown(sql: &str) -> Cow<'_, str> {
    shorten(sql)
}

/// The tokens of a text as SQLite reads them, each with what it is and the white space and comments before it. The last one is
/// empty, so that all of them together are the text. A quote inside of quotes, which is written twice, makes two tokens.
pub fn tokens(sql: &str) -> impl Iterator<Item = (&'static str, &str, &str)> {
    tokens::with_gaps(sql)
}

/// The names of the parameters in a text, without their sign.
pub fn parameter_names(sql: &str) -> impl Iterator<Item = &str> {
    parameters::names(sql)
}

/// Guesses whether a text returns rows, for a library whose callers do not say so.
#[must_use]
pub fn looks_like_rows(sql: &str) -> bool {
    tokens::looks_like_rows(sql)
}

/// The statements of a script: of each its text, the word that says what it does, and of a PRAGMA its name and, if it is set,
/// whether one that is on or off is on with this value.
pub fn statements(script: &str) -> impl Iterator<Item = (&str, &str, Option<(&str, Option<bool>)>)> {
    script::statements(script).map(|sql| {
        let pragma = tokens::pragma(sql).map(|(name, value)| (name, value.map(|value| !tokens::is_off(value))));
        (sql, tokens::verb(sql).unwrap_or_default(), pragma)
    })
}
