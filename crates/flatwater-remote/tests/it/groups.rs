//! Writes that wait share a request.

use std::time::Duration;

use flatwater::ErrorKind;
use futures_util::future::join_all;
use futures_util::poll;
use serde_json::json;

use super::double::{Double, runtime, wait_until};

#[test]
fn writes_that_begin_together_share_a_request_and_each_has_its_own_result() {
    let double = Double::start();
    let options = double.options().attempt_timeout(Duration::from_secs(100));
    let remote = double.settled(options, "CREATE TABLE t (a INTEGER PRIMARY KEY, b)");
    double.order(&json!({ "script": ["waits"] }));
    let before = double.requests();
    runtime().block_on(async {
        let mut first = remote.execute("INSERT INTO t VALUES (?, ?)", (0, 0));
        assert!(poll!(&mut first).is_pending());
        wait_until(|| double.requests() > before);
        let calls = (1..=100).map(|number| remote.execute("INSERT INTO t VALUES (?, ?)", (number, number)));
        let mut together = join_all(calls);
        assert!(poll!(&mut together).is_pending());
        double.order(&json!({ "release": true }));
        first.await.unwrap();
        for (number, result) in (1..).zip(together.await) {
            assert_eq!(result.unwrap().last_insert_rowid, Some(number));
        }
    });
    assert_eq!(double.requests() - before, 2);
}

/// It is found at the commit of all of them, and not at its statement.
#[test]
fn a_write_that_fails_at_the_commit_fails_alone() {
    let double = Double::start();
    double.order(&json!({ "foreign_keys": true }));
    let remote = double.connect();
    let schema = "CREATE TABLE p (a INTEGER PRIMARY KEY);
        CREATE TABLE c (a REFERENCES p (a) DEFERRABLE INITIALLY DEFERRED); INSERT INTO p VALUES (1)";
    remote.execute_script(schema).wait().unwrap();
    runtime().block_on(async {
        double.order(&json!({ "commit_us": 5_000 }));
        let calls = (0..20).map(|number| remote.execute("INSERT INTO c VALUES (?)", (i64::from(number % 5 != 3),)));
        for (number, result) in join_all(calls).await.into_iter().enumerate() {
            match result {
                Ok(_) => assert_ne!(number % 5, 3),
                Err(error) => assert_eq!((number % 5, error.kind()), (3, ErrorKind::Constraint), "{error}"),
            }
        }
    });
    assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM c", ()).wait().unwrap(), 16);
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
        let results = join_all(calls).await;
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
        for (number, result) in (1..).zip(join_all(calls).await) {
            assert_eq!(result.unwrap().last_insert_rowid, Some(number));
        }
    });
    let wrong: i64 = remote.query_value("SELECT count(*) FROM t WHERE a != b + 1", ()).wait().unwrap();
    assert_eq!(wrong, 0);
}
