//! PRAGMAs that ask for what is in force: existing programs begin with them.
//!
//! Owns: the value that is in force, and what stands for such a PRAGMA. Runs on the thread that has the connection, which
//! reads the value from it. Invariants: the PRAGMA itself never runs, so it changes nothing; what is in force is the same
//! on all connections that run statements of the user. Leaves out: comparing values (`sql::in_force`).

use flatwater_sqlite::{AuthEvent, Policy, Prepared, Sqlite, Verdict};
use rusqlite::OptionalExtension;
use rusqlite::ffi;
use rusqlite::types::Value;

use super::pragmas::{cache_size, temp_store};
use crate::error::{Error, Result};
use crate::options::Options;
use crate::sql::in_force::{InForce, asks_for};
use crate::sql::policy;
use crate::sql::pragma::answers;
use crate::sql::tokens::quoted;

/// What is in force of the settings that no connection can tell.
#[derive(Debug)]
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
        let asks = asking(event);
        // Of a file that cannot be mapped, such as one in memory, nothing is.
        let none = event.first.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("mmap_size"));
        let value = sqlite.patiently_with(|sqlite| sqlite.query_row(&asks, [], |row| row.get(0)).optional())?;
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

/// A statement, and whether it is a PRAGMA that sets a value of the connection: any call may run it, with rows or without.
pub(crate) struct Judged {
    pub(crate) prepared: Prepared,
    pub(crate) asks: bool,
}

/// Judges what was prepared under `policy`. A PRAGMA that the policy ignored is refused, or if it asks for what is in force
/// replaced: by a statement that returns the row that SQLite would return, or by one that does nothing.
pub(crate) fn judge(sqlite: &mut Sqlite, stated: &Stated, prepared: Prepared, policy: Policy) -> Result<Judged> {
    let pragma = prepared.events.iter().find(|event| event.action == ffi::SQLITE_PRAGMA);
    let Some(event) = pragma.filter(|event| policy(event) == Verdict::Ignore || is_busy_timeout(event)).cloned() else {
        // What a policy allows to be set is set, and any call may do that.
        let asks = pragma.is_some_and(policy::sets);
        return Ok(Judged { prepared, asks });
    };
    match replacement(sqlite, stated, &event) {
        Ok(Replacement::Row(sql)) if !prepared.explain => {
            sqlite.statement(prepared.id).finalize();
            let row = sqlite.prepare(&sql)?.ok_or_else(|| Error::misuse("a PRAGMA has no statement"))?;
            let prepared = Prepared { length: prepared.length, ..row };
            Ok(Judged { prepared, asks: event.second.is_some() })
        }
        // Without its event it is a statement that does nothing and reads nothing.
        Ok(_) => Ok(Judged { prepared: Prepared { events: Vec::new(), ..prepared }, asks: true }),
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

enum Replacement {
    Row(String),
    Nothing,
}

fn replacement(sqlite: &Sqlite, stated: &Stated, event: &AuthEvent) -> Result<Replacement> {
    let name = event.first.as_deref().unwrap_or_default();
    if let Some(asked) = event.second.as_deref()
        && !stated.value(sqlite, event)?.is_some_and(|value| asks_for(name, asked, &value))
    {
        return Err(policy::refusal(event, None));
    }
    Ok(match name {
        _ if is_busy_timeout(event) => Replacement::Row(format!("SELECT {} AS timeout", stated.busy_timeout)),
        name if answers(name) => Replacement::Row(asking(event)),
        _ => Replacement::Nothing,
    })
}
