//! Streams whose consumers are behind, late, or begin anew: they get what they do not have, and nothing else.

use flatwater::live::Change;
use flatwater::stats::LiveStats;
use flatwater::{Database, Live, Row, params};
use futures_util::FutureExt;

use super::queries::shown;
use crate::place::{Place, in_both_places};
use crate::support::until;

in_both_places!(
    a_result_that_comes_back_before_it_was_missed_is_not_told,
    differences_are_made_when_a_result_is_delivered_and_not_when_it_is_taken,
    a_late_stream_of_differences_begins_with_the_full_result_and_causes_one_run_at_most,
    a_stream_that_was_polled_becomes_one_of_differences,
    the_changes_of_a_group_are_of_one_point_in_time,
    a_group_of_changes_needs_a_key_in_each_query,
);

const ITEMS: &str = "SELECT id, a FROM item ORDER BY a DESC";

async fn with_items(place: &Place) -> Database {
    let db = place.open().await;
    let script = "CREATE TABLE item (id INTEGER PRIMARY KEY, a); INSERT INTO item VALUES (1, 10), (2, 20), (3, 30)";
    db.execute_script(script).await.unwrap();
    db
}

async fn write(db: &Database, sql: &str) -> LiveStats {
    db.execute(sql, ()).await.unwrap();
    until(|| db.stats().live.pending == 0).await;
    db.stats().live
}

fn told(change: &Change) -> String {
    let row = |row: Row<'_>| format!("{:?}", row.values().collect::<Vec<_>>());
    let told = match change {
        Change::Full(rows) => format!("full {}", shown(rows)),
        Change::Rows(rows) => {
            let inserted = rows.inserted().map(|new| format!("+{}", row(new)));
            let updated = rows.updated().map(|both| format!("~{}>{}", row(both.old), row(both.new)));
            let deleted = rows.deleted().map(|old| format!("-{}", row(old)));
            inserted.chain(updated).chain(deleted).collect::<Vec<_>>().join(" ")
        }
    };
    told.replace("Integer", "")
}

async fn a_result_that_comes_back_before_it_was_missed_is_not_told(place: &Place) {
    let db = with_items(place).await;
    let (mut whole, mut changes) = (db.live(ITEMS, ()), db.live(ITEMS, ()).changes());
    let mut group = db.live_group([(ITEMS, ())]);
    whole.next().await.unwrap().unwrap();
    changes.next().await.unwrap().unwrap();
    group.next().await.unwrap().unwrap();
    let before = db.stats().live;
    let after = write(&db, "UPDATE item SET a = 11 WHERE id = 1").await;
    assert_eq!(after.deliveries, before.deliveries + 3);
    let after = write(&db, "UPDATE item SET a = 10 WHERE id = 1").await;
    assert_eq!((after.deliveries, after.superseded), (before.deliveries + 3, before.superseded + 3));
    assert!(whole.next().now_or_never().is_none() && group.next().now_or_never().is_none());
    assert!(changes.next().now_or_never().is_none());
    write(&db, "UPDATE item SET a = 12 WHERE id = 1").await;
    let told = told(&changes.next().await.unwrap().unwrap());
    assert_eq!(told, "~[(1), (10)]>[(1), (12)]");
    assert!(shown(&whole.next().await.unwrap().unwrap()).contains("12"));
    assert!(shown(&group.next().await.unwrap().unwrap()[0]).contains("12"));
}

async fn differences_are_made_when_a_result_is_delivered_and_not_when_it_is_taken(place: &Place) {
    let db = with_items(place).await;
    let mut changes = db.live("SELECT id, a > 15 FROM item ORDER BY a DESC", ()).changes();
    changes.next().await.unwrap().unwrap();
    let before = db.stats().live;
    // Another order is a result to others and no difference.
    let after = write(&db, "UPDATE item SET a = 25 WHERE id = 3").await;
    let again = write(&db, "UPDATE item SET a = 19 WHERE id = 3").await;
    assert_eq!((again.runs - before.runs, again.unchanged - before.unchanged), (2, 1), "{after:?} {again:?}");
    assert_eq!(again.deliveries, before.deliveries);
    assert!(changes.next().now_or_never().is_none());
    let after = write(&db, "UPDATE item SET a = 9 WHERE id = 3").await;
    assert_eq!(after.deliveries, before.deliveries + 1);
    assert_eq!(told(&changes.next().await.unwrap().unwrap()), "~[(3), (1)]>[(3), (0)]");
}

async fn a_late_stream_of_differences_begins_with_the_full_result_and_causes_one_run_at_most(place: &Place) {
    let db = with_items(place).await;
    let mut whole = db.live(ITEMS, ());
    whole.next().await.unwrap().unwrap();
    let before = db.stats().live;
    let mut late = db.live(ITEMS, ()).changes();
    let full = "full (3),(30) (2),(20) (1),(10)";
    assert_eq!(told(&late.next().await.unwrap().unwrap()), full);
    assert_eq!(db.stats().live.runs, before.runs + 1);
    let mut later = db.live(ITEMS, ()).changes();
    assert_eq!(told(&later.next().await.unwrap().unwrap()), full);
    assert_eq!(db.stats().live.runs, before.runs + 1);
    assert!(late.next().now_or_never().is_none() && whole.next().now_or_never().is_none());
    write(&db, "DELETE FROM item WHERE id = 3").await;
    for changes in [&mut late, &mut later] {
        assert_eq!(told(&changes.next().await.unwrap().unwrap()), "-[(3), (30)]");
    }
}

async fn a_stream_that_was_polled_becomes_one_of_differences(place: &Place) {
    let db = with_items(place).await;
    let mut whole = db.live(ITEMS, ());
    whole.next().await.unwrap().unwrap();
    let mut changes = whole.changes();
    assert_eq!(told(&changes.next().await.unwrap().unwrap()), "full (3),(30) (2),(20) (1),(10)");
    assert_eq!((db.stats().live.queries, db.stats().live.subscribers), (1, 1));
    write(&db, "DELETE FROM item WHERE id = 1").await;
    assert_eq!(told(&changes.next().await.unwrap().unwrap()), "-[(1), (10)]");
    db.close().await.unwrap();
    assert!(changes.next().await.is_none());
}

async fn next<const N: usize>(group: &mut Live<[Change; N]>) -> Vec<String> {
    group.next().await.unwrap().unwrap().iter().map(told).collect()
}

async fn the_changes_of_a_group_are_of_one_point_in_time(place: &Place) {
    let db = with_items(place).await;
    let by_size = "SELECT id, a FROM item WHERE a > ? ORDER BY id";
    let mut group = db.live_group([(by_size, params![15]), (by_size, params![25])]).changes();
    assert_eq!(next(&mut group).await, ["full (2),(20) (3),(30)", "full (3),(30)"]);
    write(&db, "INSERT INTO item VALUES (4, 16)").await;
    assert_eq!(next(&mut group).await, ["+[(4), (16)]", ""]);
    write(&db, "UPDATE item SET a = a + 10").await;
    let all = "~[(2), (20)]>[(2), (30)] ~[(3), (30)]>[(3), (40)] ~[(4), (16)]>[(4), (26)]";
    let few = "+[(2), (30)] +[(4), (26)] ~[(3), (30)]>[(3), (40)]";
    assert_eq!(next(&mut group).await, [&format!("+[(1), (20)] {all}"), few]);
    write(&db, "UPDATE item SET a = 0 WHERE id = 1").await;
    write(&db, "UPDATE item SET a = 20 WHERE id = 1").await;
    assert!(group.next().now_or_never().is_none());
}

async fn a_group_of_changes_needs_a_key_in_each_query(place: &Place) {
    let db = with_items(place).await;
    let mut group = db.live_group([(ITEMS, ()), ("SELECT count(*) FROM item", ())]).changes();
    let error = group.next().await.unwrap().unwrap_err();
    assert!(error.message().contains("have no key"), "{error}");
    assert_eq!(error.sql(), Some("SELECT count(*) FROM item"));
    assert!(group.next().await.is_none());
    assert_eq!(db.stats().live.subscribers, 0);
}
