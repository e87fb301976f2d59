//! Callers that leave, and deadlines.

use std::time::{Duration, Instant};

use flatwater::ErrorKind;
use flatwater::calls::{CancelOutcome, TimeoutEffect};
use flatwater_remote::{Level, Remote};
use futures_util::poll;
use serde_json::json;

use super::double::{Double, runtime, wait_until};

#[test]
fn a_thousand_callers_that_leave_keep_no_connection_and_no_place() {
    let double = Double::start();
    // A read that hangs does so for longer than the test takes, unless its caller leaves.
    let remote = patient(&double);
    runtime().block_on(async {
        double.order(&json!({ "script": vec!["hang_before"; 64] }));
        let before = double.requests();
        let mut calls: Vec<_> = (0..1000).map(|_| remote.query("SELECT count(*) FROM t", ())).collect();
        for call in &mut calls {
            assert!(poll!(call).is_pending());
        }
        wait_until(|| double.requests() == before + 64);
        let began = Instant::now();
        drop(calls);
        assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
        assert!(began.elapsed() < Duration::from_secs(60));
    });
}

/// No attempt is given up before the test has released it.
fn patient(double: &Double) -> Remote {
    double.settled(double.options().attempt_timeout(Duration::from_secs(100)), "CREATE TABLE t (a)")
}

#[test]
fn a_write_that_waits_is_withdrawn_and_one_that_was_sent_is_finished() {
    let double = Double::start();
    let remote = patient(&double);
    runtime().block_on(async {
        double.order(&json!({ "script": ["waits"] }));
        let before = double.requests();
        let mut sent = remote.execute("INSERT INTO t VALUES (1)", ());
        assert!(poll!(&mut sent).is_pending());
        wait_until(|| double.requests() > before);
        let mut waits = remote.execute("INSERT INTO t VALUES (2)", ());
        assert!(poll!(&mut waits).is_pending());
        assert_eq!(waits.cancel(), CancelOutcome::Withdrawn);
        assert_eq!(sent.cancel(), CancelOutcome::WriteRunning);
        double.order(&json!({ "release": true }));
        // Behind both.
        remote.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
        assert_eq!(remote.query_values::<i64>("SELECT a FROM t ORDER BY a", ()).await.unwrap(), [1, 3]);
    });
}

#[test]
fn a_deadline_says_what_is_known() {
    let double = Double::start();
    let remote = patient(&double);
    runtime().block_on(async {
        double.order(&json!({ "script": ["waits"] }));
        let before = double.requests();
        let mut first = remote.execute("INSERT INTO t VALUES (1)", ());
        assert!(poll!(&mut first).is_pending());
        wait_until(|| double.requests() > before);
        // It waits behind the first one.
        let waits = remote.execute("INSERT INTO t VALUES (2)", ()).timeout(Duration::from_millis(50));
        let error = waits.await.unwrap_err();
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)));
        double.order(&json!({ "release": true }));
        first.await.unwrap();
        double.order(&json!({ "script": ["waits"] }));
        let sent = remote.execute("INSERT INTO t VALUES (3)", ()).timeout(Duration::from_secs(3));
        let error = sent.await.unwrap_err();
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::Unknown)));
        double.order(&json!({ "release": true }));
        remote.execute("INSERT INTO t VALUES (4)", ()).await.unwrap();
        let seen: Vec<i64> = remote.query_values("SELECT a FROM t WHERE a != 3 ORDER BY a", ()).await.unwrap();
        assert_eq!(seen, [1, 4]);
    });
}

/// The threads of connections that this process has.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "fw-remote").count()
}

#[test]
#[ignore = "runs alone in a child of another test"]
fn a_dropped_session_has_no_thread() {
    let double = Double::start();
    // The call has the session.
    let call = double.connect().execute("CREATE TABLE t (a)", ());
    call.wait().unwrap();
    let remote = double.connect();
    let level = remote.with_level(Level::Strong);
    drop(remote);
    assert_eq!(level.query_value::<i64>("SELECT 1", ()).wait().unwrap(), 1);
    assert!(threads() > 0);
    drop(level);
    wait_until(|| threads() == 0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_session_that_is_dropped_ends_its_thread() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "cancelled::a_dropped_session_has_no_thread"])
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}
