//! Compares a history that was run with the same history on plain SQLite, in the order in which it was committed.

use rusqlite::types::Value;

use super::content::{Scope, content, cut, difference};
use super::op::{History, Leave, Op, Part, Table, Told};
use super::plain::Plain;
use super::play::{Outcome, Played};

/// A difference from plain SQLite.
#[derive(Debug, Clone)]
pub(super) struct Difference {
    /// The task and its operation, if the difference concerns one.
    pub(super) at: Option<(usize, usize)>,
    pub(super) what: String,
    /// The operations of the history in the order in which they were replayed, up to this one.
    pub(super) order: Vec<Op>,
}

/// One operation, or one of several calls that were made together.
struct Piece {
    task: usize,
    at: usize,
    op: Op,
    outcome: Outcome,
    /// When it ran, and its position among those that ran since then.
    key: (usize, usize),
}

/// Compares a complete history.
pub(super) fn compare(tasks: &History, played: &Played) -> rusqlite::Result<Result<(), Difference>> {
    let mut order: Vec<Op> = Vec::new();
    let pieces = match in_order(tasks, played) {
        Ok(pieces) => pieces,
        Err(difference) => return Ok(Err(difference)),
    };
    let mut plain = Plain::new()?;
    for piece in pieces {
        order.push(piece.op.clone());
        let scope = Scope::of_task(piece.task, tasks.len());
        if let Err(what) = explain(&mut plain, &piece.op, &piece.outcome, scope)? {
            return Ok(Err(Difference { at: Some((piece.task, piece.at)), what, order }));
        }
    }
    let differs = difference(&played.content, &content(&plain.connection, Scope::at_the_end(tasks.len()))?);
    Ok(match differs {
        Some(what) => Err(Difference { at: None, what: format!("the content differs at the end\n{what}"), order }),
        None => Ok(()),
    })
}

/// Returns the pieces in the order in which they ran, from the ticks of their statements. A piece without a tick
/// follows directly the previous piece of its task.
fn in_order(tasks: &History, played: &Played) -> Result<Vec<Piece>, Difference> {
    let mut pieces = Vec::new();
    for (task, (ops, outcomes)) in tasks.iter().zip(&played.outcomes).enumerate() {
        let mut key = (0, 0);
        for (at, (Part { number: first, op }, outcome)) in ops.iter().zip(outcomes).enumerate() {
            let parts: Vec<_> = match op {
                Op::Together(works) => {
                    let told = outcome.told.iter().map(|told| Outcome { told: vec![told.clone()], seen: None });
                    works.iter().map(|work| Op::Call(work.clone(), Leave::Stays)).zip(told).collect()
                }
                op => vec![(op.clone(), outcome.clone())],
            };
            for (number, (op, outcome)) in parts.into_iter().enumerate() {
                let tick = played.ticks.get(&(first + number as i64)).map(|tick| tick + 1);
                if tick.is_some_and(|tick| tick < key.0) {
                    let what = format!("a call ran before one that its task had made before: {op}");
                    return Err(Difference { at: Some((task, at)), what, order: Vec::new() });
                }
                key = tick.map_or((key.0, key.1 + 1), |tick| (tick, 0));
                pieces.push(Piece { task, at, op, outcome, key });
            }
        }
    }
    pieces.sort_by_key(|piece| piece.key);
    Ok(pieces)
}

/// Finds a set of dropped calls such that plain SQLite gives the same results if exactly these were done.
fn explain(plain: &mut Plain, op: &Op, outcome: &Outcome, scope: Scope) -> rusqlite::Result<Result<(), String>> {
    let left = outcome.told.iter().filter(|told| **told == Told::Left).count();
    let before = if left > 0 { Some(plain.saved()?) } else { None };
    let mut first = None;
    for choice in 0..1_u32 << left {
        if choice > 0
            && let Some(before) = &before
        {
            plain.restore(before)?;
        }
        let done: Vec<_> = (0..left).map(|call| choice >> call & 1 == 1).collect();
        let plainly = plain.replay(op, &outcome.told, &done)?;
        let mut differs = told_differently(&outcome.told, &plainly);
        if differs.is_none()
            && let Some(seen) = &outcome.seen
        {
            differs = difference(seen, &content(&plain.connection, scope)?);
        }
        match differs {
            None => return Ok(Ok(())),
            Some(what) => {
                first.get_or_insert(what);
            }
        }
    }
    let which = if left > 0 { ", whichever of the calls that nobody waited for were done" } else { "" };
    Ok(Err(format!("{}{which}\n{op}", first.unwrap_or_default())))
}

fn told_differently(ours: &[Told], plain: &[Told]) -> Option<String> {
    let at = (0..ours.len().max(plain.len())).find(|at| match (ours.get(*at), plain.get(*at)) {
        (Some(ours), Some(plain)) => !same(ours, plain),
        _ => true,
    })?;
    let told = |of: &[Told]| of.get(at).map_or("(nothing)".into(), |told| cut(&format!("{told:?}")));
    Some(format!("call {at} told\nours: {}\nplain: {}", told(ours), told(plain)))
}

/// Compares two results. Rows without ORDER BY may be in any order, and any of them may be the first: SQLite may scan one of
/// several indexes, depending on the statistics and definitions that a connection has read, and in which order.
fn same(ours: &Told, plain: &Told) -> bool {
    match (ours, plain) {
        (Told::Rows(ours), Told::Rows(plain)) => sorted(ours) == sorted(plain),
        (Told::Row(Some(ours)), Told::AnyOf(plain)) => plain.contains(ours),
        (Told::Row(None), Told::AnyOf(plain)) => plain.is_empty(),
        (Told::Batch(ours), Told::Batch(plain)) => {
            let rows = |(changes, rowid, rows): &(u64, Option<i64>, Option<Table>)| {
                (*changes, *rowid, rows.as_ref().map(sorted))
            };
            ours.iter().map(rows).eq(plain.iter().map(rows))
        }
        (Told::Each(ours), Told::Each(plain)) => {
            ours.len() == plain.len() && ours.iter().zip(plain).all(|(ours, plain)| same(ours, plain))
        }
        (ours, plain) => ours == plain,
    }
}

fn sorted((names, rows): &Table) -> (Vec<String>, Vec<String>) {
    let text = |row: &Vec<Value>| format!("{row:?}");
    let mut rows: Vec<_> = rows.iter().map(text).collect();
    rows.sort();
    (names.clone(), rows)
}
