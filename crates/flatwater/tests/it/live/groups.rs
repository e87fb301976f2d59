//! Several live queries whose results are of one snapshot.

use flatwater::live::{Change, LiveRows};
use flatwater::{Database, ErrorKind, Live, Value, params};

use crate::place::{Place, in_both_places};

in_both_places!(
    results_of_a_group_are_of_one_point_in_time_and_come_together,
    a_group_runs_again_when_a_change_meets_one_of_its_queries,
    an_error_of_one_query_is_one_of_its_group,
    a_group_without_a_query_is_refused,
    results_have_the_form_of_the_queries,
);

async fn with_items(place: &Place) -> Database {
    let db = place.open().await;
    let script =
        "CREATE TABLE item (id INTEGER PRIMARY KEY, a); CREATE TABLE other (a); INSERT INTO item VALUES (1, 10)";
    db.execute_script(script).await.unwrap();
    db
}

/// Returns the next results of a group whose queries return integers: each row by row.
async fn next<const N: usize>(group: &mut Live<[LiveRows; N]>) -> Vec<Vec<Value>> {
    let results = group.next().await.expect("the stream is over").unwrap();
    let numbers: Vec<u64> = results.iter().map(LiveRows::commit).collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
    results.iter().map(|rows| rows.iter().map(|row| row.get(0).unwrap()).collect()).collect()
}

fn integers(values: &[i64]) -> Vec<Value> {
    values.iter().map(|value| Value::Integer(*value)).collect()
}

async fn results_of_a_group_are_of_one_point_in_time_and_come_together(place: &Place) {
    let db = with_items(place).await;
    let queries = [("SELECT a FROM item ORDER BY id", params![]), ("SELECT count(*) FROM item", params![])];
    let mut group = db.live_group(queries);
    assert_eq!(next(&mut group).await, [integers(&[10]), integers(&[1])]);
    let writer = db.clone();
    let writes = tokio::spawn(async move {
        for number in 0..200 {
            writer.execute("INSERT INTO item (a) VALUES (?)", (number,)).await.unwrap();
        }
    });
    loop {
        let results = next(&mut group).await;
        let [rows, count] = &results[..] else { panic!("{results:?}") };
        assert_eq!(count, &[Value::Integer(rows.len() as i64)]);
        if rows.len() == 201 {
            break;
        }
    }
    writes.await.unwrap();
    let stats = db.stats().live;
    assert_eq!((stats.queries, stats.subscribers), (1, 1));
}

async fn a_group_runs_again_when_a_change_meets_one_of_its_queries(place: &Place) {
    let db = with_items(place).await;
    db.execute("INSERT INTO item VALUES (2, 20)", ()).await.unwrap();
    const BY_ID: &str = "SELECT a FROM item WHERE id = ?";
    let mut group = db.live_group([(BY_ID, (1,)), (BY_ID, (2,))]);
    assert_eq!(next(&mut group).await, [integers(&[10]), integers(&[20])]);
    let runs = db.stats().live.runs;
    db.execute("INSERT INTO item VALUES (3, 30)", ()).await.unwrap();
    db.execute("INSERT INTO other VALUES (1)", ()).await.unwrap();
    assert_eq!(db.stats().live.runs, runs);
    for (id, expected) in [(2, [10, 21]), (1, [11, 21])] {
        db.execute("UPDATE item SET a = a + 1 WHERE id = ?", (id,)).await.unwrap();
        assert_eq!(next(&mut group).await, expected.map(|value| integers(&[value])));
    }
    assert_eq!(db.stats().live.runs, runs + 2);
    // The same queries in another order are another group.
    let mut turned = db.live_group([(BY_ID, (2,)), (BY_ID, (1,))]);
    assert_eq!(next(&mut turned).await, [integers(&[21]), integers(&[11])]);
    drop(group);
    db.execute("UPDATE item SET a = 0 WHERE id = 2", ()).await.unwrap();
    assert_eq!(next(&mut turned).await, [integers(&[0]), integers(&[11])]);
    assert_eq!(db.stats().live.queries, 1);
}

async fn an_error_of_one_query_is_one_of_its_group(place: &Place) {
    let db = with_items(place).await;
    let mut group = db.live_group([("SELECT a FROM item", ()), ("SELECT a FROM other", ())]);
    assert_eq!(next(&mut group).await, [integers(&[10]), vec![]]);
    db.execute("DROP TABLE other", ()).await.unwrap();
    let error = group.next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, "no such table: other"));
    db.execute_script("UPDATE item SET a = 11; CREATE TABLE other (a)").await.unwrap();
    assert_eq!(next(&mut group).await, [integers(&[11]), vec![]]);
}

async fn a_group_without_a_query_is_refused(place: &Place) {
    let db = with_items(place).await;
    let mut none = db.live_group(Vec::<(&str, ())>::new());
    assert_eq!(none.next().await.unwrap().unwrap_err().kind(), ErrorKind::Misuse);
    assert!(none.next().await.is_none());
}

async fn results_have_the_form_of_the_queries(place: &Place) {
    let db = with_items(place).await;
    let mut tuple = db.live_group((("SELECT id, a FROM item WHERE a > ?", (5,)), ("SELECT id FROM item", ())));
    let (rows, ids) = tuple.next().await.unwrap().unwrap();
    assert_eq!((rows.read::<(i64, i64)>().unwrap(), ids.len()), (vec![(1, 10)], 1));
    let mut changes = tuple.changes();
    let (Change::Full(_), Change::Full(_)) = changes.next().await.unwrap().unwrap() else {
        panic!("the first is full")
    };
    db.execute("UPDATE item SET a = 11", ()).await.unwrap();
    let (Change::Rows(rows), Change::Rows(ids)) = changes.next().await.unwrap().unwrap() else { panic!("it changed") };
    assert_eq!((rows.updated().len(), ids.updated().len()), (1, 0));
    let mut list = db.live_group(vec![("SELECT a FROM item", ()), ("SELECT count(*) FROM item", ())]);
    assert_eq!(list.next().await.unwrap().unwrap().len(), 2);
}
