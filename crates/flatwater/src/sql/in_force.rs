//! Whether a PRAGMA asks for the value that is in force. Pure.
//!
//! Owns: how SQLite reads the argument of each PRAGMA that sets a value (`sqlite3Pragma`). A word that SQLite does not
//! know asks for nothing: SQLite would take it for some value. Leaves out: reading the value that is in force.

use super::pragma::is_switch;

/// A value that is in force, as the PRAGMA without an argument returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InForce {
    Integer(i64),
    Text(String),
}

/// Returns true if `PRAGMA name = asked` would leave the value as it is.
pub(crate) fn asks_for(name: &str, asked: &str, current: &InForce) -> bool {
    let current = match current {
        InForce::Integer(current) => *current,
        InForce::Text(current) => return is_name(name, asked, current),
    };
    let word = asked.to_ascii_lowercase();
    let by_word = |words: &[(&str, i64)]| words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
    let value = match &*name.to_ascii_lowercase() {
        "synchronous" => by_word(&[("off", 0), ("normal", 1), ("on", 1), ("full", 2), ("extra", 3)]),
        "temp_store" => by_word(&[("default", 0), ("file", 1), ("memory", 2)]),
        "auto_vacuum" => by_word(&[("none", 0), ("full", 1), ("incremental", 2)]),
        "secure_delete" if word == "fast" => Some(2),
        "cache_spill" => return number(&word).map_or(switch(&word) == Some(current != 0), |pages| pages == current),
        _ => None,
    };
    match value.or_else(|| number(&word)) {
        Some(value) if is_switch(name) => i64::from(value != 0) == current,
        Some(value) => value == current,
        None => switch(&word).is_some_and(|on| i64::from(on) == current),
    }
}

fn is_name(name: &str, asked: &str, current: &str) -> bool {
    let bare = |encoding: &str| encoding.to_ascii_lowercase().replace('-', "");
    match &*name.to_ascii_lowercase() {
        "encoding" => {
            let native = if cfg!(target_endian = "little") { "utf16le" } else { "utf16be" };
            let asked = bare(asked);
            (if asked == "utf16" { native } else { &asked }) == bare(current)
        }
        // A database in memory has no other mode, and SQLite ignores what Flatwater keeps files in.
        "journal_mode" if current == "memory" => ["memory", "wal"].iter().any(|mode| asked.eq_ignore_ascii_case(mode)),
        _ => asked.eq_ignore_ascii_case(current),
    }
}

fn number(word: &str) -> Option<i64> {
    word.parse().ok()
}

/// Returns the value of a word that switches something (`sqlite3GetBoolean`).
fn switch(word: &str) -> Option<bool> {
    match word {
        "on" | "yes" | "true" => Some(true),
        "off" | "no" | "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_read_as_sqlite_reads_it() {
        let integer = InForce::Integer;
        for (name, asked, current) in [
            ("foreign_keys", "ON", integer(1)),
            ("Foreign_Keys", "yes", integer(1)),
            ("foreign_keys", "7", integer(1)),
            ("query_only", "false", integer(0)),
            ("synchronous", "normal", integer(1)),
            ("synchronous", "1", integer(1)),
            ("synchronous", "Full", integer(2)),
            ("synchronous", "OFF", integer(0)),
            ("cache_size", "-2000", integer(-2000)),
            ("cache_spill", "on", integer(483)),
            ("cache_spill", "483", integer(483)),
            ("temp_store", "MEMORY", integer(2)),
            ("secure_delete", "fast", integer(2)),
            ("auto_vacuum", "incremental", integer(2)),
            ("wal_autocheckpoint", "0", integer(0)),
            ("journal_mode", "WAL", InForce::Text("wal".into())),
            ("journal_mode", "WAL", InForce::Text("memory".into())),
            ("encoding", "utf8", InForce::Text("UTF-8".into())),
            ("locking_mode", "NORMAL", InForce::Text("normal".into())),
        ] {
            assert!(asks_for(name, asked, &current), "{name} = {asked}");
        }
    }

    #[test]
    fn another_value_and_a_word_that_is_none_do_not_ask_for_what_is_in_force() {
        let integer = InForce::Integer;
        for (name, asked, current) in [
            ("foreign_keys", "OFF", integer(1)),
            ("foreign_keys", "onn", integer(0)),
            ("synchronous", "nomal", integer(1)),
            ("synchronous", "2", integer(1)),
            ("cache_size", "2000", integer(-2000)),
            ("cache_spill", "1", integer(483)),
            ("temp_store", "0", integer(2)),
            ("secure_delete", "1", integer(2)),
            ("busy_timeout", "5000", integer(30_000)),
            ("journal_mode", "w", InForce::Text("wal".into())),
            ("journal_mode", "delete", InForce::Text("memory".into())),
            ("encoding", "utf16", InForce::Text("UTF-8".into())),
        ] {
            assert!(!asks_for(name, asked, &current), "{name} = {asked}");
        }
    }
}
