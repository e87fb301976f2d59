//! PRAGMAs that ask for what is in force: existing programs begin with them.
//!
//! Owns: the value that is in force, how SQLite reads the argument of each PRAGMA that sets a value (`sqlite3Pragma`), and what stands
//! for a PRAGMA that asks. Runs on the thread that has the connection, which reads the value from it. Invariants: the PRAGMA itself
//! never runs, so it changes nothing; what is in force is the same on all connections that run statements of the user; a word that
//! SQLite does not know asks for nothing: SQLite would take it for some value. Leaves out: what PRAGMAs there are (`flatwater_sql::pragma`).

use flatwater_sqlite::{AuthEvent, Policy, Prepared, Sqlite, Verdict};
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, ffi};

use super::switches::{cache_size, temp_store};
use crate::options::Options;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_sql::policy;
use flatwater_sql::pragma::{answers, is_switch};
use flatwater_sql::tokens::quoted;

/// What is in force of the settings that no connection can tell.
pub(crate) struct Stated {
    /// In milliseconds. The busy handler is Flatwater's own, so SQLite knows of none.
    busy_timeout: i64,
    /// `None`: the writer has another value than the readers.
    cache_size: Option<i64>,
    temp_store: Option<i64>,
}

impl Stated {
    pub(crate) fn of(options: &Options) -> Self {
        let same = |writer: i64, reader: i64| match (options.is_memory(), options.read_only) {
            (true, _) => Some(writer),
            (_, true) => Some(reader),
            _ => (writer == reader).then_some(writer),
        };
        Self {
            busy_timeout: i64::try_from(options.busy_timeout.as_millis()).unwrap_or(i64::MAX).min(i32::MAX.into()),
            cache_size: same(cache_size(options, true), cache_size(options, false)),
            temp_store: same(temp_store(options, true), temp_store(options, false)),
        }
    }

    /// Sets the wait for locks, on a connection whose caller may do that.
    pub(crate) fn set_busy_timeout(&mut self, milliseconds: u64) {
        self.busy_timeout = i64::try_from(milliseconds).unwrap_or(i64::MAX).min(i32::MAX.into());
    }

    /// Reads the value of the PRAGMA of `event`; `None` if it has none, or not one on all connections.
    fn value(&self, sqlite: &Sqlite, event: &AuthEvent) -> Result<Option<InForce>> {
        let name = event.first.as_deref().unwrap_or_default();
        let is_main = event.database.as_deref().is_none_or(|name| name.eq_ignore_ascii_case("main"));
        match &*name.to_ascii_lowercase() {
            "busy_timeout" => return Ok(Some(InForce::Integer(self.busy_timeout))),
            "cache_size" if is_main => return Ok(self.cache_size.map(InForce::Integer)),
            "temp_store" => return Ok(self.temp_store.map(InForce::Integer)),
            _ => {}
        }
        let pragma = asking(event);
        // Of a file that cannot be mapped, such as one in memory, nothing is.
        let none = event.first.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("mmap_size"));
        let value = sqlite.patiently_with(|sqlite| sqlite.query_row(&pragma, [], |row| row.get(0)).optional())?;
        Ok(match value {
            Some(Value::Integer(value)) => Some(InForce::Integer(value)),
            Some(Value::Text(value)) => Some(InForce::Text(value)),
            _ => none.then_some(InForce::Integer(0)),
        })
    }
}

/// Returns the PRAGMA of an event without its argument.
fn asking(event: &AuthEvent) -> String {
    let name = quoted(event.first.as_deref().unwrap_or_default());
    match event.database.as_deref() {
        Some(database) => format!("PRAGMA {}.{name}", quoted(database)),
        None => format!("PRAGMA {name}"),
    }
}

/// Prepares the first statement of `sql` under a policy. `refusal` makes the error of what the policy denied.
pub(crate) fn prepare_under(
    sqlite: &mut Sqlite,
    sql: &str,
    policy: Policy,
    refusal: impl FnOnce(&AuthEvent) -> Error,
) -> Result<Option<Prepared>> {
    let before = sqlite.hooks().authorizer.set_policy(policy);
    let prepared = sqlite.prepare(sql);
    sqlite.hooks().authorizer.set_policy(before);
    prepared.map_err(|error| {
        let denied = sqlite.hooks().authorizer.take_denied();
        denied.map_or_else(|| error.into(), |event| refusal(&event))
    })
}

/// A statement, and whether it is a PRAGMA that sets a value of the connection: any call may run it, with rows or without.
pub(crate) struct Judged {
    pub(crate) prepared: Prepared,
    pub(crate) reads_setting: bool,
}

/// Judges what was prepared under `policy`. A PRAGMA that the policy ignored is refused, or if it asks for what is in force
/// replaced: by a statement that returns the row that SQLite would return, or by one that does nothing.
pub(crate) fn judge(sqlite: &mut Sqlite, stated: &Stated, prepared: Prepared, policy: Policy) -> Result<Judged> {
    let pragma = prepared.events.iter().find(|event| event.action == ffi::SQLITE_PRAGMA);
    let Some(event) = pragma.filter(|event| policy(event) == Verdict::Ignore || is_busy_timeout(event)).cloned() else {
        // What a policy allows to be set is set, and any call may do that.
        let reads_setting = pragma.is_some_and(policy::sets);
        return Ok(Judged { prepared, reads_setting });
    };
    match row_of(sqlite, stated, &event) {
        Ok(Some(sql)) if !prepared.explain => {
            sqlite.statement(prepared.id).finalize();
            let row =
                sqlite.prepare(&sql)?.ok_or_else(|| Error::new(ErrorCode::Internal, "a PRAGMA has no statement"))?;
            let prepared = Prepared { length: prepared.length, ..row };
            Ok(Judged { prepared, reads_setting: event.second.is_some() })
        }
        // Without its event it is a statement that does nothing and reads nothing.
        Ok(_) => Ok(Judged { prepared: Prepared { events: Vec::new(), ..prepared }, reads_setting: true }),
        Err(error) => {
            sqlite.statement(prepared.id).finalize();
            Err(error)
        }
    }
}

/// The wait for locks is asked for too, because SQLite would say that there is none.
fn is_busy_timeout(event: &AuthEvent) -> bool {
    event.first.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("busy_timeout"))
}

/// Returns the statement that returns the row of a PRAGMA; `None` for one that has none.
fn row_of(sqlite: &Sqlite, stated: &Stated, event: &AuthEvent) -> Result<Option<String>> {
    let name = event.first.as_deref().unwrap_or_default();
    if let Some(asked) = event.second.as_deref()
        && !stated.value(sqlite, event)?.is_some_and(|value| leaves_as_it_is(name, asked, &value))
    {
        return Err(policy::refusal(event, None));
    }
    Ok(match name {
        _ if is_busy_timeout(event) => Some(format!("SELECT {} AS timeout", stated.busy_timeout)),
        name if answers(name) => Some(asking(event)),
        _ => None,
    })
}

/// A value that is in force, as the PRAGMA without an argument returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InForce {
    Integer(i64),
    Text(String),
}

/// Returns true if `PRAGMA name = asked` would leave the value as it is.
pub(crate) fn leaves_as_it_is(name: &str, asked: &str, current: &InForce) -> bool {
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
            assert!(leaves_as_it_is(name, asked, &current), "{name} = {asked}");
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
            assert!(!leaves_as_it_is(name, asked, &current), "{name} = {asked}");
        }
    }
}
