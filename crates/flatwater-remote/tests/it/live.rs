//! Live queries on a server, which are told nothing by it.

use std::time::Duration;

use flatwater::live::LiveRows;
use flatwater::{ErrorKind, Live, Result, Session};
use flatwater_remote::Remote;
use futures_util::future::{join, join_all};
use futures_util::poll;
use serde_json::json;

use super::double::{Double, runtime};
use super::sqld::Sqld;

const COUNT: &str = "SELECT count(*) FROM t";

fn number(rows: &LiveRows) -> i64 {
    rows.get(0).unwrap().get::<i64>(0).unwrap()
}

async fn next(live: &mut Live) -> Result<i64> {
    live.next().await.expect("it is over").map(|rows| number(&rows))
}

/// Waits for a number. Those before it only grow.
async fn until(live: &mut Live, expected: i64) {
    let mut last = -1;
    while last != expected {
        let now = next(live).await.unwrap();
        assert!(now > last && now <= expected, "{now} after {last}");
        last = now;
    }
}

async fn insert(on: &Session, times: i64) {
    join_all((0..times).map(|n| on.execute("INSERT INTO t VALUES (?)", (n,)))).await.into_iter().for_each(|done| {
        done.unwrap();
    });
}

/// What holds on each server. `other` is another client.
async fn tells(remote: &Remote, other: &Remote) {
    remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let mut live = remote.live(COUNT, ());
    assert_eq!(next(&mut live).await.unwrap(), 0);
    insert(remote, 1).await;
    until(&mut live, 1).await;
    insert(other, 20).await;
    until(&mut live, 21).await;
    // A result that is the same is not told.
    other.execute("UPDATE t SET a = a + 1", ()).await.unwrap();
    insert(other, 1).await;
    assert_eq!(next(&mut live).await.unwrap(), 22);
    let mut group = remote.live_group(((COUNT, ()), ("SELECT sum(a) FROM t WHERE a > ?", (100,))));
    let (count, sum) = group.next().await.unwrap().unwrap();
    assert_eq!((number(&count), sum.get(0).unwrap().get::<Option<i64>>(0).unwrap()), (22, None));
    // All of an item is of one state.
    let writes = async {
        for n in 101..111 {
            other.batch([("INSERT INTO t VALUES (?)", (n,)), ("UPDATE t SET a = a WHERE a = ?", (n,))]).await.unwrap();
        }
    };
    let reads = async {
        loop {
            let (count, sum) = group.next().await.unwrap().unwrap();
            let count = number(&count) - 22;
            let sum = sum.get(0).unwrap().get::<Option<i64>>(0).unwrap().unwrap_or_default();
            assert_eq!(sum, (101..101 + count).sum::<i64>());
            if count == 10 {
                break;
            }
        }
    };
    join(writes, reads).await;
    // An error is an item, and the stream goes on.
    let mut missing = remote.live("SELECT count(*) FROM u", ());
    assert_eq!(next(&mut missing).await.unwrap_err().kind(), ErrorKind::Sql);
    other.execute("CREATE TABLE u (a)", ()).await.unwrap();
    while next(&mut missing).await != Ok(0) {}
    for wrong in ["INSERT INTO t VALUES (1) RETURNING a", "DELETE FROM t", "PRAGMA user_version"] {
        let mut wrong = remote.live(wrong, ());
        assert_eq!(wrong.next().await.unwrap().unwrap_err().kind(), ErrorKind::Misuse);
        assert!(wrong.next().await.is_none());
    }
    let error = remote.live(COUNT, ()).changes().next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.hint().is_some()), (ErrorKind::Misuse, true));
    remote.close().await.unwrap();
    while live.next().await.is_some() {}
}

#[test]
fn a_live_query_tells_of_each_commit_on_a_cluster() {
    let double = Double::start();
    runtime().block_on(tells(&double.connect(), &double.connect()));
}

#[test]
fn a_live_query_needs_no_other_permission_and_asks_nothing_when_it_is_over() {
    let double = Double::start();
    double.order(&json!({ "refuses_status": true }));
    let poll_ms = Duration::from_millis(5);
    let (remote, other) = (Remote::with(double.options().live_poll(poll_ms)).unwrap(), double.connect());
    runtime().block_on(async {
        remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let mut live = remote.live(COUNT, ());
        assert_eq!(next(&mut live).await.unwrap(), 0);
        insert(&other, 3).await;
        until(&mut live, 3).await;
        drop(live);
        let looks = || double.order(&json!({}))["looks"].as_u64().unwrap();
        let mut before = looks();
        // The last one may be under way.
        loop {
            tokio::time::sleep(poll_ms * 20).await;
            let now = looks();
            if now == before {
                break;
            }
            before = now;
        }
    });
}

#[test]
fn a_live_query_gets_to_the_last_commit_whatever_goes_wrong() {
    let double = Double::start();
    let (remote, other) = (double.connect(), double.connect());
    runtime().block_on(async {
        remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
        double.order(&json!({ "chance": 0.2, "seed": rand::random::<u64>(), "lag_ms": 30 }));
        let (mut live, mut idle) = (remote.live(COUNT, ()), other.live(COUNT, ()));
        // It begins, and may have its first result at once.
        let _ = poll!(Box::pin(idle.next()));
        let writes = async {
            for _ in 0..30 {
                insert(&other, 2).await;
                double.order(&json!({ "leader": rand::random_range(0..3_u32) }));
            }
        };
        join(writes, until(&mut live, 60)).await;
        until(&mut idle, 60).await;
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_live_query_tells_of_each_commit_on_a_libsql_server() {
    let server = Sqld::start();
    runtime().block_on(async {
        tells(&server.connect(), &server.connect()).await;
        // A server that comes back has another counter.
        let (remote, other) = (server.connect(), server.connect());
        let mut live = remote.live("SELECT count(*) FROM u", ());
        assert_eq!(next(&mut live).await.unwrap(), 0);
        let tx = other.begin().await.unwrap();
        tx.execute("INSERT INTO u VALUES (1)", ()).await.unwrap();
        tx.commit().await.unwrap();
        until(&mut live, 1).await;
        server.kill();
        server.restart();
        other.execute("INSERT INTO u VALUES (2)", ()).await.unwrap();
        loop {
            match next(&mut live).await {
                Ok(2) => break,
                // The server was away.
                Ok(1) | Err(_) => {}
                Ok(other) => panic!("{other}"),
            }
        }
    });
}

#[test]
fn a_live_query_leaves_a_node_that_is_cut_off() {
    let double = Double::start();
    let (remote, other) = (double.connect(), double.connect());
    runtime().block_on(async {
        remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let mut live = remote.live(COUNT, ());
        assert_eq!(next(&mut live).await.unwrap(), 0);
        // It answers still, and its number stands still.
        double.order(&json!({ "cut": 0, "leader": 1 }));
        insert(&other, 3).await;
        until(&mut live, 3).await;
    });
}
