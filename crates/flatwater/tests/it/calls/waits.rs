//! Every wait of the engine ends when its caller leaves, and at its deadline; an opening and a close have limits of their
//! own in the place of a deadline. What is waited for is forced: an open transaction, a held connection, a lock of another
//! connection as another process would have it.
//!
//! Leaves out: what runs (`ends`), which results there are then (`deadlines`, `cancel`).

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use flatwater::calls::{CancelOutcome, CheckpointMode};
use flatwater::options::Journal;
use flatwater::values::ExecuteResult;
use flatwater::{Call, Database, Error, ErrorKind, Options};
use futures_util::future::join;

use crate::support::{ENDLESS, TestFile, count, empty_table, grouped, run, until, waiting};

const SOON: Duration = Duration::from_millis(20);
/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);
const INSERT: &str = "INSERT INTO t VALUES (1)";

type Waits = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;
/// Begins a call whose deadline is that of the handle.
type Begin = fn(Database) -> Waits;

/// Everything that takes the writer's turn, and then the lock of the file.
const WRITES: [(&str, Begin); 9] = [
    ("execute", |db| Box::pin(async move { db.execute(INSERT, ()).await.map(drop) })),
    ("query", |db| Box::pin(async move { db.query("INSERT INTO t VALUES (1) RETURNING a", ()).await.map(drop) })),
    ("execute_many", |db| Box::pin(async move { db.execute_many("INSERT INTO t VALUES (?)", [(1,)]).await.map(drop) })),
    ("batch", |db| Box::pin(async move { db.batch([(INSERT, ())]).await.map(drop) })),
    ("script", |db| Box::pin(async move { db.execute_script(INSERT).await })),
    ("write_with", |db| {
        Box::pin(async move { db.write_with(|tx| tx.execute(INSERT, []).map(drop).map_err(Error::from)).await })
    }),
    ("begin", |db| Box::pin(async move { db.begin().await.map(drop) })),
    ("migrate", |db| Box::pin(async move { db.migrate([("001_a", "CREATE TABLE u (a)")]).await.map(drop) })),
    ("group", |db| {
        Box::pin(async move {
            let (first, second) = join(db.execute(INSERT, ()), db.execute(INSERT, ())).await;
            first.and(second).map(drop)
        })
    }),
];

const READS: [(&str, Begin); 3] = [
    ("query", |db| Box::pin(async move { db.query("SELECT a FROM t", ()).await.map(drop) })),
    ("json", |db| Box::pin(async move { db.query_json("SELECT a FROM t", ()).await.map(drop) })),
    ("value", |db| Box::pin(async move { db.query_optional_value::<i64>("SELECT a FROM t", ()).await.map(drop) })),
];

const HELD_READS: [(&str, Begin); 3] = [
    ("read_with", |db| Box::pin(async move { db.read_with(|_| Ok::<_, Error>(())).await })),
    ("snapshot", |db| Box::pin(async move { db.snapshot().await.map(drop) })),
    ("stream", |db| {
        Box::pin(async move { db.stream("SELECT a FROM t", ()).next().await.map_or(Ok(()), |row| row.map(drop)) })
    }),
];

/// Checks that the wait ends at its deadline, and when its caller leaves once the condition holds.
async fn ends(db: &Database, (name, begin): (&str, Begin), is_reached: impl Fn() -> bool) {
    let late = begin(db.with_timeout(SOON)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout, "{name}: {late}");
    let mut call = begin(db.clone());
    assert!(futures_util::poll!(&mut call).is_pending(), "{name} does not wait");
    until(is_reached).await;
    drop(call);
}

/// Holds a connection, without a lock of the file, until the sender is dropped.
struct Held(#[allow(dead_code, reason = "its drop ends the closure")] Sender<()>);

impl Held {
    fn closure() -> (impl FnOnce() + Send + 'static, impl Future<Output = Self>) {
        let ((begins, begun), (release, released)) = (channel(), channel::<()>());
        let wait = move || {
            begins.send(()).unwrap();
            let _ = released.recv();
        };
        let held = async {
            tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
            Self(release)
        };
        (wait, held)
    }

    async fn writer(db: &Database) -> Self {
        let (wait, held) = Self::closure();
        tokio::spawn(db.with_connection(move |_| {
            wait();
            Ok::<_, Error>(())
        }));
        held.await
    }

    async fn reader(db: &Database) -> Self {
        let (wait, held) = Self::closure();
        tokio::spawn(db.read_with(move |_| {
            wait();
            Ok::<_, Error>(())
        }));
        held.await
    }
}

#[test]
fn a_wait_for_the_turn_of_the_writer_ends() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let held = Held::writer(&db).await;
        for write in WRITES {
            ends(&db, write, || waiting(&db) > 0).await;
        }
        drop(held);
        assert_eq!((db.execute("DELETE FROM t", ()).await.unwrap().changes, waiting(&db)), (0, 0));
    });
}

#[test]
fn a_wait_for_a_place_in_a_full_queue_ends() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().tuning(|t| t.queue(1).extra_readers(1))).await;
        let (writer, reader) = (Held::writer(&db).await, Held::reader(&db).await);
        let full = [WRITES[0].1(db.clone()), HELD_READS[0].1(db.clone())];
        let full = full.map(tokio::spawn);
        until(|| waiting(&db) == 2).await;
        for call in [WRITES[0], WRITES[6], HELD_READS[0], HELD_READS[1]] {
            ends(&db, call, || true).await;
        }
        drop((writer, reader));
        for call in full {
            call.await.unwrap().unwrap();
        }
        assert_eq!(count(&db).await, 1);
    });
}

#[test]
fn a_wait_for_a_reader_ends() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().readers(1).tuning(|t| t.extra_readers(1))).await;
        let mut endless = db.query(ENDLESS, ());
        assert!(futures_util::poll!(&mut endless).is_pending());
        until(|| waiting(&db) == 0).await;
        let held = Held::reader(&db).await;
        for read in READS.into_iter().chain(HELD_READS) {
            ends(&db, read, || waiting(&db) > 0).await;
        }
        drop((held, endless));
        assert_eq!(count(&db).await, 0);
    });
}

#[test]
fn a_wait_for_the_statement_before_it_in_a_transaction_ends() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let tx = db.begin().await.unwrap();
        let mut endless = tx.query(ENDLESS, ());
        assert!(futures_util::poll!(&mut endless).is_pending());
        let late = tx.execute(INSERT, ()).timeout(SOON).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout);
        let mut waits = tx.execute(INSERT, ());
        assert!(futures_util::poll!(&mut waits).is_pending());
        drop((waits, endless));
        tx.commit().await.unwrap();
        assert_eq!(count(&db).await, 0);
    });
}

/// A checkpoint needs no write lock, and tells that the writer is free.
#[test]
fn a_wait_for_the_write_lock_of_another_process_ends() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().busy_timeout(NEVER)).await;
        let plain = file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        for (name, write) in WRITES.into_iter().filter(|(name, _)| *name != "group") {
            ends(&db, (name, write), || db.stats().writes_waiting == 0).await;
            db.checkpoint(CheckpointMode::Passive).await.unwrap();
        }
        plain.execute_batch("COMMIT").unwrap();
        assert_eq!(db.execute("DELETE FROM t", ()).await.unwrap().changes, 0);
    });
}

/// Begins a group that waits for the lock of the other connection. Nothing else waits.
async fn begin_group(db: &Database, plain: &rusqlite::Connection, members: [i64; 2]) -> [Call<ExecuteResult>; 2] {
    for _ in 0..2 {
        db.ungrouped().execute(MEMBER, (0,)).await.unwrap();
    }
    db.execute("DELETE FROM t", ()).await.unwrap();
    plain.execute_batch("BEGIN IMMEDIATE").unwrap();
    let alone = db.ungrouped();
    let mut first = alone.execute(MEMBER, (0,));
    assert!(futures_util::poll!(&mut first).is_pending());
    until(|| waiting(db) == 0).await;
    let mut calls = members.map(|number| db.execute(MEMBER, (number,)));
    for call in &mut calls {
        assert!(futures_util::poll!(call).is_pending());
    }
    drop(first);
    until(|| waiting(db) == 0).await;
    calls
}

const MEMBER: &str = "INSERT INTO t VALUES (?)";

#[test]
fn a_wait_of_a_group_for_the_write_lock_ends() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(grouped(file.options()).busy_timeout(NEVER)).await;
        let plain = file.plain();
        drop(begin_group(&db, &plain, [1, 2]).await);
        db.checkpoint(CheckpointMode::Passive).await.unwrap();
        plain.execute_batch("COMMIT").unwrap();
        assert_eq!(db.execute("DELETE FROM t", ()).await.unwrap().changes, 0);
    });
}

#[test]
fn a_member_that_leaves_while_its_group_waits_for_a_lock_takes_no_other_along() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(grouped(file.options()).busy_timeout(NEVER)).await;
        let plain = file.plain();
        let [leaves, stays] = begin_group(&db, &plain, [1, 2]).await;
        assert_eq!(leaves.cancel(), CancelOutcome::WriteInterrupted);
        plain.execute_batch("COMMIT").unwrap();
        stays.await.unwrap();
        assert_eq!(db.query_as::<(i64,)>("SELECT a FROM t", ()).await.unwrap(), [(2,)]);
    });
}

#[test]
fn a_wait_of_a_checkpoint_for_a_reader_ends() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().busy_timeout(NEVER)).await;
        let plain = file.plain();
        plain.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        db.execute(INSERT, ()).await.unwrap();
        let truncate: Begin = |db| Box::pin(async move { db.checkpoint(CheckpointMode::Truncate).await.map(drop) });
        ends(&db, ("checkpoint", truncate), || db.stats().writes_waiting == 0).await;
        db.execute(INSERT, ()).await.unwrap();
        plain.execute_batch("COMMIT").unwrap();
    });
}

#[test]
fn a_wait_for_the_lock_of_an_attached_file_in_a_transaction_ends() {
    let (file, other) = (TestFile::new(), TestFile::new());
    run(async {
        empty_table(other.options()).await.close().await.unwrap();
        let db = empty_table(file.options().tuning(|t| t.attach("other", other.path())).busy_timeout(NEVER)).await;
        let plain = other.plain();
        // A transaction would take this lock at its beginning.
        let tx = db.begin().await;
        let tx = tx.unwrap();
        drop(tx);
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let write: Begin =
            |db| Box::pin(async move { db.execute("INSERT INTO other.t VALUES (1)", ()).await.map(drop) });
        for call in [("execute", write), WRITES[6]] {
            ends(&db, call, || db.stats().writes_waiting == 0).await;
            db.checkpoint(CheckpointMode::Passive).await.unwrap();
        }
        plain.execute_batch("COMMIT").unwrap();
    });
}

/// Outside of WAL mode a commit waits for those who read.
#[test]
fn a_wait_of_a_commit_for_a_reader_of_another_process_ends() {
    let file = TestFile::new();
    run(async {
        file.plain().execute_batch("CREATE TABLE t (a)").unwrap();
        let db = file.options().journal(Journal::Keep).busy_timeout(NEVER).open().await.unwrap();
        let plain = file.plain();
        let mut statement = plain.prepare("SELECT 1 FROM sqlite_schema").unwrap();
        let mut rows = statement.query([]).unwrap();
        rows.next().unwrap();
        for (name, begin) in WRITES.into_iter().filter(|(name, _)| !matches!(*name, "begin" | "group")) {
            ends(&db, (name, begin), || db.stats().writes_waiting == 0).await;
            assert_eq!(db.query("SELECT a FROM t", ()).await.unwrap().len(), 0, "{name}");
        }
        let commit: Begin = |db| {
            Box::pin(async move {
                let tx = db.begin().await?;
                tx.execute(INSERT, ()).await?;
                tx.commit().await
            })
        };
        let mut call = commit(db.with_timeout(SOON * 10));
        let late = (&mut call).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout, "{late}");
        let call = tokio::spawn(commit(db.clone()));
        let committing = || db.stats().calls.iter().any(|calls| calls.kind == "execute" && calls.count > 0);
        until(committing).await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        assert_eq!(db.query("SELECT a FROM t", ()).await.unwrap().len(), 0);
        drop(rows);
    });
}

/// Returns true while this process opens or closes the file.
fn is_claimed(file: &TestFile) -> bool {
    match file.options().busy_timeout(Duration::ZERO).open().wait() {
        Ok(db) => db.close().wait().is_err(),
        Err(error) => error.message().contains("in this process"),
    }
}

/// Checks that the opening ends at its own limit, and leaves nothing when its caller leaves.
async fn opening_ends(file: &TestFile, options: Options, what: &str) {
    let busy = options.clone().busy_timeout(SOON).open().await.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy, "{what}: {busy}");
    until(|| !is_claimed(file)).await;
    let mut open = Box::pin(options.busy_timeout(NEVER).open());
    assert!(futures_util::poll!(&mut open).is_pending());
    until(|| is_claimed(file)).await;
    drop(open);
    until(|| !is_claimed(file)).await;
}

#[test]
fn an_opening_that_waits_for_a_lock_ends() {
    let file = TestFile::new();
    run(async {
        let plain = file.plain();
        plain.execute_batch("CREATE TABLE t (a)").unwrap();
        // It cannot be read.
        plain.execute_batch("BEGIN EXCLUSIVE").unwrap();
        opening_ends(&file, file.options(), "to write").await;
        opening_ends(&file, file.options().read_only(true), "to read").await;
        plain.execute_batch("COMMIT").unwrap();
        // It can be read, and not be switched to WAL.
        let mut statement = plain.prepare("SELECT 1 FROM sqlite_schema").unwrap();
        let mut rows = statement.query([]).unwrap();
        rows.next().unwrap();
        opening_ends(&file, file.options(), "the switch to WAL").await;
        drop(rows);
        drop(statement);
        // Another one attaches it.
        plain.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let main = TestFile::new();
        let mut open = Box::pin(main.options().tuning(|t| t.attach("other", file.path())).busy_timeout(NEVER).open());
        assert!(futures_util::poll!(&mut open).is_pending());
        until(|| main.path().exists()).await;
        drop(open);
        until(|| !is_claimed(&main)).await;
        plain.execute_batch("COMMIT").unwrap();
    });
}

#[test]
fn an_opening_whose_migration_waits_or_runs_ends() {
    let file = TestFile::new();
    run(async {
        let first = ("001_a", "CREATE TABLE u (a)");
        empty_table(file.options()).await.close().await.unwrap();
        let plain = file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        let busy = file.options().migrations([first]).busy_timeout(SOON).open().await.unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Busy, "{busy}");
        let mut open = Box::pin(file.options().migrations([first]).busy_timeout(NEVER).open());
        assert!(futures_util::poll!(&mut open).is_pending());
        drop(open);
        // With other options it is refused while the one that was given up has it.
        let other = file.options().busy_timeout(NEVER).tuning(|t| t.transaction_idle(SOON));
        until(|| other.clone().open().wait().is_ok()).await;
        plain.execute_batch("COMMIT").unwrap();
        let mut open = Box::pin(file.options().migrations([first, ("002_b", ENDLESS)]).open());
        assert!(futures_util::poll!(&mut open).is_pending());
        let tables = "SELECT count(*) FROM sqlite_schema WHERE name = 'u'";
        until(|| plain.query_row(tables, [], |row| row.get::<_, i64>(0)) == Ok(1)).await;
        drop(open);
        until(|| other.clone().open().wait().is_ok()).await;
    });
}

/// A file that is being opened, and one that is being closed.
#[test]
fn an_opening_that_waits_for_another_one_of_this_process_ends() {
    let file = TestFile::new();
    run(async {
        file.plain().execute_batch("CREATE TABLE t (a)").unwrap();
        let plain = file.plain();
        plain.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let mut first = Box::pin(file.options().busy_timeout(NEVER).open());
        assert!(futures_util::poll!(&mut first).is_pending());
        let mut seconds: Vec<_> = (0..4).map(|_| Box::pin(file.options().busy_timeout(NEVER).open())).collect();
        for second in &mut seconds {
            assert!(futures_util::poll!(second).is_pending());
        }
        seconds.truncate(2);
        drop(first);
        plain.execute_batch("COMMIT").unwrap();
        for second in seconds {
            second.await.unwrap();
        }
    });
}

#[test]
fn a_wait_for_a_close_ends_and_the_close_goes_on() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().tuning(|t| t.close_wait(NEVER))).await;
        let held = Held::reader(&db).await;
        let mut close = Box::pin(db.close());
        assert!(futures_util::poll!(&mut close).is_pending());
        drop(close);
        drop(held);
        drop(db);
        file.open().await.close().await.unwrap();
    });
}
