//! The URLs that other libraries take instead of a path: `sqlite::memory:`, `sqlite://app.db`.
//!
//! Owns: recognising them, and the form that opens the same database here. Pure, on any thread. Invariant: without the
//! refusal such a URL would be the name of a new file. Leaves out: `file:` URIs (`uri`).

use std::path::Path;

use super::MEMORY;
use crate::error::{Error, Result};

/// Refuses a path that is a URL of another library.
pub(super) fn refuse(path: &Path) -> Result<()> {
    let text = path.to_string_lossy();
    let Some(rest) = without_scheme(&text) else { return Ok(()) };
    let hint = match form(rest) {
        Some(form) if text.contains('/') => format!("write {form:?}"),
        Some(form) => format!("write {form:?}, or \"./{text}\" if the file has that name"),
        None => "write the path of the file, or \":memory:\" for a database in memory".to_owned(),
    };
    Err(Error::misuse(format!("{text:?} is no path and no `file:` URI")).with_hint(hint).in_operation("open"))
}

/// Returns what follows `sqlite:` or its like, or a name that begins with a colon, which SQLite reserves.
fn without_scheme(text: &str) -> Option<&str> {
    if text.starts_with(':') {
        return (text != MEMORY).then_some(text);
    }
    let text = text.strip_prefix("jdbc:").unwrap_or(text);
    let (scheme, rest) = text.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    (matches!(&*scheme, "sqlite" | "sqlite3") || scheme.starts_with("sqlite+")).then_some(rest)
}

/// Returns the path or the `file:` URI that names the same database, if it names one.
fn form(rest: &str) -> Option<String> {
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    match rest {
        "" => None,
        _ if rest.starts_with(':') => Some(MEMORY.to_owned()),
        _ if rest.starts_with("file:") || !rest.contains(['?', '%', '#']) => Some(rest.to_owned()),
        _ => Some(format!("file:{rest}")),
    }
}
