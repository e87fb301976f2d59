//! The counters of a database, as dictionaries.
//!
//! Owns: their names, which are those of the API (`test_stats_have_the_names_of_rust`), and of which `flatwater._stats`
//! has the types. Runs on the caller's thread. Leaves out: what is counted.

use flatwater::stats::{Stats, WalBlocker};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Makes a dictionary of fields.
macro_rules! dictionary {
    ($py:expr, $of:expr, $($field:ident)+) => {{
        let dictionary = PyDict::new($py);
        $(dictionary.set_item(stringify!($field), $of.$field.clone())?;)+
        dictionary
    }};
}

pub(crate) fn of<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let all = dictionary!(py, stats, journal one_connection second_copies writes_waiting reads_waiting readers_held groups
        members replays failed_commits abandoned interrupted replaced_connections parked);
    let calls = PyDict::new(py);
    for call in &stats.calls {
        calls.set_item(call.kind, dictionary!(py, call, count p50_us p99_us p999_us max_us))?;
    }
    all.set_item("calls", calls)?;
    let inline = dictionary!(py, stats.inline, reads writes moved interrupted queued yields longest_us);
    all.set_item("inline", inline)?;
    let wal = dictionary!(py, stats.wal, frames backlog file_bytes copied_frames copies copy_p50_us copy_max_us resets
        pause_p50_us pause_p99_us pause_max_us starved cut_off waits_for_room slowed failures oldest_read);
    wal.set_item("cause", stats.wal.cause.as_ref().map(|cause| blocker(py, cause)).transpose()?)?;
    all.set_item("wal", wal)?;
    let leases = dictionary!(py, stats.leases, taken reused ended_by_commit ended_by_idle ended_by_age ended_by_checkpoint
        ended_otherwise held reused_by_writes);
    all.set_item("leases", leases)?;
    let turns = dictionary!(py, stats.turns, taken waited_us stalled failures commits_told commits_heard);
    all.set_item("turns", turns)?;
    let live = dictionary!(py, stats.live, queries subscribers pending by_row by_column by_table by_commit everything runs
        unchanged deliveries superseded lag_p50_us lag_p99_us lag_max_us);
    all.set_item("live", live)?;
    Ok(all)
}

fn blocker<'py>(py: Python<'py>, cause: &WalBlocker) -> PyResult<Bound<'py, PyDict>> {
    let (kind, read) = match cause {
        WalBlocker::Read { age, sql } => ("read", Some((age, sql))),
        _ => ("foreign", None),
    };
    let blocker = PyDict::new(py);
    blocker.set_item("kind", kind)?;
    blocker.set_item("age", read.map(|(age, _)| age))?;
    blocker.set_item("sql", read.map(|(_, sql)| sql))?;
    Ok(blocker)
}
