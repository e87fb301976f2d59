//! The writer's lease: short writes continue in the snapshot of the previous write. No caller can observe this, neither
//! by what is written nor by waiting for it.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatwater::bindings::Internals as _;
use flatwater::calls::CheckpointMode;
use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::{Database, Error, Options, rusqlite};

use crate::support::{TestFile, integer, run, unhurried, wait_until};

const COUNT: &str = "UPDATE counter SET n = n + 1 WHERE id = 1";
const N: &str = "SELECT n FROM counter";
/// So often the other program counts.
const THEIRS: i64 = 1000;

fn counter(options: Options) -> Database {
    let db = unhurried(options).open().wait().unwrap();
    let table = "CREATE TABLE counter (id INTEGER PRIMARY KEY, n); INSERT INTO counter VALUES (1, 0)";
    db.execute_script(table).wait().unwrap();
    db
}

fn count(db: &Database) {
    assert_eq!(db.execute(COUNT, ()).wait().unwrap().changes, 1);
}

fn counted(db: &Database) -> i64 {
    db.query_optional_value(N, ()).wait().unwrap().unwrap()
}

fn written(db: &Database) -> u64 {
    db.stats().leases.reused_by_writes
}

/// Writes until a write continues in the snapshot of the previous one, which is held from then on. Returns the number of
/// writes.
fn hold_by(db: &Database, write: impl Fn()) -> i64 {
    let (before, writes) = (written(db), Cell::new(0));
    wait_until(|| {
        (0..20).any(|_| {
            write();
            writes.set(writes.get() + 1);
            written(db) > before
        })
    });
    writes.get()
}

fn hold(db: &Database) -> i64 {
    hold_by(db, || count(db))
}

/// Waits until no connection holds the write lock. The checkpointer holds it for a moment now and then.
fn nobody_writes(plain: &rusqlite::Connection) {
    wait_until(|| plain.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok());
}

#[test]
fn writes_that_follow_each_other_go_on_in_one_snapshot_and_everybody_sees_each_at_once() {
    let file = TestFile::new();
    let db = counter(file.options());
    let plain = file.plain();
    let mut number = 0;
    for _ in 0..200 {
        number += hold(&db);
        assert_eq!(integer(&plain, N), number);
        count(&db);
        number += 1;
        assert_eq!(counted(&db), number);
    }
}

#[test]
fn a_snapshot_that_nobody_uses_goes_by_itself() {
    let file = TestFile::new();
    let db = counter(file.options());
    let plain = file.plain();
    plain.busy_timeout(Duration::ZERO).unwrap();
    let by_itself = Cell::new(0);
    wait_until(|| {
        let resets = db.stats().wal.resets;
        hold(&db);
        wait_until(|| integer(&plain, "PRAGMA wal_checkpoint(TRUNCATE)") == 0);
        // The checkpointer in the slot ends a lease, too.
        by_itself.set(by_itself.get() + i32::from(db.stats().wal.resets == resets));
        by_itself.get() == 3
    });
}

/// Ends the other threads when a thread ends or fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_foreign_truncate_is_done_in_spite_of_writes_that_never_pause() {
    let file = TestFile::new();
    let db = counter(file.options());
    let plain = file.plain();
    plain.busy_timeout(Duration::from_millis(200)).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&ended);
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                count(&db);
            }
        });
        for _ in 0..20 {
            let before = written(&db);
            wait_until(|| written(&db) > before + 100);
            // While our own checkpointer copies it is refused at once.
            wait_until(|| integer(&plain, "PRAGMA wal_checkpoint(TRUNCATE)") == 0);
        }
    });
}

/// A WAL of less than 64 frames is not touched by the checkpointer, whose locks would be another reason to begin anew.
#[test]
fn commits_of_others_between_two_writes_are_seen_before_the_second_begins() {
    let mut reused = 0;
    for _ in 0..30 {
        let file = TestFile::new();
        let db = counter(file.options());
        let plain = file.plain();
        let mut ours = 0;
        for theirs in 0..15 {
            for _ in 0..theirs % 5 {
                count(&db);
                ours += 1;
            }
            assert_eq!(plain.execute(COUNT, []).unwrap(), 1);
        }
        assert_eq!(counted(&db), 15 + ours);
        assert_eq!(db.stats().inline.moved, 0);
        reused += written(&db);
    }
    assert!(reused > 0);
}

#[test]
fn commits_of_others_beside_writes_are_built_upon() {
    let file = TestFile::new();
    let managed = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(64 << 20);
    let db = counter(file.options().checkpoint(Checkpoint::Managed(managed)));
    let plain = file.plain();
    plain.busy_timeout(Duration::from_secs(60)).unwrap();
    let mut ours = hold(&db);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ended = &ended;
        scope.spawn(move || {
            let _ends = Ends(ended);
            (0..THEIRS).for_each(|_| assert_eq!(plain.execute(COUNT, []).unwrap(), 1));
        });
        while !ended.load(Ordering::Relaxed) {
            count(&db);
            ours += 1;
        }
    });
    assert_eq!(counted(&db), THEIRS + ours);
}

/// The other statement was prepared under the old schema when it runs in the snapshot of a write under the new one.
#[test]
fn a_schema_that_somebody_else_changes_is_written_under_at_once() {
    const OTHER: &str = "INSERT INTO other (a) VALUES (1)";
    let file = TestFile::new();
    let db = counter(file.options());
    let plain = file.plain();
    plain.execute_batch("CREATE TABLE other (a, b)").unwrap();
    let other = || assert_eq!(db.execute(OTHER, ()).wait().unwrap().changes, 1);
    let (mut number, mut others) = (0, 0);
    let mut columns = 0..500;
    // A write is tried under the new schema if nobody else has the token just then.
    while columns.start < 5 || db.stats().inline.moved == 0 {
        let column = columns.next().expect("none was tried under the new schema");
        others += hold_by(&db, other);
        plain.execute_batch(&format!("ALTER TABLE other ADD COLUMN c{column} DEFAULT 7")).unwrap();
        number += hold(&db);
        other();
        others += 1;
        nobody_writes(&plain);
        assert_eq!(integer(&plain, &format!("SELECT count(*) FROM other WHERE c{column} = 7")), others);
        assert_eq!(counted(&db), number);
    }
}

#[test]
fn a_write_that_fails_leaves_no_lock_and_costs_the_next_one_nothing() {
    let file = TestFile::new();
    let db = counter(file.options());
    let plain = file.plain();
    plain.busy_timeout(Duration::ZERO).unwrap();
    let blocking = db.clone();
    blocking.execute("CREATE TABLE one (a UNIQUE)", ()).wait().unwrap();
    let next = Cell::new(0);
    for kept in ["one (a) VALUES (?)", "one VALUES (?)", "main.one VALUES (?)", "main.one (a) VALUES (?)"] {
        let insert = format!("INSERT INTO {kept}");
        let moved = db.stats().inline.moved;
        // Until the failing one, too, is tried on this thread.
        wait_until(|| {
            hold_by(&db, || {
                next.set(next.get() + 1);
                assert_eq!(blocking.execute(&insert, (next.get(),)).wait().unwrap().changes, 1);
            });
            let error = blocking.execute(&insert, (next.get(),)).wait().unwrap_err();
            assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_UNIQUE"), "{error}");
            nobody_writes(&plain);
            db.stats().inline.moved > moved
        });
    }
    assert_eq!(integer(&plain, "SELECT count(*) FROM one"), next.get());
    hold(&db);
}

/// Statements that SQLite refuses while a statement of the connection is running, and statements that leave an old
/// snapshot.
#[test]
fn whatever_comes_next_finds_the_connection_free() {
    let file = TestFile::new();
    let copy = file.beside("-copy");
    let db = counter(file.options());
    let blocking = db.clone();
    let mut number = 0;
    let mut next = |what: &dyn Fn()| {
        number += hold(&db);
        what();
        assert_eq!(counted(&db), number);
    };
    next(&|| assert_eq!(blocking.execute("VACUUM", ()).wait().unwrap().changes, 0));
    next(&|| assert_eq!(blocking.execute("VACUUM INTO ?", (path(&copy),)).wait().unwrap().changes, 0));
    next(&|| blocking.execute_script("CREATE TABLE other (a); DROP TABLE other").wait().unwrap());
    next(&|| assert!(run(db.checkpoint(CheckpointMode::Truncate)).is_ok()));
    next(&|| {
        let deleted = blocking.write_with(|transaction| {
            let deleted = transaction.execute("DELETE FROM counter WHERE n < 0", [])?;
            Ok::<_, Error>(deleted)
        });
        assert_eq!(deleted.wait().unwrap(), 0);
    });
    next(&|| {
        run(async {
            let transaction = db.begin().await.unwrap();
            transaction.execute("UPDATE counter SET n = -1", ()).await.unwrap();
            transaction.rollback().await.unwrap();
        });
    });
    next(&|| assert_eq!(blocking.execute_many("DELETE FROM counter WHERE n = ?", [(-1,), (-2,)]).wait().unwrap(), 0));
    hold(&db);
    run(db.close()).unwrap();
    assert!(!file.beside("-wal").exists(), "the last user tidied up");
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// SQLite keeps an interrupt in force until no statement of the connection is running.
#[test]
fn an_interrupt_by_a_handle_that_a_closure_leaked_costs_no_write() {
    let file = TestFile::new();
    let db = counter(file.options());
    let handle = db.write_with(|transaction| Ok::<_, Error>(transaction.get_interrupt_handle())).wait().unwrap();
    let mut number = 0;
    for _ in 0..5 {
        number += hold(&db);
        handle.interrupt();
        count(&db);
        number += 1;
    }
    assert_eq!(counted(&db), number);
}

#[test]
fn there_is_none_where_it_would_harm() {
    let (file, other) = (TestFile::new(), TestFile::new());
    other.plain().execute_batch("PRAGMA journal_mode = wal; CREATE TABLE o (a)").unwrap();
    let db = counter(file.options());
    hold(&db);
    run(db.close()).unwrap();
    let without = |options: Options| {
        let db = unhurried(options.clone()).open().wait().unwrap();
        wait_until(|| {
            (0..200).for_each(|_| count(&db));
            db.stats().inline.writes > 100
        });
        assert_eq!(written(&db), 0, "{options:?}");
        run(db.close()).unwrap();
    };
    without(file.options().tuning(|t| t.leases(false)));
    without(file.options().checkpoint(Checkpoint::External));
    without(file.options().tuning(|t| t.attach("other", other.path())));
    file.plain().execute_batch("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq)").unwrap();
    without(file.options());
}
