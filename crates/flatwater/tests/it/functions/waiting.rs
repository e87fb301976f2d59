//! Functions of a front end's language that wait for another thread: what ends their statements ends their waits.
//!
//! Leaves out: the thread that is waited for, which the tests of the front end have.

use std::thread;
use std::time::Duration;

use flatwater::bindings::functions::{Function, create, statement_ends};
use flatwater::rusqlite::functions::FunctionFlags;
use flatwater::rusqlite::{Error, ffi};
use flatwater::{Database, ErrorKind};

use crate::support::{TestFile, empty_table, run};

/// Creates `waits(x)` and the collation `waiting`: they wait until their statement ends, for -1, and for the text `wait`.
fn create_waiting(db: &Database) {
    let until_the_end = || {
        while !statement_ends() {
            thread::yield_now();
        }
    };
    let scalar = Function::scalar("waits", 1, FunctionFlags::SQLITE_UTF8, move |context| {
        let value = context.get::<i64>(0)?;
        if value == -1 {
            until_the_end();
            return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None));
        }
        Ok(value)
    });
    create(db, scalar.unwrap().waiting()).unwrap();
    let collation = Function::collation("waiting", move |one, other| {
        if one == "wait" || other == "wait" {
            until_the_end();
            return Err("ended".into());
        }
        Ok(one.cmp(other))
    });
    create(db, collation.unwrap().waiting()).unwrap();
}

const SHORT: Duration = Duration::from_millis(20);

#[test]
fn a_deadline_ends_a_wait_in_a_function_and_in_a_collation() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        create_waiting(&db);
        assert_eq!(db.query_value::<i64>("SELECT waits(7)", ()).await.unwrap(), 7);
        for sql in ["SELECT waits(-1)", "SELECT 'a' < 'wait' COLLATE waiting"] {
            let error = db.query(sql, ()).timeout(SHORT).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout, "{sql}: {error}");
        }
        assert!(!statement_ends(), "no function runs on this thread");
    });
}

#[test]
fn a_write_that_ends_in_a_wait_leaves_nothing() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        create_waiting(&db);
        db.execute_script("CREATE TABLE texts (a TEXT COLLATE waiting PRIMARY KEY); CREATE TABLE numbers (a)")
            .await
            .unwrap();
        for sql in [
            "INSERT INTO texts VALUES ('a'), ('b'), ('wait')",
            "INSERT INTO numbers SELECT waits(value) FROM json_each('[1, 2, -1]')",
        ] {
            let error = db.execute(sql, ()).timeout(SHORT).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Timeout, "{sql}: {error}");
        }
        db.execute("INSERT INTO texts VALUES ('a')", ()).await.unwrap();
        let left = "SELECT (SELECT count(*) FROM texts) * 10 + (SELECT count(*) FROM numbers)";
        assert_eq!(db.query_value::<i64>(left, ()).await.unwrap(), 10);
        // Plain SQLite, which checks the file, does not have the collation.
        db.execute("DROP TABLE texts", ()).await.unwrap();
    });
}

#[test]
fn a_close_and_a_caller_that_leaves_end_waits() {
    run(async {
        let file = TestFile::new();
        let db = empty_table(file.options()).await;
        create_waiting(&db);
        let left = db.query("SELECT waits(-1)", ()).timeout(Duration::from_secs(3600));
        drop(left);
        // A writer that was left serves the next one.
        let write = db.execute("INSERT INTO t VALUES (waits(-1))", ()).timeout(SHORT).await;
        assert_eq!(write.unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(db.query_value::<i64>("SELECT waits(1)", ()).await.unwrap(), 1);
        db.close().await.unwrap();
    });
}
