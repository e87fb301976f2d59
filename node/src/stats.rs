//! The counters of a database, and what concerns the process.
//!
//! Owns: the names of the counters, which are those of the API in camelCase. Runs on the caller's thread. Leaves out: what is counted.

use std::time::Duration;

use flatwater::process;
use flatwater::stats::{Stats, WalBlocker};

use crate::calls::gone;
use crate::capi::function::Call;
use crate::capi::value::{Env, Result, Value};
use crate::handles::Handle;
use crate::host::Host;

/// A counter as a value.
trait Counter {
    fn value<'e>(&self, env: Env<'e>) -> Result<Value<'e>>;
}

macro_rules! numbers {
    ($($kind:ty)+) => {$(
        impl Counter for $kind {
            fn value<'e>(&self, env: Env<'e>) -> Result<Value<'e>> {
                env.number(*self as f64)
            }
        }
    )+};
}
numbers!(u32 u64 usize);

impl Counter for bool {
    fn value<'e>(&self, env: Env<'e>) -> Result<Value<'e>> {
        env.boolean(*self)
    }
}

impl Counter for String {
    fn value<'e>(&self, env: Env<'e>) -> Result<Value<'e>> {
        env.text(self)
    }
}

impl Counter for Duration {
    /// In milliseconds.
    fn value<'e>(&self, env: Env<'e>) -> Result<Value<'e>> {
        env.number(self.as_secs_f64() * 1_000.0)
    }
}

impl<T: Counter> Counter for Option<T> {
    fn value<'e>(&self, env: Env<'e>) -> Result<Value<'e>> {
        self.as_ref().map_or_else(|| env.null(), |value| value.value(env))
    }
}

/// Makes an object of fields.
macro_rules! object {
    ($env:expr, $of:expr, $($field:ident)+) => {{
        let object = $env.object()?;
        $($env.set(object, &camel(stringify!($field)), $of.$field.value($env)?)?;)+
        object
    }};
}

fn camel(name: &str) -> String {
    crate::options::camel(name)
}

/// `stats(database)`
pub(crate) fn stats<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let stats = match call.host.handles.get(call.number::<0>()?).as_deref() {
        Some(Handle::Database { database, .. }) => database.stats(),
        _ => return call.host.failed(call.env, gone()),
    };
    of(call.env, &stats)
}

fn of<'e>(env: Env<'e>, stats: &Stats) -> Result<Value<'e>> {
    let all = object!(env, stats, journal one_connection second_copies writes_waiting reads_waiting readers_held groups
        members replays failed_commits abandoned interrupted replaced_connections parked);
    let calls = env.object()?;
    for call in &stats.calls {
        env.set(calls, &camel(call.kind), object!(env, call, count p50_us p99_us p999_us max_us))?;
    }
    env.set(all, "calls", calls)?;
    env.set(all, "inline", object!(env, stats.inline, reads writes moved interrupted queued yields longest_us))?;
    let wal = object!(env, stats.wal, frames backlog file_bytes copied_frames copies copy_p50_us copy_max_us resets
        pause_p50_us pause_p99_us pause_max_us starved cut_off waits_for_room slowed failures oldest_read);
    let cause = match &stats.wal.cause {
        Some(cause) => blocker(env, cause)?,
        None => env.null()?,
    };
    env.set(wal, "cause", cause)?;
    env.set(all, "wal", wal)?;
    env.set(
        all,
        "leases",
        object!(env, stats.leases, taken reused ended_by_commit ended_by_idle ended_by_age
        ended_by_checkpoint ended_otherwise held reused_by_writes),
    )?;
    env.set(all, "turns", object!(env, stats.turns, taken waited_us stalled failures commits_told commits_heard))?;
    env.set(
        all,
        "live",
        object!(env, stats.live, queries subscribers pending by_row by_column by_table by_commit everything
        runs unchanged deliveries superseded lag_p50_us lag_p99_us lag_max_us),
    )?;
    Ok(all)
}

fn blocker<'e>(env: Env<'e>, cause: &WalBlocker) -> Result<Value<'e>> {
    let blocker = env.object()?;
    let (kind, read) = match cause {
        WalBlocker::Read { age, sql } => ("read", Some((age, sql))),
        _ => ("foreign", None),
    };
    env.set(blocker, "kind", env.text(kind)?)?;
    if let Some((age, sql)) = read {
        env.set(blocker, "age", age.value(env)?)?;
        env.set(blocker, "sql", env.text(sql)?)?;
    }
    Ok(blocker)
}

/// `setMaxOpen(databases)`
pub(crate) fn set_max_open<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    process::set_max_open(call.number::<0>()? as usize);
    call.env.undefined()
}
