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
    let Some((scheme, rest)) = split(&text) else { return Ok(()) };
    let hint = match forms(&scheme, rest).as_slice() {
        [form, of_sqlalchemy] => format!("write {form:?}, or {of_sqlalchemy:?} if the URL is one of SQLAlchemy"),
        [form] if text.contains('/') => format!("write {form:?}"),
        [form] => format!("write {form:?}, or \"./{text}\" if the file has that name"),
        _ => "write the path of the file, or \":memory:\" for a database in memory".to_owned(),
    };
    Err(Error::misuse(format!("{text:?} is neither a path nor a `file:` URI")).with_hint(hint).in_operation("open"))
}

/// Returns the scheme, if it is `sqlite:` or its like, and what follows it. A name that begins with a colon, which SQLite
/// reserves, has none.
fn split(text: &str) -> Option<(String, &str)> {
    if text.starts_with(':') {
        return (text != MEMORY).then(|| (String::new(), text));
    }
    let text = text.strip_prefix("jdbc:").unwrap_or(text);
    let (scheme, rest) = text.split_once(':')?;
    let scheme = scheme.to_ascii_lowercase();
    (matches!(&*scheme, "sqlite" | "sqlite3") || scheme.starts_with("sqlite+")).then_some((scheme, rest))
}

/// Returns the paths or `file:` URIs that name the same database, most likely one first, if the URL names one. In a URL
/// of SQLAlchemy the third slash is no part of the path; only such a URL has a driver in its scheme.
fn forms(scheme: &str, rest: &str) -> Vec<String> {
    match rest.strip_prefix("///") {
        None => path(rest.strip_prefix("//").unwrap_or(rest)).into_iter().collect(),
        Some("") => Vec::new(),
        Some(rest) if rest.starts_with(['/', ':']) || rest.starts_with("file:") || scheme.contains('+') => {
            path(rest).into_iter().collect()
        }
        Some(relative) => [path(&format!("/{relative}")), path(relative)].into_iter().flatten().collect(),
    }
}

/// Returns the path or the `file:` URI for the path of a URL.
fn path(text: &str) -> Option<String> {
    match text {
        "" => None,
        _ if text.starts_with(':') => Some(MEMORY.to_owned()),
        _ if text.starts_with("file:") || !text.contains(['?', '%', '#']) => Some(text.to_owned()),
        _ => Some(format!("file:{text}")),
    }
}
