//! The same on connections of callers, on their callers' threads and on helper threads.

use flatwater::Connection;

use super::{
    Duration, EIO, ENOSPC, Error, ErrorKind, Inline, InlineLimits, TestFile, alone, fail_commits, fail_reads,
    fail_writes, run, support, wait_until, with_a_long_schema,
};

/// What one round runs. The connection has run all of it before.
const ROUNDS: [&[&str]; 4] = [
    &["INSERT INTO t VALUES (?)"],
    &["BEGIN IMMEDIATE", "INSERT INTO t VALUES (?)", "COMMIT"],
    &["BEGIN", "INSERT INTO t VALUES (?)", "END"],
    // A write with this function is not short.
    &["BEGIN", "INSERT INTO t VALUES (format('%d', ?))", "COMMIT"],
];

/// Runs the statements, and what is open is rolled back if one fails. The transaction of a write that the disk failed is over.
fn transaction(own: &Connection, statements: &[&str], n: i64) -> Result<(), Error> {
    let mut ran = Ok(());
    for sql in statements {
        let params = if sql.contains('?') { vec![n] } else { vec![] };
        ran = own.execute(*sql, params).wait().map(drop);
        if ran.is_err() {
            break;
        }
    }
    if own.in_transaction() {
        own.execute("ROLLBACK", ()).wait().unwrap();
    }
    ran
}

#[test]
fn what_fails_on_a_connection_of_a_caller_is_answered_truly_and_holds_up_nobody() {
    let _alone = alone();
    for (errno, kind) in [(EIO, ErrorKind::Io), (ENOSPC, ErrorKind::Full)] {
        let file = TestFile::new();
        let unhurried = InlineLimits::default().time(Duration::from_secs(60));
        let db = file.options().tuning(|t| t.inline(Inline::Auto(unhurried))).open().wait().unwrap();
        db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)", ()).wait().unwrap();
        let plain = file.plain();
        plain.busy_timeout(Duration::ZERO).unwrap();
        let mut own = db.connection();
        let (mut n, mut missing, mut failures, mut here) = (0, 0, 0, 0_u64);
        for round in 0.. {
            if round >= 200 && failures > 20 && here > 20 {
                break;
            }
            assert!(round < 10_000, "{failures} failed, {here} ran on this thread");
            let statements = ROUNDS[usize::try_from(round).unwrap() % ROUNDS.len()];
            let before = db.stats().inline.writes;
            n += 1;
            transaction(&own, statements, n).unwrap();
            here += db.stats().inline.writes - before;
            n += 1;
            let fault = fail_writes(round / 4 % 3, 1 + round / 4 % 5, errno);
            let outcome = transaction(&own, statements, n);
            drop(fault);
            assert!(!own.in_transaction());
            // The checkpointer has the lock for a moment now and then.
            wait_until(|| plain.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok());
            let there = support::integer(&plain, &format!("SELECT count(*) FROM t WHERE n = {n}")) == 1;
            match outcome {
                Ok(()) => assert!(there, "{n} was acknowledged and is lost"),
                Err(error) => {
                    failures += 1;
                    let is_unknown = error.kind() == ErrorKind::CommitUnknown;
                    assert!(is_unknown || !there && error.kind() == kind, "{round}, {there}: {error}");
                    if is_unknown {
                        // Its connection was given up.
                        assert_eq!(own.query("SELECT 1", ()).wait().unwrap_err().kind(), ErrorKind::Misuse);
                        own = db.connection();
                    }
                }
            }
            missing += i64::from(!there);
            n += 1;
            db.execute("INSERT INTO t VALUES (?)", (n,)).wait().unwrap();
            assert_eq!(support::integer(&plain, "SELECT count(*) FROM t"), n - missing, "the others stay");
        }
        drop(own);
        run(db.close()).unwrap();
        assert_eq!(support::integrity(&plain), "ok");
    }
}

/// The fence fails too. What was committed before is not in doubt.
#[test]
fn an_own_connection_whose_commit_is_in_doubt_is_given_up_and_the_database_goes_on() {
    let (_alone, file) = (alone(), TestFile::new());
    run(async {
        let db = file.options().durability(flatwater::options::Durability::Full).open().await.unwrap();
        db.execute("CREATE TABLE t (n)", ()).await.unwrap();
        for statements in ROUNDS {
            let own = db.connection();
            let (last, before) = statements.split_last().unwrap();
            for sql in before {
                own.execute(*sql, if sql.contains('?') { vec![1] } else { vec![] }).await.unwrap();
            }
            // The checkpointer commits too, now and then.
            let fault = fail_commits(i64::MAX);
            let outcome = own.execute(*last, if last.contains('?') { vec![1] } else { vec![] }).await;
            drop(fault);
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::CommitUnknown, "{last}");
            assert!(!own.in_transaction());
            assert_eq!(own.execute("INSERT INTO t VALUES (2)", ()).await.unwrap_err().kind(), ErrorKind::Misuse);
            db.connection().execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
            db.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
        }
        db.close().await.unwrap();
        let plain = file.plain();
        assert_eq!(support::integer(&plain, "SELECT sum(n) FROM t WHERE n = 3"), 24);
        assert_eq!(support::integrity(&plain), "ok");
    });
}

/// What is looked up of the schema before and after a statement reads pages too, and a read that fails ends the transaction.
#[test]
fn a_transaction_of_a_connection_that_a_failing_read_ends_is_told_at_once() {
    let (_alone, file) = (alone(), TestFile::new());
    let plain = with_a_long_schema(&file);
    let db = file.options().open().wait().unwrap();
    let own = db.connection();
    let (mut failed, mut rows) = (0, 0);
    for text in 0..100 {
        let insert = format!("INSERT INTO t (n, text) VALUES (?, {text})");
        own.execute(&*insert, (0,)).wait().unwrap();
        // What the connection has in memory is out of date.
        plain.execute_batch(&format!("CREATE TABLE u{text} (a); DELETE FROM t WHERE text = {text}")).unwrap();
        own.execute("BEGIN IMMEDIATE", ()).wait().unwrap();
        let ran = {
            let _fault = fail_reads(text % 10, 1, EIO);
            own.execute(&*insert, (1,)).wait()
        };
        if ran.is_ok() {
            assert!(own.in_transaction(), "{text}");
            own.execute(&*insert, (2,)).wait().unwrap();
            own.execute("COMMIT", ()).wait().unwrap();
            rows += 2;
        } else {
            failed += 1;
            if own.in_transaction() {
                own.execute("ROLLBACK", ()).wait().unwrap();
            }
        }
        assert_eq!(support::integer(&plain, "SELECT count(*) FROM t"), rows, "{text}: {ran:?}");
    }
    assert!(failed > 10, "hardly a call failed: {failed}");
}
