//! `with_connection`: closures that have the writer's whole connection, and what they leave behind.

use std::panic::AssertUnwindSafe;
use std::sync::mpsc;
use std::time::Duration;

use flatwater::calls::TimeoutEffect;
use flatwater::rusqlite::Connection;
use flatwater::{Call, Database, Error, ErrorKind, Options};
use futures_util::FutureExt;

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, integer, run, until};

in_both_places!(
    a_closure_manages_its_own_transactions,
    a_transaction_that_is_left_open_is_rolled_back_and_told,
    a_failed_closure_keeps_what_it_committed_and_returns_its_error,
    a_panic_in_a_transaction_is_told_and_rolled_back,
    what_a_closure_changes_of_the_connection_is_gone_after_it,
    the_journal_mode_and_the_locking_mode_stay,
    a_schema_that_a_closure_changed_is_known_to_every_call,
    a_transaction_inside_a_transaction_is_refused_by_sqlite,
    a_write_waits_for_the_closure_and_a_call_inside_is_refused,
    a_closure_that_fails_late_after_a_commit_may_have_been_applied,
);

const SCHEMA: &str = "CREATE TABLE t (a INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES t)";

async fn open(place: &Place) -> Database {
    let db = place.options().readers(1).open().await.unwrap();
    db.execute_script(SCHEMA).await.unwrap();
    db
}

async fn count(db: &Database) -> i64 {
    db.query_optional_value("SELECT count(*) FROM t", ()).await.unwrap().unwrap()
}

/// Checks that no change of a closure is left: settings, handlers, locks, TEMP and attached databases.
async fn is_clean(db: &Database, place: &Place) {
    let orphan = db.execute("INSERT INTO c VALUES (1000)", ()).await.unwrap_err();
    assert_eq!(orphan.sqlite_name(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"), "{orphan}");
    let before = count(db).await;
    let texts: Vec<String> = (0..5).map(|n| format!("INSERT INTO t VALUES ({})", 5000 + n)).collect();
    for text in &texts {
        db.execute(text, ()).await.unwrap();
    }
    assert_eq!(count(db).await, before + 5);
    db.execute("DELETE FROM t WHERE a >= 5000", ()).await.unwrap();
    let state = db
        .write_with(|tx| {
            let ask = |sql: &str| tx.query_row(sql, [], |row| row.get::<_, i64>(0));
            Ok::<_, Error>([
                ask("SELECT count(*) FROM pragma_database_list WHERE name NOT IN ('main', 'temp')")?,
                ask("SELECT count(*) FROM temp.sqlite_schema")?,
                ask("PRAGMA query_only")?,
                ask("PRAGMA synchronous")?,
                ask("PRAGMA wal_autocheckpoint")?,
            ])
        })
        .await
        .unwrap();
    assert_eq!(state, [0, 0, 0, 1, 0]);
    if let Some(file) = place.file() {
        let plain = file.plain();
        assert_eq!(plain.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0)).unwrap(), "wal");
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let write = tokio::spawn(db.execute("INSERT INTO t VALUES (6000)", ()));
        until(|| db.stats().writes_waiting == 0).await;
        assert!(!write.is_finished(), "the busy handler waits");
        plain.execute_batch("COMMIT").unwrap();
        write.await.unwrap().unwrap();
        db.execute("DELETE FROM t WHERE a = 6000", ()).await.unwrap();
    }
}

async fn a_closure_manages_its_own_transactions(place: &Place) {
    let db = open(place).await;
    let answer = db
        .with_connection(|c| {
            let tx = c.transaction()?;
            tx.execute("INSERT INTO t VALUES (1)", [])?;
            tx.commit()?;
            let tx = c.transaction()?;
            tx.execute("INSERT INTO t VALUES (2)", [])?;
            tx.rollback()?;
            c.execute_batch(
                "BEGIN; INSERT INTO t VALUES (3); SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; COMMIT; VACUUM",
            )?;
            Ok::<_, Error>(7)
        })
        .await;
    assert_eq!((answer.unwrap(), count(&db).await), (7, 2));
    is_clean(&db, place).await;
}

async fn a_transaction_that_is_left_open_is_rolled_back_and_told(place: &Place) {
    let db = open(place).await;
    for left in ["BEGIN", "BEGIN IMMEDIATE; INSERT INTO t VALUES (2)", "SAVEPOINT s; INSERT INTO t VALUES (2)"] {
        let call = db.with_connection(move |c| {
            c.execute_batch("INSERT OR REPLACE INTO t VALUES (1)")?;
            c.execute_batch(left).map_err(Error::from)
        });
        let error = call.await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("with_connection")), "{error}");
        assert!(error.message().contains("left a transaction open"), "{error}");
        assert_eq!(count(&db).await, 1, "{left}");
        is_clean(&db, place).await;
    }
}

async fn a_failed_closure_keeps_what_it_committed_and_returns_its_error(place: &Place) {
    #[derive(Debug)]
    enum Own {
        Mine,
        #[allow(dead_code, reason = "shown by Debug")]
        Flatwater(Error),
    }
    impl From<Error> for Own {
        fn from(error: Error) -> Self {
            Self::Flatwater(error)
        }
    }
    let db = open(place).await;
    let failed: Result<(), Own> = db
        .with_connection(|c| {
            c.execute_batch("INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2)").unwrap();
            Err(Own::Mine)
        })
        .await;
    assert!(matches!(failed, Err(Own::Mine)), "{failed:?}");
    assert_eq!(count(&db).await, 1);
    is_clean(&db, place).await;
}

async fn a_panic_in_a_transaction_is_told_and_rolled_back(place: &Place) {
    let db = open(place).await;
    let call = db.with_connection(|c| -> Result<(), Error> {
        c.execute_batch("INSERT INTO t VALUES (1); PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE; DELETE FROM t")?;
        panic!("half way");
    });
    let error = call.await.unwrap_err();
    assert!(error.message().contains("half way") && error.hint().unwrap().contains("stay"), "{error}");
    assert_eq!(count(&db).await, 1);
    is_clean(&db, place).await;
}

type Mischief = fn(&mut Connection);

async fn what_a_closure_changes_of_the_connection_is_gone_after_it(place: &Place) {
    let mischiefs: &[(&str, Mischief)] = &[
        ("pragmas", |c| {
            c.execute_batch(
                "PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 1",
            )
            .unwrap();
        }),
        ("attached", |c| c.execute_batch("ATTACH ':memory:' AS other; CREATE TABLE other.t (a)").unwrap()),
        ("temp", |c| c.execute_batch("CREATE TEMP TABLE t (b); CREATE TEMP VIEW v AS SELECT 1").unwrap()),
        ("busy", |c| c.busy_timeout(Duration::ZERO).unwrap()),
        ("hooks", |c| {
            c.commit_hook(Some(|| true)).unwrap();
            c.update_hook(Some(|_, _: &str, _: &str, _| {})).unwrap();
            c.progress_handler(1, Some(|| true)).unwrap();
        }),
        ("no hooks", |c| {
            c.commit_hook(None::<fn() -> bool>).unwrap();
            c.update_hook(None::<fn(rusqlite::hooks::Action, &str, &str, i64)>).unwrap();
            c.progress_handler(0, None::<fn() -> bool>).unwrap();
            c.authorizer(None::<fn(rusqlite::hooks::AuthContext<'_>) -> rusqlite::hooks::Authorization>).unwrap();
            c.execute("DELETE FROM t", []).unwrap();
        }),
        ("authorizer", |c| {
            c.execute_batch("BEGIN IMMEDIATE").unwrap();
            c.authorizer(Some(|_: rusqlite::hooks::AuthContext<'_>| rusqlite::hooks::Authorization::Deny)).unwrap();
        }),
        ("stepped", |c| {
            let mut statement = c.prepare("WITH n(x) AS (VALUES (1), (2)) SELECT x FROM n, sqlite_schema").unwrap();
            let mut rows = statement.query([]).unwrap();
            assert!(rows.next().unwrap().is_some());
            std::mem::forget(rows);
            std::mem::forget(statement);
        }),
    ];
    let mut failed = Vec::new();
    for (name, mischief) in mischiefs {
        let place = place.another();
        let check = async {
            let db = open(&place).await;
            let told = db
                .with_connection(move |c| {
                    mischief(c);
                    Ok::<_, Error>(())
                })
                .await;
            assert_eq!(told.is_err(), *name == "authorizer", "{told:?}");
            is_clean(&db, &place).await;
            db.close().await.unwrap();
        };
        if AssertUnwindSafe(check).catch_unwind().await.is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

async fn the_journal_mode_and_the_locking_mode_stay(place: &Place) {
    let db = open(place).await;
    for sql in ["PRAGMA journal_mode = DELETE", "PRAGMA main.journal_mode(memory)", "PRAGMA locking_mode = EXCLUSIVE"] {
        let error = db.with_connection(move |c| c.execute_batch(sql).map_err(Error::from)).await.unwrap_err();
        assert_eq!(error.sqlite_name(), Some("SQLITE_AUTH"), "{sql}");
    }
    // Runners of migrations set it on every connection.
    let wal = |c: &mut Connection| {
        c.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)).map_err(Error::from)
    };
    let mode = db.with_connection(wal).await.unwrap();
    assert_eq!(mode, if place.file().is_some() { "wal" } else { "memory" });
    is_clean(&db, place).await;
}

async fn a_schema_that_a_closure_changed_is_known_to_every_call(place: &Place) {
    let db = open(place).await;
    for n in 0..5 {
        db.execute("INSERT INTO t VALUES (?)", (n,)).await.unwrap();
        db.query("SELECT * FROM t", ()).await.unwrap();
    }
    let changed = db.with_connection(|c| {
        c.execute_batch(
            "BEGIN; DROP TABLE c; DROP TABLE t; CREATE TABLE t (a UNIQUE ON CONFLICT ROLLBACK, b DEFAULT 'x'); COMMIT",
        )
        .map_err(Error::from)
    });
    changed.await.unwrap();
    db.execute("INSERT INTO t (a) VALUES (?)", (1,)).await.unwrap();
    let row = db.query_optional("SELECT * FROM t", ()).await.unwrap().unwrap();
    assert_eq!(row.get::<String>("b").unwrap(), "x");
    let writes = (0..20).map(|_| db.execute("INSERT INTO t (a) VALUES (?)", (1,)));
    let failed = futures_util::future::join_all(writes).await;
    assert!(failed.iter().all(Result::is_err));
    assert_eq!(count(&db).await, 1);
}

async fn a_transaction_inside_a_transaction_is_refused_by_sqlite(place: &Place) {
    let db = open(place).await;
    let call = db.with_connection(|c| {
        let tx = c.transaction()?;
        tx.execute("INSERT INTO t VALUES (1)", [])?;
        let inner = tx.execute_batch("BEGIN").unwrap_err();
        tx.commit()?;
        Ok::<_, Error>(inner.to_string())
    });
    assert!(call.await.unwrap().contains("within a transaction"));
    assert_eq!(count(&db).await, 1);
    is_clean(&db, place).await;
}

async fn a_write_waits_for_the_closure_and_a_call_inside_is_refused(place: &Place) {
    let db = open(place).await;
    let (began, has_begun) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    let inside = db.clone();
    let closure = tokio::spawn(db.with_connection(move |c| {
        began.send(()).unwrap();
        goes.recv().unwrap();
        assert_eq!(inside.execute("DELETE FROM t", ()).wait().unwrap_err().kind(), ErrorKind::Misuse);
        c.execute("INSERT INTO t VALUES (1)", []).map_err(Error::from)
    }));
    tokio::task::spawn_blocking(move || has_begun.recv().unwrap()).await.unwrap();
    let write = tokio::spawn(db.execute("UPDATE t SET a = 2", ()));
    until(|| db.stats().writes_waiting == 1).await;
    go.send(()).unwrap();
    assert_eq!(write.await.unwrap().unwrap().changes, 1);
    assert_eq!(closure.await.unwrap().unwrap(), 1);
}

/// Runs a closure whose deadline passes after its first commit: until there is time enough for that.
async fn may_have_been_applied<T: std::fmt::Debug>(db: &Database, call: impl Fn(Duration) -> Call<T>) {
    let mut limit = Duration::from_millis(50);
    let error = loop {
        let error = call(limit).await.unwrap_err();
        if count(db).await > 0 {
            break error;
        }
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
        limit *= 2;
    };
    assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::Unknown)), "{error}");
}

async fn a_closure_that_fails_late_after_a_commit_may_have_been_applied(place: &Place) {
    let db = open(place).await;
    let late = |limit| {
        db.with_timeout(limit).with_connection(move |c| {
            c.execute("INSERT INTO t VALUES (1)", [])?;
            std::thread::sleep(limit);
            c.execute("INSERT INTO t VALUES (1)", []).map_err(Error::from)
        })
    };
    may_have_been_applied(&db, late).await;
    assert_eq!(count(&db).await, 1);
}

#[test]
fn a_connection_that_a_closure_takes_away_is_not_used_again() {
    run(async {
        let file = TestFile::new();
        let place = Place::File(file);
        let db = open(&place).await;
        let (gives, taken) = mpsc::channel();
        let call = db.with_connection(move |c| {
            c.execute("INSERT INTO t VALUES (1)", [])?;
            gives.send(std::mem::replace(c, Connection::open_in_memory()?)).unwrap();
            Ok::<_, Error>(())
        });
        let error = call.await.unwrap_err();
        assert!(error.kind() == ErrorKind::Misuse && error.message().contains("moved the connection"), "{error}");
        is_clean(&db, &place).await;
        let taken = taken.recv().unwrap();
        assert_eq!(integer(&taken, "SELECT count(*) FROM t"), 1);
        db.close().await.unwrap();
        taken.execute("INSERT INTO t VALUES (2)", []).unwrap();
    });
}

#[test]
fn the_deadline_ends_a_statement_before_the_first_commit_and_waits_for_locks_after_it() {
    run(async {
        let place = Place::on_file();
        let db = open(&place).await;
        let short = db.with_timeout(Duration::from_millis(50));
        let error = short.with_connection(|c| c.execute_batch(ENDLESS).map_err(Error::from)).await.unwrap_err();
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
        let plain = place.file().unwrap().plain();
        let begins = |c: &mut Connection| c.execute_batch("BEGIN IMMEDIATE; COMMIT").map_err(Error::from);
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let error = short.with_connection(begins).await.unwrap_err();
        assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
        plain.execute_batch("COMMIT").unwrap();
        let path = place.file().unwrap().path();
        let waits = |limit| {
            let path = path.clone();
            db.with_timeout(limit).with_connection(move |c| {
                c.execute("INSERT INTO t VALUES (1)", [])?;
                let plain = Connection::open(&path)?;
                plain.execute_batch("BEGIN IMMEDIATE")?;
                c.execute_batch("BEGIN IMMEDIATE").map_err(Error::from)
            })
        };
        may_have_been_applied(&db, waits).await;
        assert_eq!(count(&db).await, 1);
        is_clean(&db, &place).await;
    });
}

/// Its statements are interrupted up to its first commit, which is refused.
#[test]
fn a_closure_whose_caller_leaves_runs_to_its_end_and_what_it_has_not_committed_is_undone() {
    run(async {
        let place = Place::on_file();
        let db = open(&place).await;
        for commits_before in [false, true] {
            let (began, has_begun) = mpsc::channel();
            let (go, goes) = mpsc::channel::<()>();
            let (ended, has_ended) = mpsc::channel();
            let call = tokio::spawn(db.with_connection(move |c| {
                if commits_before {
                    c.execute_batch("INSERT INTO t VALUES (1)")?;
                }
                began.send(()).unwrap();
                goes.recv().unwrap();
                let committed = c.execute_batch("BEGIN; INSERT INTO t VALUES (2); COMMIT");
                ended.send(committed.is_ok()).unwrap();
                committed.map_err(Error::from)
            }));
            tokio::task::spawn_blocking(move || has_begun.recv().unwrap()).await.unwrap();
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled());
            go.send(()).unwrap();
            let rows = if commits_before { 2 } else { 0 };
            assert_eq!(db.execute("DELETE FROM t", ()).await.unwrap().changes, rows);
            assert_eq!(has_ended.recv().unwrap(), commits_before);
        }
        let withdrawn = db.with_connection(|c| c.execute_batch("INSERT INTO t VALUES (1)").map_err(Error::from));
        drop(withdrawn);
        assert_eq!(count(&db).await, 0);
    });
}

#[test]
fn a_read_only_handle_and_a_transaction_body_get_no_whole_connection() {
    run(async {
        let place = Place::on_file();
        let db = open(&place).await;
        let reading = place.options().readers(1).read_only(true).open().await.unwrap();
        let nothing = |_: &mut Connection| Ok::<_, Error>(());
        assert_eq!(reading.with_connection(nothing).await.unwrap_err().kind(), ErrorKind::Misuse);
        let inside = db
            .transaction(async |_| Ok::<_, Error>(db.with_connection(nothing).await.unwrap_err().kind()))
            .await
            .unwrap();
        assert_eq!(inside, ErrorKind::Misuse);
        assert!(Options::new(":memory:").open().await.unwrap().with_connection(nothing).await.is_ok());
    });
}
