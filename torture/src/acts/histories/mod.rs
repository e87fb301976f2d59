//! Act `histories`: random calls of every kind, by one task or by up to a thousand, compared with the same calls on
//! plain SQLite in the order in which they were committed.
//!
//! A history of one task does anything, and all its results are compared. With many tasks, statements on shared tables
//! record when they ran (`ticks`), and each task also uses tables and rows of its own in any way (`owned`). Callers
//! drop calls, deadlines pass, transactions are dropped; such work must then be done completely or not at all, which
//! the content shows.

mod compare;
mod content;
mod counters;
mod generate;
mod leaving;
mod op;
mod owned;
mod palette;
mod perform;
mod plain;
mod play;
mod replay;
mod schema;
mod setting;
mod shrink;
mod statement;
#[cfg(test)]
mod tests;
mod ticks;

use std::sync::Arc;

use rand::RngExt;

use self::compare::Difference;
use self::op::{History, Op, Told};
use self::play::Played;
use self::setting::Setting;
use self::shrink::Shrink;
use super::Act;
use crate::finding::Finding;
use crate::gauge::Gauge;
use crate::round::Round;

pub(crate) const ACT: Act = Act {
    name: "histories",
    about: "random calls of every kind from 1 to 1,000 tasks, against plain SQLite in the order of commits",
    round,
    parts: &[],
};

/// The number of operations of a history of one task, and of all tasks together of a history of many.
const ALONE: usize = 250;
const TOGETHER: usize = 2500;

fn round(round: &mut Round) -> Result<(), Finding> {
    let gauge = Arc::new(Gauge::new());
    let found = histories(round, &gauge);
    let measured = match Arc::into_inner(gauge) {
        Some(gauge) => gauge.read(&mut round.hold),
        None => Err(Finding::new("a call is still there after all histories ended")),
    };
    found.and(measured)
}

/// Runs histories of one task and of many in turn, at least one of each.
fn histories(round: &mut Round, gauge: &Arc<Gauge>) -> Result<(), Finding> {
    for number in 0.. {
        if number > 1 && !round.goes_on() {
            break;
        }
        let setting = Setting::random(&mut round.rng, number % 2 == 0);
        let most = if setting.tasks == 1 { ALONE } else { TOGETHER };
        let total = round.rng.random_range(most / 4..most);
        let history = generate::history(&mut round.rng, setting.tasks, total);
        let file = round.path(&format!("history-{number}.db"));
        let played = match play::play(&setting, &file, &history, gauge) {
            Ok(played) => played,
            Err(finding) => {
                let found =
                    Difference { at: None, what: format!("{}\n{}", finding.what, finding.history), order: Vec::new() };
                return Err(Shrink::new(&setting, round.directory(), gauge).finding(&history, &found));
            }
        };
        count(round, &history, &played);
        if let Err(difference) = compare::compare(&history, &played)? {
            return Err(Shrink::new(&setting, round.directory(), gauge).finding(&history, &difference));
        }
        for name in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(round.path(&format!("history-{number}.db{name}")));
        }
    }
    for what in ["statements", "failed calls", "dropped calls", "transactions"] {
        if round.counts.0.get(what).is_none_or(|count| *count == 0) {
            return Err(Finding::new(format!("a round had no {what}")));
        }
    }
    Ok(())
}

fn count(round: &mut Round, history: &History, played: &Played) {
    let counts = &mut round.counts;
    counts.add("histories", 1);
    counts.add("tasks", history.len() as u64);
    for part in history.iter().flatten() {
        counts.add("statements", part.op.statements());
        counts.add("transactions", u64::from(matches!(part.op, Op::Transaction { .. })));
    }
    for told in played.outcomes.iter().flatten().flat_map(|outcome| &outcome.told) {
        counts.add("failed calls", u64::from(told.is_failure()));
        counts.add("dropped calls", u64::from(*told == Told::Left));
        counts.add("missed deadlines", u64::from(*told == Told::TimedOut));
    }
    counts.add("statements on their callers' threads", played.stats.inline.reads + played.stats.inline.writes);
    counts.add("writes in groups", played.stats.members);
}
