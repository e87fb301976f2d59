//! Each write is applied once, whatever goes wrong, and each acknowledged one is there.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flatwater::ErrorKind;
use flatwater_remote::Remote;
use futures_util::future::join_all;
use futures_util::poll;
use serde_json::json;

use super::double::{Double, wait_until};

const CLIENTS: i64 = 4;
const TASKS: i64 = 8;
const WRITES: i64 = 25;

/// Counts in the database, so that a write that is applied twice is seen.
const COUNT: &str = "INSERT INTO counts VALUES (?, 1) ON CONFLICT DO UPDATE SET n = n + 1";

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Several clients write with faults by chance. Then the numbers of writes, and what each was told, are compared with the
/// database.
fn history(seed: u64, chance: f64) {
    let double = Double::start();
    double.connect().execute("CREATE TABLE counts (id INTEGER PRIMARY KEY, n)", ()).wait().unwrap();
    double.order(&json!({ "chance": chance, "seed": seed }));
    let failing = Arc::new(AtomicU64::new(0));
    runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for client in 0..CLIENTS {
            let remote = Remote::with(double.options().attempt_timeout(Duration::from_millis(100))).unwrap();
            for task in 0..TASKS {
                let (remote, failing) = (remote.clone(), failing.clone());
                tasks.spawn(async move {
                    for write in 0..WRITES {
                        let id = (client * TASKS + task) * WRITES + write;
                        if write % 7 == 6 {
                            // It fails alone, and those beside it do not.
                            let error =
                                remote.execute("INSERT INTO counts VALUES (?, NULL, 3)", (id,)).await.unwrap_err();
                            assert_eq!(error.kind(), ErrorKind::Sql, "seed {seed}: {error}");
                            failing.fetch_add(1, Ordering::Relaxed);
                            continue;
                        }
                        let done = remote.execute(COUNT, (id,)).await;
                        let done = done.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                        assert_eq!((done.changes, done.last_insert_rowid), (1, Some(id)), "seed {seed}");
                    }
                });
            }
        }
        while let Some(task) = tasks.join_next().await {
            task.unwrap();
        }
    });
    double.order(&json!({ "chance": 0.0 }));
    let counts: HashMap<i64, i64> =
        double.connect().query_as("SELECT id, n FROM counts", ()).wait().unwrap().into_iter().collect();
    assert_eq!(counts.len() as u64 + failing.load(Ordering::Relaxed), (CLIENTS * TASKS * WRITES).unsigned_abs());
    assert!(counts.values().all(|n| *n == 1), "seed {seed}: {counts:?}");
}

#[test]
fn each_write_is_applied_once_whatever_goes_wrong() {
    for _ in 0..2 {
        history(rand::random(), 0.15);
    }
}

#[test]
fn each_write_is_applied_once_if_every_second_request_goes_wrong() {
    history(rand::random(), 0.5);
}

#[test]
fn what_arrives_after_its_client_gave_up_is_not_applied_any_more() {
    let double = Double::start();
    let remote = double.connect();
    remote.execute("CREATE TABLE counts (id INTEGER PRIMARY KEY, n)", ()).wait().unwrap();
    let hasty = double.options().attempt_timeout(Duration::from_millis(50)).timeout(Duration::from_millis(100));
    let hasty = Remote::with(hasty).unwrap();
    // So that its writer has a row. On a busy machine it may not be in time.
    while hasty.execute("UPDATE counts SET n = n", ()).wait().is_err() {}
    double.order(&json!({ "script": ["executed_late", "executed_late", "executed_late", "executed_late"] }));
    let error = hasty.execute(COUNT, (1,)).wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    double.order(&json!({ "clear": true }));
    // The next request has a higher number.
    let mut id = 2;
    while hasty.execute(COUNT, (id,)).wait().is_err() {
        id += 1;
    }
    let counts = || remote.query_as::<(i64, i64)>("SELECT id, n FROM counts ORDER BY id", ()).wait().unwrap();
    let before = counts();
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(counts(), before);
    assert!(before.iter().all(|(_, n)| *n == 1) && before.last() == Some(&(id, 1)), "{before:?}");
}

/// Two writes go together, and an attempt is held in a buffer of the server. The second attempt fails because of the second
/// write; then what made it fail goes, and what was held is executed.
#[test]
fn an_attempt_that_is_late_is_not_applied_beside_what_is_sent_instead() {
    let double = Double::start();
    let (remote, other) = (double.connect(), double.connect());
    other
        .execute_script("CREATE TABLE counts (id INTEGER PRIMARY KEY, n); CREATE TABLE flags (a UNIQUE); INSERT INTO flags VALUES (1)")
        .wait()
        .unwrap();
    remote.execute(COUNT, (0,)).wait().unwrap();
    // What follows the first write of each has been done: the tables of the guard, and the removal of what is old.
    wait_until(|| double.requests() >= 6);
    runtime().block_on(async {
        // While it waits, the two wait for the next request.
        double.order(&json!({ "script": ["waits", "held", "none", "none", "hang_before"] }));
        let before = double.requests();
        let mut first = remote.execute(COUNT, (0,));
        assert!(poll!(&mut first).is_pending());
        wait_until(|| double.requests() > before);
        let mut together = join_all([remote.execute(COUNT, (1,)), remote.execute("INSERT INTO flags VALUES (1)", ())]);
        assert!(poll!(&mut together).is_pending());
        // Then come the attempt; the question what became of it; the second attempt; and what follows that.
        double.order(&json!({ "release": true }));
        first.await.unwrap();
        wait_until(|| double.requests() >= before + 5);
        other.execute("DELETE FROM flags", ()).await.unwrap();
        double.order(&json!({ "release": true }));
        // The second one was applied with what was held, or it was ended before that.
        let [one, other_one] = <[_; 2]>::try_from(together.await).unwrap();
        assert_eq!(one.unwrap().changes, 1);
        assert!(other_one.is_ok() || other_one.is_err_and(|error| error.kind() == ErrorKind::Constraint));
        let counts: Vec<(i64, i64)> = other.query_as("SELECT id, n FROM counts ORDER BY id", ()).await.unwrap();
        assert_eq!(counts, [(0, 2), (1, 1)]);
    });
}

#[test]
fn the_results_of_a_write_whose_answer_was_lost_are_those_of_the_time_when_it_was_applied() {
    for fault in ["drop_after", "lost_after", "half_an_answer", "error_after", "hang_after", "twice"] {
        let double = Double::start();
        let remote = double.settled(double.options(), "CREATE TABLE t (a INTEGER PRIMARY KEY, b)");
        let lost = || double.order(&json!({ "script": [fault] }));
        lost();
        let inserted = remote.execute("INSERT INTO t (b) VALUES (1), (2)", ()).wait().unwrap();
        assert_eq!((inserted.changes, inserted.last_insert_rowid), (2, Some(2)), "{fault}");
        lost();
        let updated = remote.execute("UPDATE t SET b = b + 1 WHERE a = 1", ()).wait().unwrap();
        assert_eq!((updated.changes, updated.last_insert_rowid), (1, None), "{fault}");
        lost();
        assert_eq!(remote.execute_many("INSERT INTO t (b) VALUES (?)", [(5,), (6,), (7,)]).wait().unwrap(), 3);
        lost();
        let batch = remote.batch([("UPDATE t SET b = 0", ()), ("DELETE FROM t WHERE a > 3", ())]).wait().unwrap();
        assert_eq!(batch.iter().map(|one| one.changes).collect::<Vec<_>>(), [5, 2], "{fault}");
        lost();
        let error = remote.query("INSERT INTO t (b) VALUES (9) RETURNING a", ()).wait().unwrap_err();
        assert_eq!(error.applied(), Some(flatwater::calls::TimeoutEffect::Yes), "{fault}: {error}");
        assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), 4, "{fault}");
    }
}

#[test]
fn what_old_writers_left_is_removed_and_what_writes_have_is_bounded() {
    let double = Double::start();
    let remote = double.connect();
    remote.execute("CREATE TABLE t (a)", ()).wait().unwrap();
    remote.execute_script("UPDATE _flatwater_writers SET at = 5, marked = 5").wait().unwrap();
    // The writer of before is old now; its own next request makes it a new one.
    let other = double.connect();
    for _ in 0..20 {
        other.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
    }
    let count = |table: &str| other.query_value::<i64>(&format!("SELECT count(*) FROM {table}"), ()).wait().unwrap();
    wait_until(|| (count("_flatwater_writers"), count("_flatwater_results")) == (1, 1));
    remote.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
    assert_eq!((count("_flatwater_writers"), count("t")), (2, 21));
}
