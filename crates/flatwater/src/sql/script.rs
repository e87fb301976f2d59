//! A script: a text of several statements.
//!
//! Owns: the form in which it is given to SQLite statement by statement. Invariant: a statement is prepared without a copy of
//! what follows it. Leaves out: running it.

/// Returns a script with the NUL behind it without which SQLite copies all that follows a statement before it prepares it
/// (`sqlite3Prepare`).
pub(crate) fn terminated(script: &str) -> String {
    let mut terminated = String::with_capacity(script.len() + 1);
    terminated.push_str(script);
    terminated.push('\0');
    terminated
}
