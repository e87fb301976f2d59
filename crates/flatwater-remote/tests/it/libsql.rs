//! A real libSQL server: the same calls, transactions, replicas, and each write applied once.

use std::collections::HashMap;
use std::time::Duration;

use flatwater::calls::{CancelOutcome, TimeoutEffect};
use flatwater::{Database, ErrorKind, Migrations, named};
use flatwater_remote::{Level, Libsql, Remote};
use futures_util::future::join_all;
use futures_util::poll;

use super::double::{runtime, wait_until};
use super::same_calls::{compare_mistakes, program};
use super::sqld::{ALL, Fault, LOUD, Proxy, Sqld, options};

/// Counts in the database, so that a write that is applied twice is seen.
const COUNT: &str = "INSERT INTO counts VALUES (?, 1) ON CONFLICT DO UPDATE SET n = n + 1";

/// Its rows are more than the server answers with.
const TOO_LONG: &str =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200) SELECT hex(zeroblob(50000)) FROM n";

fn counts(on: &Remote) -> HashMap<i64, i64> {
    on.query_as("SELECT id, n FROM counts", ()).wait().unwrap().into_iter().collect()
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_program_gets_the_same_on_a_file_and_on_a_server() {
    let (server, file) = (Sqld::start(), Database::open(":memory:").wait().unwrap());
    let remote = server.connect();
    runtime().block_on(async {
        assert_eq!(program(&remote).await.unwrap(), program(&file).await.unwrap());
        // What rqlite could not: rows of a SELECT in a batch.
        let batch = remote.batch([("DELETE FROM a", ()), ("SELECT count(*) FROM a", ())]).await.unwrap();
        assert_eq!(batch[1].rows.as_ref().unwrap().get(0).unwrap().get::<i64>(0).unwrap(), 0);
        let infinite = remote.query("SELECT 1e999", ()).await.unwrap_err();
        assert!(infinite.message().contains("infinite"), "{infinite}");
        remote.close().await.unwrap();
        assert_eq!(remote.execute("SELECT 1", ()).await.unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_mistake_is_the_same_error_on_a_file_and_on_a_server() {
    let (server, file) = (Sqld::start(), Database::open(":memory:").wait().unwrap());
    compare_mistakes(&file, &server.connect());
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_transaction_sees_its_own_writes_and_is_all_or_nothing() {
    let server = Sqld::start();
    let (remote, other) = (server.connect(), server.connect());
    runtime().block_on(async {
        remote.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE)", ()).await.unwrap();
        let transaction = remote.begin().await.unwrap();
        let inserted = transaction.execute("INSERT INTO t (b) VALUES (?)", ("one",)).await.unwrap();
        assert_eq!((inserted.changes, inserted.last_insert_rowid), (1, Some(1)));
        let updated = transaction.execute("UPDATE t SET b = 'two'", ()).await.unwrap();
        assert_eq!((updated.changes, updated.last_insert_rowid), (1, None));
        assert!(transaction.in_transaction() && !remote.in_transaction());
        assert_eq!(transaction.query_value::<String>("SELECT b FROM t", ()).await.unwrap(), "two");
        assert_eq!(other.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
        // A failure changes nothing, and the transaction goes on.
        let error = transaction.execute("INSERT INTO t (b) VALUES ('two')", ()).await.unwrap_err();
        assert_eq!((error.kind(), error.sql()), (ErrorKind::Constraint, Some("INSERT INTO t (b) VALUES ('two')")));
        let failed = transaction.execute("INSERT INTO t VALUES (70, 'x'), (71, 'two')", ()).await;
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::Constraint);
        let none = transaction.execute("DELETE FROM t WHERE a = 999", ()).await.unwrap();
        assert_eq!((none.changes, none.last_insert_rowid), (0, None), "no row of what was undone");
        let batch = [("INSERT INTO t (b) VALUES ('x')", ()), ("INSERT INTO t (b) VALUES ('two')", ())];
        assert_eq!(transaction.batch(batch).await.unwrap_err().kind(), ErrorKind::Constraint);
        assert_eq!(transaction.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 1);
        let returned = "INSERT INTO t (b) VALUES (:b) RETURNING a, b";
        let rows = transaction.query(returned, named! { "b": "three" }).await.unwrap();
        assert_eq!(rows.get(0).unwrap().get::<String>("b").unwrap(), "three");
        assert_eq!(transaction.execute_many("INSERT INTO t (b) VALUES (?)", [(4,), (5,)]).await.unwrap(), 2);
        let none = transaction.execute("UPDATE t SET b = b WHERE a = 1", ()).await.unwrap();
        assert_eq!((none.changes, none.last_insert_rowid), (1, None));
        transaction.commit().await.unwrap();
        assert_eq!(other.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 4);

        let dropped = remote.begin().await.unwrap();
        dropped.execute("DELETE FROM t", ()).await.unwrap();
        let late = dropped.execute("DELETE FROM t", ());
        drop(dropped);
        assert_eq!(late.await.unwrap_err().kind(), ErrorKind::Misuse);
        let rolled_back = remote.begin().await.unwrap();
        assert_eq!(rolled_back.execute("DELETE FROM t", ()).await.unwrap().changes, 4);
        rolled_back.rollback().await.unwrap();
        let result = remote.transaction(async |tx| tx.execute("INSERT INTO missing VALUES (1)", ()).await).await;
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Sql);
        let done = remote.transaction(async |tx| tx.execute("DELETE FROM t WHERE a > 2", ()).await).await.unwrap();
        assert_eq!(done.changes, 2);
        assert_eq!(other.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 2);
        // One row of the guard for the writes, and one for all transactions, one after the other.
        let writers = other.query_value::<i64>("SELECT count(*) FROM _flatwater_writers", ()).await.unwrap();
        assert!(writers <= 3, "{writers}");
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_transaction_that_is_lost_is_over_and_says_so() {
    let server = Sqld::start();
    let proxy = Proxy::before(&server);
    let (remote, plain) = (proxy.connect(), server.connect());
    runtime().block_on(async {
        remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
        for fault in [Fault::DropBefore, Fault::DropAfter, Fault::HalfAnAnswer, Fault::Nonsense, Fault::ErrorAfter] {
            // The one before is open until the server has seen that it is lost.
            let transaction = remote.begin().await.unwrap();
            transaction.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
            proxy.script(&[fault]);
            let error = transaction.execute("INSERT INTO t VALUES (2)", ()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Expired, "{fault:?}: {error}");
            assert!(error.message().contains("transaction is over"), "{error}");
            let again = transaction.execute("INSERT INTO t VALUES (3)", ()).await.unwrap_err();
            assert_eq!(again.kind(), ErrorKind::Expired, "{fault:?}: {again}");
            assert_eq!(transaction.query("SELECT a FROM t", ()).await.unwrap_err().kind(), ErrorKind::Expired);
            assert_eq!(transaction.commit().await.unwrap_err().kind(), ErrorKind::Expired);
        }
        // SQLite ends it in its middle.
        let transaction = remote.begin().await.unwrap();
        transaction.execute("CREATE TABLE u (a UNIQUE)", ()).await.unwrap();
        transaction.execute("INSERT INTO u VALUES (1)", ()).await.unwrap();
        let rolled = transaction.execute("INSERT OR ROLLBACK INTO u VALUES (1)", ()).await.unwrap_err();
        assert_eq!(rolled.kind(), ErrorKind::Constraint);
        let after = transaction.execute("INSERT INTO t VALUES (4)", ()).await.unwrap_err();
        assert_eq!(after.kind(), ErrorKind::Misuse, "as in a file: {after}");
        assert!(after.message().contains("because of an earlier error"), "{after}");
        assert_eq!(plain.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn what_the_server_cannot_answer_is_not_committed_beside_its_error() {
    let server = Sqld::start();
    let remote = server.connect();
    let long = TOO_LONG;
    runtime().block_on(async {
        remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
        // The savepoint stays open on the server, so the transaction ends.
        let transaction = remote.begin().await.unwrap();
        let error = transaction.batch([("INSERT INTO t VALUES (1)", ()), (long, ())]).await.unwrap_err();
        assert_eq!(error.sqlite_name(), Some("SQLITE_TOOBIG"), "{error}");
        assert_eq!(transaction.commit().await.unwrap_err().kind(), ErrorKind::Expired);
        // A read has changed nothing.
        let transaction = remote.begin().await.unwrap();
        transaction.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        assert_eq!(transaction.query(long, ()).await.unwrap_err().sqlite_name(), Some("SQLITE_TOOBIG"));
        let infinite = transaction.query("INSERT INTO t VALUES (3) RETURNING 1e999", ()).await.unwrap_err();
        assert_eq!(infinite.applied(), Some(TimeoutEffect::Yes), "{infinite}");
        transaction.commit().await.unwrap();
        let error = remote.batch([("INSERT INTO t VALUES (4)", ()), (long, ())]).await.unwrap_err();
        assert_eq!(error.sqlite_name(), Some("SQLITE_TOOBIG"), "{error}");
        // One text that is not UTF-8 fails alone.
        let wrong = "INSERT INTO t VALUES (5) RETURNING CAST(x'ff' AS TEXT)";
        let (wrong, others) = futures_util::join!(
            remote.query(wrong, ()),
            join_all((10..20).map(|n| remote.execute("INSERT INTO t VALUES (?)", (n,))))
        );
        assert!(wrong.unwrap_err().message().contains("utf-8"));
        assert!(others.iter().all(Result::is_ok), "{others:?}");
        let rows: Vec<i64> = remote.query_values("SELECT a FROM t ORDER BY a", ()).await.unwrap();
        assert_eq!(rows, [&[2, 3][..], &(10..20).collect::<Vec<_>>()].concat());
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_write_of_a_transaction_whose_caller_left_is_in_it_or_was_not_sent() {
    let server = Sqld::start();
    let remote = server.connect();
    runtime().block_on(async {
        remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let transaction = remote.begin().await.unwrap();
        let mut kept = 0;
        for number in 0..40 {
            let mut call = transaction.execute("INSERT INTO t VALUES (?)", (number,));
            assert!(poll!(&mut call).is_pending());
            if number % 3 == 0 {
                tokio::task::yield_now().await;
                std::thread::sleep(Duration::from_micros(200));
            }
            kept += match call.cancel() {
                CancelOutcome::Withdrawn | CancelOutcome::WriteInterrupted => 0,
                CancelOutcome::WriteRunning | CancelOutcome::Answered => 1,
                other => panic!("{other:?}"),
            };
        }
        transaction.commit().await.unwrap();
        assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), kept);
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn transactions_that_wait_leave_the_server_to_others() {
    let server = Sqld::start();
    let (remote, other) = (server.connect(), server.connect());
    runtime().block_on(async {
        remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let open = remote.begin().await.unwrap();
        let waiting =
            join_all((0..300).map(async |n| {
                remote.transaction(async |tx| tx.execute("INSERT INTO t VALUES (?)", (n,)).await).await
            }));
        let reads = async {
            for _ in 0..20 {
                assert_eq!(other.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
            }
            open.commit().await.unwrap();
        };
        let (written, ()) = futures_util::join!(waiting, reads);
        assert!(written.iter().all(Result::is_ok));
        assert_eq!(other.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 300);
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_replica_that_stands_first_loses_and_doubles_nothing() {
    let primary = Sqld::start();
    let replica = primary.replica();
    let remote = Libsql::with(options(&[replica.http])).unwrap();
    primary.connect().execute("CREATE TABLE counts (id INTEGER PRIMARY KEY, n)", ()).wait().unwrap();
    for id in 0..30_i64 {
        remote.execute(COUNT, (id,)).wait().unwrap();
    }
    let long = TOO_LONG;
    let statements = [("INSERT INTO counts VALUES (77, 1)", ()), (long, ())];
    let batch = remote.batch(statements).wait();
    let rows = counts(&primary.connect());
    assert!(rows.values().all(|n| *n == 1), "{rows:?}");
    // It was applied, and the rows are lost; or it was not, and says so.
    let applied = batch.as_ref().err().and_then(|error| error.applied()) == Some(TimeoutEffect::Yes);
    assert_eq!(rows.contains_key(&77), applied, "{batch:?}");
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_commit_whose_answer_is_lost_is_known() {
    let server = Sqld::start();
    let proxy = Proxy::before(&server);
    let (remote, plain) = (proxy.connect(), server.connect());
    runtime().block_on(async {
        remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
        for (fault, is_committed) in [
            (Fault::DropAfter, true),
            (Fault::HalfAnAnswer, true),
            (Fault::ErrorAfter, true),
            (Fault::Nonsense, true),
            (Fault::Silence, true),
            (Fault::DropBefore, false),
        ] {
            let transaction = remote.begin().await.unwrap();
            transaction.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
            proxy.script(&[fault]);
            let committed = transaction.commit().await;
            assert_eq!(committed.is_ok(), is_committed, "{fault:?}: {committed:?}");
            let rows = plain.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap();
            assert_eq!(rows, i64::from(is_committed), "{fault:?}");
            plain.execute("DELETE FROM t", ()).await.unwrap();
        }
    });
}

/// Several clients write with faults by chance. Then what each was told is compared with the database.
#[test]
#[ignore = "needs sqld: make test-libsql"]
fn each_write_is_applied_once_whatever_goes_wrong() {
    const CLIENTS: i64 = 3;
    const TASKS: i64 = 8;
    const WRITES: i64 = 20;
    let seed = rand::random();
    let server = Sqld::start();
    let proxy = Proxy::before(&server);
    server.connect().execute("CREATE TABLE counts (id INTEGER PRIMARY KEY, n)", ()).wait().unwrap();
    proxy.chance(0.2, seed, ALL);
    runtime().block_on(async {
        let clients: Vec<Libsql> = (0..CLIENTS).map(|_| proxy.connect()).collect();
        let task = async |client: i64, task: i64| {
            let remote = &clients[usize::try_from(client).unwrap()];
            for write in 0..WRITES {
                let id = (client * TASKS + task) * WRITES + write;
                if write % 7 == 6 {
                    let error = remote.execute("INSERT INTO counts VALUES (?, NULL, 3)", (id,)).await.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Sql, "seed {seed}: {error}");
                    continue;
                }
                let done = remote.execute(COUNT, (id,)).await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                assert_eq!((done.changes, done.last_insert_rowid), (1, Some(id)), "seed {seed}");
            }
        };
        join_all((0..CLIENTS * TASKS).map(|number| task(number / TASKS, number % TASKS))).await;
    });
    // What was late has come.
    std::thread::sleep(Duration::from_millis(500));
    let counts = counts(&server.connect());
    assert!(counts.values().all(|n| *n == 1), "seed {seed}: {counts:?}");
    let failing = CLIENTS * TASKS * (WRITES / 7);
    assert_eq!(i64::try_from(counts.len()).unwrap(), CLIENTS * TASKS * WRITES - failing, "seed {seed}");
}

/// Money moves between accounts in transactions that read, decide and write, and requests are lost by chance.
#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_transaction_is_as_its_caller_was_told_whatever_goes_wrong() {
    let seed = rand::random();
    let server = Sqld::start();
    let proxy = Proxy::before(&server);
    let plain = server.connect();
    let schema = "CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents); CREATE TABLE moves (id INTEGER PRIMARY KEY)";
    plain.execute_script(schema).wait().unwrap();
    plain.execute_many("INSERT INTO accounts VALUES (?, 1000)", (0..4_i64).map(|id| (id,))).wait().unwrap();
    proxy.chance(0.04, seed, LOUD);
    let remote = proxy.connect();
    runtime().block_on(async {
        let (mut done, mut not_done) = (Vec::new(), Vec::new());
        let moved = join_all((0..40_i64).map(async |id| {
            let (from, to, cents) = (id % 4, (id + 1) % 4, id * 7);
            let result = remote
                .transaction(async |tx| {
                    let has: i64 = tx.query_value("SELECT cents FROM accounts WHERE id = ?", (from,)).await?;
                    tx.execute("UPDATE accounts SET cents = ? WHERE id = ?", (has - cents, from)).await?;
                    tx.execute("UPDATE accounts SET cents = cents + ? WHERE id = ?", (cents, to)).await?;
                    tx.execute("INSERT INTO moves VALUES (?)", (id,)).await
                })
                .await;
            (id, result)
        }));
        for (id, result) in moved.await {
            match result {
                Ok(moved) => {
                    assert_eq!(moved.last_insert_rowid, Some(id), "seed {seed}");
                    done.push(id);
                }
                Err(error) => {
                    // `Open`: what came back for its BEGIN was no answer.
                    assert!(matches!(error.kind(), ErrorKind::Expired | ErrorKind::Open), "seed {seed}: {error}");
                    not_done.push(id);
                }
            }
        }
        let moves: Vec<i64> = plain.query_values("SELECT id FROM moves ORDER BY id", ()).await.unwrap();
        assert_eq!(moves, done, "seed {seed}");
        assert!(done.len() >= 5, "seed {seed}: too few were done to tell something");
        let sum: i64 = plain.query_value("SELECT sum(cents) FROM accounts", ()).await.unwrap();
        assert_eq!((sum, done.len() + not_done.len()), (4_000, 40), "seed {seed}");
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_server_that_is_killed_under_load_loses_nothing_that_was_acknowledged() {
    let server = Sqld::start();
    let remote = server.connect();
    remote.execute("CREATE TABLE counts (id INTEGER PRIMARY KEY, n)", ()).wait().unwrap();
    let (remote, others) = (&remote, server.connect());
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                scope.spawn(move || {
                    for write in 0..150 {
                        let id = writer * 1_000 + write;
                        remote.execute(COUNT, (id,)).wait().unwrap_or_else(|error| panic!("{error}"));
                    }
                })
            })
            .collect();
        for round in 0..3 {
            wait_until(|| others.query_value::<i64>("SELECT count(*) FROM counts", ()).wait().unwrap() > round * 100);
            if round == 1 {
                server.signal("-STOP");
                std::thread::sleep(Duration::from_millis(1_500));
                server.signal("-CONT");
            } else {
                server.restart();
            }
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    let counts = counts(remote);
    assert_eq!(counts.len(), 600);
    assert!(counts.values().all(|n| *n == 1), "{counts:?}");
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_replica_is_read_from_and_shows_a_client_its_own_writes() {
    let primary = Sqld::start();
    let replica = primary.replica();
    let remote = Libsql::with(options(&[primary.http, replica.http])).unwrap();
    let at_replica = remote.with_level(Level::None { freshness: None });
    remote.execute("CREATE TABLE t (a)", ()).wait().unwrap();
    for number in 1..30_i64 {
        remote.execute("INSERT INTO t VALUES (?)", (number,)).wait().unwrap();
        assert_eq!(at_replica.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), number);
    }
    // A log that begins anew has lower numbers than this client has seen.
    primary.restart();
    remote.execute("INSERT INTO t VALUES (30)", ()).wait().unwrap();
    let alone = Libsql::with(options(&[replica.http])).unwrap();
    wait_until(|| alone.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap() == 30);
    assert_eq!(at_replica.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), 30);
    // One that hangs is passed over.
    let other = primary.replica();
    let both = Libsql::with(options(&[primary.http, replica.http, other.http])).unwrap();
    let nearby = both.with_level(Level::None { freshness: None });
    other.signal("-STOP");
    for _ in 0..6 {
        assert_eq!(nearby.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), 30);
    }
    other.signal("-CONT");
    primary.kill();
    assert_eq!(at_replica.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap(), 30);
    let hasty = Libsql::with(options(&[primary.http, replica.http]).timeout(Duration::from_millis(300))).unwrap();
    let error = hasty.execute("INSERT INTO t VALUES (0)", ()).wait().unwrap_err();
    assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
    assert_eq!(hasty.query("SELECT a FROM t", ()).wait().unwrap_err().kind(), ErrorKind::Timeout);
    let fresh = at_replica.with_level(Level::None { freshness: Some(Duration::from_secs(1)) });
    assert_eq!(fresh.query("SELECT a FROM t", ()).wait().unwrap_err().kind(), ErrorKind::Misuse);
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn each_migration_is_applied_once() {
    let server = Sqld::start();
    let list = || {
        Migrations::new([
            (
                "001_users",
                "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT); CREATE INDEX by_name ON users (name)",
            ),
            ("002_ada", "INSERT INTO users (name) VALUES ('Ada; Eve')"),
        ])
    };
    let remotes: Vec<_> = (0..3).map(|_| server.connect()).collect();
    runtime().block_on(async {
        let applied = join_all(remotes.iter().map(|remote| remote.migrate(list()))).await;
        let mut names: Vec<String> = applied.into_iter().flat_map(Result::unwrap).collect();
        names.sort();
        assert_eq!(names, ["001_users", "002_ada"]);
        assert!(remotes[1].migrate(list()).await.unwrap().is_empty());
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_deadline_in_a_transaction_ends_it_and_one_that_waits_does_not() {
    let server = Sqld::start();
    let remote = server.connect();
    runtime().block_on(async {
        remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
        let transaction = remote.begin().await.unwrap();
        transaction.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        let long =
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000000) SELECT count(*) FROM n";
        let late = transaction.query(long, ()).timeout(Duration::from_millis(100)).await.unwrap_err();
        assert_eq!((late.kind(), late.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{late}");
        assert_eq!(transaction.commit().await.unwrap_err().kind(), ErrorKind::Expired);
        // The server has let it go.
        remote.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        assert_eq!(remote.query_values::<i64>("SELECT a FROM t", ()).await.unwrap(), [2]);
        // Beginning one waits for the one that is open, and no longer than its time.
        let open = remote.begin().await.unwrap();
        let waits = remote.with_timeout(Duration::from_millis(300));
        assert_eq!(waits.begin().await.unwrap_err().kind(), ErrorKind::Timeout);
        open.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
        open.commit().await.unwrap();
    });
}
