//! Each fault of a server, and what comes of it.

use std::time::{Duration, Instant};

use flatwater::ErrorKind;
use flatwater::calls::TimeoutEffect;
use flatwater_remote::{Remote, RemoteOptions};
use serde_json::json;

use super::double::Double;

const FAULTS: [&str; 16] = [
    "twice",
    "drop_before",
    "drop_after",
    "half_an_answer",
    "hang_before",
    "hang_after",
    "executed_late",
    "lost_before",
    "lost_after",
    "transfer",
    "no_leader",
    "nonsense",
    "nothing",
    "error_after",
    "circle",
    "endless",
];

#[test]
fn what_each_fault_comes_to() {
    let double = Double::start();
    let remote = double.settled(double.options(), "CREATE TABLE t (a)");
    for (number, fault) in (1..).zip(FAULTS) {
        double.order(&json!({ "script": [fault] }));
        remote.execute("INSERT INTO t VALUES (?)", (number,)).wait().unwrap_or_else(|error| panic!("{fault}: {error}"));
        double.order(&json!({ "script": [fault] }));
        let count: i64 =
            remote.query_value("SELECT count(*) FROM t", ()).wait().unwrap_or_else(|error| panic!("{fault}: {error}"));
        assert_eq!(count, number, "{fault}");
    }
}

#[test]
fn an_error_of_the_leader_alone_tells_nothing_of_the_other_nodes() {
    let double = Double::start();
    let remote = double.settled(double.options(), "CREATE TABLE t (a)");
    double.order(&json!({ "script": ["full"], "lag_ms": 0 }));
    let error = remote.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown);
    assert!(error.message().contains("disk is full"), "{error}");
    assert_eq!(remote.query_values::<i64>("SELECT a FROM t", ()).wait().unwrap(), [] as [i64; 0]);
    remote.execute("INSERT INTO t VALUES (2)", ()).wait().unwrap();
    assert_eq!(remote.query_values::<i64>("SELECT a FROM t", ()).wait().unwrap(), [2]);
}

#[test]
fn without_a_leader_a_call_ends_in_its_time_and_has_done_nothing() {
    let double = Double::start();
    let remote = double.connect();
    remote.execute("CREATE TABLE t (a)", ()).wait().unwrap();
    double.order(&json!({ "headless": true }));
    let began = Instant::now();
    let hasty = remote.with_timeout(Duration::from_millis(300));
    let errors = [
        hasty.query("SELECT 1", ()).wait().unwrap_err(),
        Remote::with(double.options().timeout(Duration::from_millis(300)))
            .unwrap()
            .execute("INSERT INTO t VALUES (1)", ())
            .wait()
            .unwrap_err(),
    ];
    for error in errors {
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
        assert!(error.is_retryable());
    }
    assert!(began.elapsed() < Duration::from_secs(30));
    // A level that needs no leader.
    let none = remote.with_level(flatwater_remote::Level::None { freshness: None });
    assert_eq!(none.query_value::<i64>("SELECT 1", ()).wait().unwrap(), 1);
    double.order(&json!({ "leader": 2 }));
    remote.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
    assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), 1);
}

#[test]
fn a_cluster_that_is_not_there_is_an_error_in_the_time_of_the_call_and_without_its_password() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for scheme in ["rqlite", "rqlites"] {
        let options = RemoteOptions::new(&format!("{scheme}://ada:secret@{nobody}/?timeout=200ms")).unwrap();
        let remote = Remote::with(options).unwrap();
        for error in
            [remote.execute("DELETE FROM t", ()).wait().unwrap_err(), remote.query("SELECT 1", ()).wait().unwrap_err()]
        {
            assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
            let shown = format!("{error} {error:?} {remote:?}");
            assert!(!shown.contains("secret") && shown.contains("reached"), "{shown}");
        }
    }
}

#[test]
fn the_other_nodes_are_asked_if_one_is_not_there() {
    let double = Double::start();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let remote = Remote::connect(&format!("rqlite://{nobody},{}", double.nodes[2])).unwrap();
    remote.execute("CREATE TABLE t (a)", ()).wait().unwrap();
    assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), 0);
}
