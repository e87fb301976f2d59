//! Tests that the comparison finds errors: a test plants a fault in the outcome of a correct history.

use std::path::Path;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rusqlite::types::Value;

use super::compare::compare;
use super::counters::Counters;
use super::generate::history;
use super::op::{History, Leave, Op, Told};
use super::play::{Outcome, Played, play};
use super::setting::Setting;
use crate::gauge::Gauge;

/// Returns a history whose outcome is correct.
fn right(tasks: usize) -> (History, Played) {
    let mut rng = StdRng::seed_from_u64(7);
    let mut setting = Setting::random(&mut rng, tasks == 1);
    setting.in_memory = true;
    let history = history(&mut rng, tasks, 200);
    let played = play(&setting, Path::new(":memory:"), &history, &Arc::new(Gauge::new()));
    let played = played.unwrap_or_else(|finding| panic!("{}", finding.what));
    is_right(&history, &played).unwrap_or_else(|what| panic!("{what}"));
    (history, played)
}

fn is_right(history: &History, played: &Played) -> Result<(), String> {
    compare(history, played).expect("plain SQLite runs it").map_err(|difference| difference.what)
}

/// Plants a fault in the first outcome that allows it.
fn plant(played: &mut Played, mut fault: impl FnMut(&mut Outcome) -> bool) {
    let mut outcomes = played.outcomes.iter_mut().flatten();
    assert!(outcomes.any(&mut fault), "the history has no place for it");
}

/// Replaces a result if it is of this kind and differs from `by`.
fn is(told: &mut Told, sort: fn(&Told) -> bool, by: Told) -> bool {
    let replaces = sort(told) && *told != by;
    if replaces {
        *told = by;
    }
    replaces
}

#[test]
fn a_wrong_answer_is_found() {
    let faults: [fn(&mut Told) -> bool; 7] = [
        |told| is(told, |told| matches!(told, Told::Executed(..)), Told::Executed(99, None)),
        |told| is(told, |told| matches!(told, Told::Executed(_, Some(_))), Told::Executed(1, Some(999))),
        |told| is(told, |told| matches!(told, Told::Sqlite(..)), Told::Sqlite(1, None)),
        |told| {
            is(told, |told| matches!(told, Told::Rows((_, rows)) if !rows.is_empty()), Told::Rows(Default::default()))
        },
        |told| is(told, |told| *told == Told::Misuse, Told::Executed(0, None)),
        |told| is(told, |told| matches!(told, Told::Row(Some(cells)) if cells.len() > 1), Told::Row(None)),
        |told| is(told, |told| matches!(told, Told::Row(Some(cells)) if cells.len() > 1), Told::Row(Some(Vec::new()))),
    ];
    for fault in faults {
        let (history, mut played) = right(1);
        plant(&mut played, |outcome| outcome.told.iter_mut().any(fault));
        let found = is_right(&history, &played).expect_err("the fault is found");
        assert!(found.contains("told"), "{found}");
    }
}

#[test]
fn a_row_that_is_gone_at_the_end_is_found() {
    for tasks in [1, 5] {
        let (history, mut played) = right(tasks);
        played.content.pop();
        let found = is_right(&history, &played).expect_err("the fault is found");
        assert!(found.contains("at the end"), "{found}");
    }
}

#[test]
fn a_call_that_was_dropped_and_half_done_is_found() {
    for tasks in [1, 5] {
        let (history, mut played) = right(tasks);
        plant(&mut played, |outcome| outcome.seen.as_mut().is_some_and(|seen| seen.pop().is_some()));
        is_right(&history, &played).expect_err("the fault is found");
    }
}

#[test]
fn calls_that_changed_places_are_found() {
    let (history, mut played) = right(5);
    let last = played.ticks.len();
    played.ticks.values_mut().for_each(|tick| *tick = last - (*tick).min(last));
    is_right(&history, &played).expect_err("the fault is found");
}

#[tokio::test]
async fn a_counter_that_lost_an_addition_or_went_back_is_found() {
    let db = flatwater::Database::open(":memory:").await.unwrap();
    db.execute_script("CREATE TABLE counters (id, n); INSERT INTO counters VALUES (1, 2)").await.unwrap();
    let count = Op::Count(1, Leave::Stays);
    let number = |n| [Told::Row(Some(vec![Value::Integer(n)]))];
    let noted = |told: &[(&Op, i64, i64)]| {
        let counters = Counters::default();
        told.iter().for_each(|(op, before, n)| counters.note(op, *before, &number(*n)));
        counters
    };
    assert!(noted(&[(&count, 0, 1), (&count, 1, 2)]).are_right(&db).await.is_ok());
    // A duplicate, a missing addition, an addition that no task made, and a read that goes back.
    assert!(noted(&[(&count, 0, 1), (&count, 0, 1)]).are_right(&db).await.is_err());
    assert!(noted(&[(&count, 0, 1), (&count, 1, 2), (&count, 2, 3)]).are_right(&db).await.is_err());
    assert!(noted(&[(&count, 0, 1)]).are_right(&db).await.is_err());
    assert!(noted(&[(&count, 0, 1), (&count, 1, 2), (&Op::ReadCount(1), 2, 1)]).are_right(&db).await.is_err());
}
