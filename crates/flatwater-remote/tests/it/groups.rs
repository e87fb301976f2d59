//! Writes that wait share a request.

use flatwater::ErrorKind;
use serde_json::json;

use super::double::Double;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn writes_that_begin_together_share_a_request_and_each_has_its_own_result() {
    let double = Double::start();
    let remote = double.connect();
    remote.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ()).wait().unwrap();
    double.order(&json!({ "commit_us": 20_000 }));
    let before = double.requests();
    runtime().block_on(async {
        let calls = (1..=100).map(|number| remote.execute("INSERT INTO t VALUES (?, ?)", (number, number)));
        let results = futures_util::future::join_all(calls).await;
        for (number, result) in (1..).zip(results) {
            assert_eq!(result.unwrap().last_insert_rowid, Some(number));
        }
    });
    let requests = double.requests() - before;
    assert!(requests <= 4, "100 writes took {requests} requests");
}

#[test]
fn a_write_that_fails_fails_alone() {
    let double = Double::start();
    let remote = double.connect();
    remote.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)", ()).wait().unwrap();
    double.order(&json!({ "commit_us": 5_000 }));
    runtime().block_on(async {
        // 0, 7, 14 and so on come twice.
        let numbers: Vec<i64> = (0..100).flat_map(|number| [number].repeat(1 + usize::from(number % 7 == 0))).collect();
        let calls = numbers.iter().map(|number| remote.execute("INSERT INTO t VALUES (?)", (*number,)));
        let results = futures_util::future::join_all(calls).await;
        let mut before = None;
        for (number, result) in numbers.iter().zip(results) {
            match result {
                Ok(result) => assert_eq!(result.last_insert_rowid, Some(*number)),
                Err(error) => {
                    assert_eq!((error.kind(), before), (ErrorKind::Constraint, Some(*number)), "{error}");
                    assert!(error.to_string().contains("INSERT INTO t"), "{error}");
                }
            }
            before = Some(*number);
        }
    });
    assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), 100);
}

#[test]
fn ten_thousand_callers_are_served_in_their_order() {
    let double = Double::start();
    let remote = double.connect();
    remote.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ()).wait().unwrap();
    runtime().block_on(async {
        let calls = (0..10_000).map(|number| remote.execute("INSERT INTO t (b) VALUES (?)", (number,)));
        for (number, result) in (1..).zip(futures_util::future::join_all(calls).await) {
            assert_eq!(result.unwrap().last_insert_rowid, Some(number));
        }
    });
    let wrong: i64 = remote.query_value("SELECT count(*) FROM t WHERE a != b + 1", ()).wait().unwrap();
    assert_eq!(wrong, 0);
}
