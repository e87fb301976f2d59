//! The counters of a database, by name.
//!
//! Owns: their names, which are those of the fields, and their groups. Pure. Leaves out: what is counted, and making values of
//! the host's language of them.

use std::time::Duration;

use flatwater::stats::{Stats, WalBlocker};

/// A counter, or several under one name.
#[derive(Debug, Clone, PartialEq)]
pub enum Counter<'a> {
    /// A number, or a number of microseconds.
    Number(u64),
    /// Whether something is so.
    Truth(bool),
    /// A word, or SQL.
    Text(&'a str),
    /// How long.
    Time(Duration),
    /// There is none.
    Nothing,
    /// Counters by name.
    Group(Vec<(&'a str, Counter<'a>)>),
}

macro_rules! numbers {
    ($($kind:ty)+) => {$(
        impl From<&$kind> for Counter<'_> {
            fn from(number: &$kind) -> Self {
                Self::Number(*number as u64)
            }
        }
    )+};
}
numbers!(u32 u64 usize);

impl From<&bool> for Counter<'_> {
    fn from(is_so: &bool) -> Self {
        Self::Truth(*is_so)
    }
}

impl<'a> From<&'a String> for Counter<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl From<&Option<Duration>> for Counter<'_> {
    fn from(time: &Option<Duration>) -> Self {
        time.map_or(Self::Nothing, Self::Time)
    }
}

/// Makes a list of fields.
macro_rules! fields {
    ($of:expr, $($field:ident)+) => { vec![$((stringify!($field), Counter::from(&$of.$field))),+] };
}

/// Returns all counters.
#[must_use]
pub fn counters(stats: &Stats) -> Vec<(&str, Counter<'_>)> {
    let mut all = fields!(stats, journal one_connection second_copies writes_waiting reads_waiting readers_held groups
        members replays failed_commits abandoned interrupted replaced_connections prepared_again parked);
    let calls = stats.calls.iter();
    let calls = calls.map(|call| (call.kind, Counter::Group(fields!(call, count p50_us p99_us p999_us max_us))));
    all.push(("calls", Counter::Group(calls.collect())));
    let inline = fields!(stats.inline, reads writes moved interrupted moved_to_prepare queued queued_busy queued_unknown
        queued_long queued_backoff queued_breaker yields longest_us);
    all.push(("inline", Counter::Group(inline)));
    let mut wal = fields!(stats.wal, frames backlog file_bytes copied_frames copies copy_p50_us copy_max_us resets
        pause_p50_us pause_p99_us pause_max_us starved cut_off waits_for_room slowed failures oldest_read);
    wal.push(("cause", stats.wal.cause.as_ref().map_or(Counter::Nothing, blocker)));
    all.push(("wal", Counter::Group(wal)));
    let leases = fields!(stats.leases, taken reused ended_by_commit ended_by_idle ended_by_age ended_by_checkpoint
        ended_otherwise held reused_by_writes);
    all.push(("leases", Counter::Group(leases)));
    let turns = fields!(stats.turns, taken waited_us stalled failures commits_announced commits_heard);
    all.push(("turns", Counter::Group(turns)));
    let live = fields!(stats.live, queries subscribers pending by_row by_column by_table by_commit everything runs
        unchanged deliveries superseded lag_p50_us lag_p99_us lag_max_us);
    all.push(("live", Counter::Group(live)));
    all
}

fn blocker(cause: &WalBlocker) -> Counter<'_> {
    let (kind, age, sql) = match cause {
        WalBlocker::Read { age, sql } => ("read", Counter::Time(*age), Counter::Text(sql)),
        _ => ("foreign", Counter::Nothing, Counter::Nothing),
    };
    Counter::Group(vec![("kind", Counter::Text(kind)), ("age", age), ("sql", sql)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_names_of_their_fields() {
        let db = flatwater::Database::open(":memory:").wait().unwrap();
        db.execute("CREATE TABLE t (a)", ()).wait().unwrap();
        let stats = db.stats();
        let all = counters(&stats);
        let of = |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, counter)| counter.clone());
        assert_eq!(of("journal"), Some(Counter::Text("memory")));
        assert_eq!(of("one_connection"), Some(Counter::Truth(true)));
        let Some(Counter::Group(calls)) = of("calls") else { panic!("{all:?}") };
        let Some((_, Counter::Group(executed))) = calls.iter().find(|(kind, _)| *kind == "execute") else {
            panic!("{calls:?}")
        };
        assert_eq!(executed[0], ("count", Counter::Number(1)));
        let Some(Counter::Group(wal)) = of("wal") else { panic!("{all:?}") };
        assert!(wal.contains(&("cause", Counter::Nothing)) && wal.contains(&("oldest_read", Counter::Nothing)));
    }
}
