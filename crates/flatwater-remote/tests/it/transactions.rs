//! Interactive transactions on a libSQL server, beside those of a file.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flatwater::events::ExecutedOn;
use flatwater::{Database, ErrorKind, Result, Transaction};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::double::{Double, runtime};
use super::sqld::{Fault, Proxy, Sqld};

const TABLE: &str = "CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE)";

/// Does random things inside a transaction: the same ones for the same numbers. Returns all that it got, as text.
async fn walk(tx: &mut Transaction<'_>, random: &mut StdRng, depth: u32, got: &mut Vec<String>) {
    fn add<T: std::fmt::Debug>(got: &mut Vec<String>, what: Result<T>) {
        got.push(match what {
            Ok(what) => format!("{what:?}"),
            Err(error) => format!("{:?} {}", error.kind(), error.message()),
        });
    }
    for _ in 0..random.random_range(1..9) {
        let value = random.random_range(0..12_i64);
        let name = ["x", "y", "X"][random.random_range(0..3)];
        match random.random_range(0..14) {
            0 | 1 => add(got, tx.execute("INSERT INTO t (b) VALUES (?)", (value,)).await),
            2 => add(got, tx.query_values::<i64>("SELECT b FROM t ORDER BY a", ()).await),
            3 => add(got, tx.execute("DELETE FROM t WHERE b = ?", (value,)).await),
            4 => add(got, tx.execute_many("INSERT INTO t (b) VALUES (?)", [(value + 100,), (value,)]).await),
            5 => {
                let batch =
                    [("INSERT INTO t (b) VALUES (?)", (value,)), ("UPDATE t SET b = b + 20 WHERE b = ?", (value,))];
                let all = tx.batch(batch).await;
                add(got, all.map(|all| all.iter().map(|one| (one.changes, one.last_insert_rowid)).collect::<Vec<_>>()));
            }
            6 => add(got, tx.savepoint(name).await),
            7 => add(got, tx.rollback_to(name).await),
            8 => add(got, tx.release(name).await),
            9 if depth < 4 => {
                let keeps = random.random_range(0..3);
                let mut nested = match tx.begin().await {
                    Ok(nested) => nested,
                    Err(error) => {
                        add::<()>(got, Err(error));
                        continue;
                    }
                };
                Box::pin(walk(&mut nested, random, depth + 1, got)).await;
                match keeps {
                    0 => add(got, nested.rollback().await),
                    1 => drop(nested),
                    _ => add(got, nested.commit().await),
                }
            }
            10 => add(got, tx.query_value::<i64>("INSERT INTO t (b) VALUES (?) RETURNING b", (value,)).await),
            11 => add(got, tx.execute("INSERT INTO missing VALUES (1)", ()).await),
            12 if depth == 0 && value == 0 => {
                add(got, tx.execute("INSERT OR ROLLBACK INTO t (b) VALUES (1), (1)", ()).await);
            }
            _ => add(got, tx.query_value::<i64>("SELECT count(*) FROM t", ()).await),
        }
    }
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn libsql_transactions_do_what_those_of_a_file_do() {
    let server = Sqld::start();
    let (remote, file) = (server.connect(), Database::open(":memory:").wait().unwrap());
    runtime().block_on(async {
        remote.execute(TABLE, ()).await.unwrap();
        file.execute(TABLE, ()).await.unwrap();
        for seed in 0..60 {
            let mut got = [Vec::new(), Vec::new()];
            for (on, got) in got.iter_mut().enumerate() {
                let mut random = StdRng::seed_from_u64(seed);
                let begun = if on == 0 { file.begin() } else { remote.begin() };
                let mut tx = begun.await.unwrap();
                walk(&mut tx, &mut random, 0, got).await;
                let ended = if random.random_bool(0.7) { tx.commit().await } else { tx.rollback().await };
                got.push(format!("{:?}", ended.map_err(|error| (error.kind(), error.message().to_owned()))));
            }
            let [of_file, of_server] = got;
            assert_eq!(of_server, of_file, "seed {seed}");
            let rows = "SELECT group_concat(a || ':' || b) FROM (SELECT a, b FROM t ORDER BY a)";
            let both: [Option<String>; 2] =
                [file.query_value(rows, ()).await.unwrap(), remote.query_value(rows, ()).await.unwrap()];
            assert_eq!(both[0], both[1], "seed {seed}");
        }
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_libsql_commit_whose_answer_is_lost_is_known_also_if_its_writes_were_undone() {
    let server = Sqld::start();
    let proxy = Proxy::before(&server);
    let remote = proxy.connect();
    runtime().block_on(async {
        remote.execute(TABLE, ()).await.unwrap();
        let tx = remote.begin().await.unwrap();
        tx.savepoint("a").await.unwrap();
        tx.execute("INSERT INTO t (b) VALUES (1)", ()).await.unwrap();
        tx.rollback_to("a").await.unwrap();
        proxy.script(&[Fault::DropAfter]);
        tx.commit().await.unwrap();
        let tx = remote.begin().await.unwrap();
        tx.execute("INSERT INTO t (b) VALUES (2)", ()).await.unwrap();
        proxy.script(&[Fault::DropBefore]);
        assert_eq!(tx.commit().await.unwrap_err().kind(), ErrorKind::Expired);
        assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_write_on_the_libsql_database_inside_of_its_own_transaction_is_refused_at_once() {
    let server = Sqld::start();
    let remote = server.connect();
    runtime().block_on(async {
        remote.execute(TABLE, ()).await.unwrap();
        let within = remote.transaction(async |tx| {
            tx.execute("INSERT INTO t (b) VALUES (1)", ()).await?;
            assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM t", ()).await?, 0, "a read does not wait");
            let began = remote.begin().await.map(drop);
            assert_eq!(began.unwrap_err().kind(), ErrorKind::Misuse);
            remote.execute("INSERT INTO t (b) VALUES (2)", ()).await
        });
        assert_eq!(within.await.unwrap_err().kind(), ErrorKind::Misuse);
        assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_write_behind_the_own_libsql_transaction_is_given_up_at_its_own_deadline() {
    let server = Sqld::start();
    let remote = server.connect();
    runtime().block_on(async {
        remote.execute(TABLE, ()).await.unwrap();
        let tx = remote.begin().await.unwrap();
        let mut patient = Box::pin(remote.execute("INSERT INTO t (b) VALUES (1)", ()));
        assert!(futures_util::poll!(&mut patient).is_pending());
        // It is behind another one, which waits on.
        let late = remote.execute("INSERT INTO t (b) VALUES (2)", ()).timeout(Duration::from_millis(50)).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
        assert!(futures_util::poll!(&mut patient).is_pending());
        tx.commit().await.unwrap();
        patient.await.unwrap();
        assert_eq!(remote.query_values::<i64>("SELECT b FROM t", ()).await.unwrap(), [1]);
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_libsql_database_that_is_closed_rolls_back_what_is_open_and_its_calls_say_so() {
    let server = Sqld::start();
    let (remote, other) = (server.connect(), server.connect());
    runtime().block_on(async {
        remote.execute(TABLE, ()).await.unwrap();
        let (ended, open) = (remote.begin().await.unwrap(), remote.clone());
        ended.execute("INSERT INTO t (b) VALUES (1)", ()).await.unwrap();
        let closing = tokio::spawn(async move { open.close().await });
        // Its close waits for it.
        ended.execute("INSERT INTO t (b) VALUES (2)", ()).await.unwrap();
        ended.commit().await.unwrap();
        closing.await.unwrap().unwrap();
        assert_eq!(remote.begin().await.unwrap_err().kind(), ErrorKind::Closed);
        let open = server.connect();
        let tx = open.begin().await.unwrap();
        tx.execute("INSERT INTO t (b) VALUES (3)", ()).await.unwrap();
        let began = Instant::now();
        open.close().await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "its wait has a bound");
        assert_eq!(tx.execute("INSERT INTO t (b) VALUES (4)", ()).await.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(other.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 2);
    });
}

#[test]
fn a_cluster_has_no_transactions_and_its_calls_have_events() {
    let double = Double::start();
    let cluster = double.connect();
    let begun = flatwater::bindings::server::begin(&cluster).wait();
    let error = begun.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("no interactive transactions"), "{error}");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = heard.clone();
    let listener = move |event: &flatwater::events::StatementEvent<'_>| {
        let path = event.path.to_str().unwrap().to_owned();
        hear.lock().unwrap().push((path, event.ran_on, event.rows, event.changes, event.run > Duration::ZERO));
    };
    flatwater::bindings::set_listener(&cluster, Some(Arc::new(listener)));
    cluster.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)").wait().unwrap();
    cluster.execute("UPDATE t SET a = a + 1", ()).wait().unwrap();
    cluster.query("SELECT a FROM t", ()).wait().unwrap();
    let (name, on) = (cluster.name().to_owned(), Some(ExecutedOn::Server));
    let expected = [
        (name.clone(), on, None, None, true),
        (name.clone(), on, None, Some(2), true),
        (name, on, Some(2), None, true),
    ];
    assert_eq!(*heard.lock().unwrap(), expected);
}
