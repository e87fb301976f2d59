//! Deadlines that pass, and callers that leave, at each step of a write: the answer and the file always agree.
//!
//! Its own program, because the process-wide switch that holds a step counts the steps of all connections. A step is
//! held until the deadline has passed or the caller is gone, so no test depends on the speed of the machine.

use std::cell::Cell;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use flatwater::calls::TimeoutEffect;
use flatwater::options::{Checkpoint, GroupLimits, Inline, InlineLimits};
use flatwater::{Call, Database, Error, ErrorKind, Options, Result};
use flatwater_sqlite::held_step::{HeldStep, count_from_here, look_at_each_step};
use futures_util::future::{join3, select};
use futures_util::pin_mut;

/// The longest budget of steps.
const STEPS: u64 = 200;
/// The rows of the table.
const ROWS: i64 = 40;
const INSERT: &str = "INSERT INTO t VALUES (100, 40, 'x')";
const UPDATE: &str = "UPDATE t SET n = n + 1, s = s || 'y' WHERE id <= 40";
const OTHER: &str = "INSERT INTO other DEFAULT VALUES";

const CLOSE_WAIT: Duration = Duration::from_millis(10);

/// A write, with a deadline if there is one.
type Write = fn(Database, Option<Duration>) -> Answer;
type Answer = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// The call with its deadline. The steps count from here.
fn within<T>(call: Call<T>, time: Option<Duration>) -> Call<T> {
    count_from_here();
    match time {
        Some(time) => call.timeout(time),
        None => call,
    }
}

fn insert(db: Database, time: Option<Duration>) -> Answer {
    Box::pin(async move { within(db.execute(INSERT, ()), time).await.map(drop) })
}

fn update(db: Database, time: Option<Duration>) -> Answer {
    Box::pin(async move { within(db.execute(UPDATE, ()), time).await.map(drop) })
}

/// On the thread of the caller, which may block.
fn update_here(db: Database, time: Option<Duration>) -> Answer {
    Box::pin(async move { within(db.execute(UPDATE, ()), time).wait().map(drop) })
}

fn returning(db: Database, time: Option<Duration>) -> Answer {
    Box::pin(async move {
        let rows = within(db.query(format!("{UPDATE} RETURNING id, n"), ()), time).await?;
        assert_eq!(rows.len() as i64, ROWS);
        Ok(())
    })
}

fn many(db: Database, time: Option<Duration>) -> Answer {
    Box::pin(async move {
        count_from_here();
        let rows = db.execute_many("UPDATE t SET n = n + 1 WHERE id = ?", (1..=ROWS).map(|id| (id,)));
        match time {
            Some(time) => rows.timeout(time).await.map(drop),
            None => rows.await.map(drop),
        }
    })
}

fn batch(db: Database, time: Option<Duration>) -> Answer {
    Box::pin(async move {
        let quarter = |from: i64| ("UPDATE t SET n = n + 1 WHERE id BETWEEN ? AND ?", (from, from + 9));
        within(db.batch([quarter(1), quarter(11), quarter(21), quarter(31)]), time).await.map(drop)
    })
}

fn script(db: Database, time: Option<Duration>) -> Answer {
    let script = "UPDATE t SET n = n + 1 WHERE id <= 20; UPDATE t SET n = n + 1 WHERE id BETWEEN 21 AND 40";
    Box::pin(async move { within(db.execute_script(script), time).await })
}

/// A transaction, each of whose calls has the deadline.
fn transaction(db: Database, time: Option<Duration>) -> Answer {
    Box::pin(async move {
        let db = time.map_or(db.clone(), |time| db.with_timeout(time));
        count_from_here();
        let tx = db.begin().await?;
        tx.execute("UPDATE t SET n = n + 20 WHERE id = 1", ()).await?;
        tx.execute("UPDATE t SET n = n + 20 WHERE id = 2", ()).await?;
        tx.commit().await
    })
}

/// A transaction of which only the commit has a deadline.
fn commit(db: Database, time: Option<Duration>) -> Answer {
    Box::pin(async move {
        let tx = db.begin().await?;
        tx.execute(UPDATE, ()).await?;
        within(tx.commit(), time).await
    })
}

fn closure(db: Database, time: Option<Duration>) -> Answer {
    let closure = |tx: &rusqlite::Transaction<'_>| tx.execute(UPDATE, []).map(drop).map_err(Error::from);
    Box::pin(async move { within(db.write_with(closure), time).await })
}

/// A member of a group, between two others, which have no deadline and are always there.
fn member(db: Database, time: Option<Duration>) -> Answer {
    Box::pin(async move {
        // They wait together for the end of this transaction.
        let tx = db.begin().await?;
        let group = join3(db.execute(OTHER, ()), within(db.execute(INSERT, ()), time), db.execute(OTHER, ()));
        pin_mut!(group);
        assert!(futures_util::poll!(&mut group).is_pending());
        tx.rollback().await?;
        let (first, own, last) = group.await;
        first.and(last).expect("a member without a deadline");
        own.map(drop)
    })
}

/// Another connection, without Flatwater.
fn plain(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

/// A group of three, without deadlines.
fn group(db: Database, _: Option<Duration>) -> Answer {
    Box::pin(async move {
        let tx = db.begin().await?;
        let group = join3(db.execute(OTHER, ()), db.execute(INSERT, ()), db.execute(OTHER, ()));
        pin_mut!(group);
        assert!(futures_util::poll!(&mut group).is_pending());
        count_from_here();
        tx.rollback().await?;
        let (first, own, last) = group.await;
        let all = [first, own, last];
        assert!(all.iter().all(Result::is_ok) || all.iter().all(Result::is_err), "{all:?}");
        all.into_iter().collect::<Result<Vec<_>>>().map(drop)
    })
}

struct Swept {
    _alone: MutexGuard<'static, ()>,
    /// What the callers who left were told, as the events of their calls say.
    told: Arc<Mutex<Vec<String>>>,
    directory: tempfile::TempDir,
    db: Database,
    plain: rusqlite::Connection,
}

impl Swept {
    fn new(inline: Inline) -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        look_at_each_step();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        // Nobody else's steps: no checkpointer. However long a step is held, the writes are members of a group.
        let group = GroupLimits::default().time(Duration::from_secs(3600));
        let options = Options::new(&path)
            .checkpoint(Checkpoint::External)
            .tuning(|t| t.group(group).inline(inline))
            .tuning(|t| t.close_wait(CLOSE_WAIT));
        let told = Arc::<Mutex<Vec<String>>>::default();
        let tells = told.clone();
        let options = options.on_statement(move |event| {
            let left = event.error.filter(|error| error.kind() == ErrorKind::Cancelled);
            tells.lock().unwrap().extend(left.map(|error| error.message().to_owned()));
        });
        let db = options.open().wait().unwrap();
        db.execute_script(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, s TEXT); CREATE INDEX by_n ON t (n, s);
             CREATE TABLE other (id INTEGER PRIMARY KEY)",
        )
        .wait()
        .unwrap();
        db.execute_many("INSERT INTO t VALUES (?, 0, 'x')", (1..=ROWS).map(|id| (id,))).wait().unwrap();
        Self { _alone: alone, told, plain: plain(&path), directory, db }
    }

    fn integer(&self, sql: &str) -> i64 {
        self.plain.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Returns whether the write is in the file, as another connection sees it. Half of it never is.
    fn is_there(&self) -> bool {
        match self.integer("SELECT sum(n) FROM t") {
            0 => false,
            ROWS => true,
            part => panic!("a part of the write is there: {part}"),
        }
    }

    /// Takes the write away. That this is possible shows that the database still works.
    fn undo(&self) {
        self.db
            .execute_script("DELETE FROM t WHERE id > 40; UPDATE t SET n = 0, s = 'x'; DELETE FROM other")
            .wait()
            .unwrap();
        assert!(!self.is_there());
    }

    /// Runs the write as it is, so that its texts are known.
    fn learn(&self, write: Write) {
        for _ in 0..5 {
            smol::block_on(write(self.db.clone(), None)).unwrap();
            assert!(self.is_there());
            self.undo();
        }
    }

    /// Lets the deadline of the write pass at this step. Returns its answer, or `None` if it has fewer steps.
    fn late_at(&self, step: u64, write: Write) -> Option<Result<()>> {
        let mut time = Duration::from_millis(2);
        loop {
            let held = HeldStep::at(step);
            let db = self.db.clone();
            let call = thread::spawn(move || smol::block_on(write(db, Some(time))));
            while !held.is_reached() && !call.is_finished() {
                thread::sleep(Duration::from_micros(20));
            }
            let is_reached = held.is_reached();
            if is_reached {
                // The call began before.
                let late = Instant::now() + time;
                while Instant::now() <= late {
                    thread::sleep(time / 4);
                }
            }
            drop(held);
            let answer = call.join().unwrap();
            match answer {
                answer if is_reached => return Some(answer),
                Ok(()) => {
                    assert!(self.is_there());
                    self.undo();
                    return None;
                }
                // The machine was busy, and the deadline passed before that step.
                Err(error) => {
                    self.agrees(Err(error));
                    time *= 2;
                }
            }
        }
    }

    /// Checks that the answer says what is in the file, and that the database still works.
    fn agrees(&self, answer: Result<()>) {
        match &answer {
            Ok(()) => assert!(self.is_there()),
            Err(error) => {
                assert!(!self.is_there(), "{error}");
                assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error:?}");
            }
        }
        self.undo();
    }

    /// Drops the call at this step. Returns false if it has fewer steps.
    fn left_at(&self, step: u64, write: Write) -> bool {
        let held = HeldStep::at(step);
        let (leave, left) = futures_util::future::abortable(std::future::pending::<()>());
        let db = self.db.clone();
        let caller = thread::spawn(move || {
            smol::block_on(async move {
                let call = write(db, None);
                pin_mut!(leave);
                // Dropped with what was selected.
                drop(select(call, leave).await);
            });
        });
        while !held.is_reached() && !caller.is_finished() {
            thread::sleep(Duration::from_micros(20));
        }
        let is_reached = held.is_reached();
        left.abort();
        caller.join().unwrap();
        drop(held);
        is_reached
    }

    fn ends_sound(self) {
        let sound: String = self.plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
        drop(self.plain);
        self.db.close().wait().unwrap();
    }
}

/// Returns how many steps were reached, and how many of the writes were ended there.
fn deadlines(inline: Inline, write: Write, after: impl Fn(&Swept)) -> (u64, u64) {
    let swept = Swept::new(inline);
    swept.learn(write);
    let (mut reached, mut ended) = (0, 0);
    for step in 1..=STEPS {
        let Some(answer) = swept.late_at(step, write) else { break };
        reached += 1;
        ended += u64::from(answer.is_err());
        after(&swept);
        swept.agrees(answer);
    }
    swept.ends_sound();
    (reached, ended)
}

#[test]
fn a_deadline_at_any_step_of_a_write_alone_tells_the_truth() {
    for write in [insert as Write, update, update_here, returning, many, batch, script, closure] {
        let (reached, ended) = deadlines(Inline::Never, write, |_| {});
        assert!(reached > 0 && ended > 0, "{reached} {ended}");
    }
}

#[test]
fn a_deadline_at_any_step_of_an_update_of_many_rows_tells_the_truth() {
    let (reached, ended) = deadlines(Inline::Never, update, |_| {});
    assert!(reached > 40 && ended > 40, "{reached} {ended}");
}

#[test]
fn a_deadline_at_any_step_of_a_transaction_tells_the_truth() {
    for inline in [Inline::Never, Inline::default()] {
        let (reached, ended) = deadlines(inline, transaction, |_| {});
        assert!(reached < STEPS && ended > 0, "{reached} {ended}");
    }
}

#[test]
fn a_deadline_at_any_step_of_a_commit_does_not_interrupt_it() {
    let (reached, ended) = deadlines(Inline::Never, commit, |_| {});
    assert!(reached > 0 && ended == 0, "{reached} {ended}");
}

#[test]
fn a_deadline_at_any_step_of_a_group_leaves_the_other_members_alone() {
    let members = Cell::new(0);
    let (reached, _) = deadlines(Inline::Never, member, |swept| {
        assert_eq!(swept.integer("SELECT count(*) FROM other"), 2);
        members.set(swept.db.stats().members);
    });
    assert!(reached > 0 && members.get() >= 3 * reached, "{reached} {}", members.get());
}

#[test]
fn a_deadline_at_any_step_of_a_write_on_its_callers_thread_does_not_interrupt_it() {
    let inline = Inline::Auto(InlineLimits::default().time(Duration::from_secs(1)));
    let mut there = 0;
    // Now and then the writer's thread is not done yet with what was before.
    for time in 0.. {
        for step in 1..=STEPS {
            let swept = Swept::new(inline);
            swept.learn(insert);
            let before = swept.db.stats().inline.writes;
            let Some(answer) = swept.late_at(step, insert) else { break };
            if swept.db.stats().inline.writes > before {
                there += 1;
                answer.clone().unwrap();
            }
            swept.agrees(answer);
            swept.ends_sound();
        }
        if there > 0 {
            break;
        }
        assert!(time < 100, "none ran on its caller's thread");
    }
}

#[test]
fn a_write_whose_caller_leaves_at_any_step_is_what_he_was_told() {
    for write in [insert as Write, update, returning, many, batch, script, closure] {
        let swept = Swept::new(Inline::Never);
        swept.learn(write);
        let (mut undone, mut finished) = (0, 0);
        for step in 1..=STEPS {
            swept.told.lock().unwrap().clear();
            let is_reached = swept.left_at(step, write);
            // Behind it in the queue.
            swept.db.execute(OTHER, ()).wait().unwrap();
            let told = swept.told.lock().unwrap().pop().unwrap_or_default();
            let is_undone = told.contains("was rolled back") || told.contains("before it ran");
            assert_eq!(swept.is_there(), !is_undone, "step {step}: {told}");
            undone += u64::from(is_undone && is_reached);
            finished += u64::from(told.contains("the write completes"));
            swept.undo();
            if !is_reached {
                break;
            }
        }
        assert!(undone > 0, "no step was undone, and {finished} were finished");
        swept.ends_sound();
    }
}

#[test]
fn a_transaction_whose_caller_leaves_at_any_step_is_committed_or_not_there() {
    for write in [transaction as Write, commit] {
        let swept = Swept::new(Inline::Never);
        swept.learn(write);
        let mut committed = 0;
        for step in 1..=STEPS {
            let is_reached = swept.left_at(step, write);
            swept.db.execute(OTHER, ()).wait().unwrap();
            committed += u64::from(swept.is_there());
            swept.undo();
            if !is_reached {
                break;
            }
        }
        assert!(committed > 0 && committed < STEPS);
        swept.ends_sound();
    }
}

/// A step that does not end, as in a function that sleeps: the close returns, and nothing is committed afterwards.
#[test]
fn a_write_that_does_not_end_is_left_behind_at_its_step_and_not_committed() {
    for (write, step, what) in [
        (update as Write, 20, "UPDATE t"),
        (many, 20, "UPDATE t"),
        (batch, 20, "a batch"),
        (commit, 1, "a commit"),
        (group, 8, "a group of writes"),
    ] {
        let swept = Swept::new(Inline::Never);
        swept.learn(write);
        let held = HeldStep::at(step);
        let db = swept.db.clone();
        let call = thread::spawn(move || smol::block_on(write(db, None)));
        while !held.is_reached() {
            assert!(!call.is_finished(), "{what}");
            thread::sleep(Duration::from_micros(20));
        }
        let path = swept.directory.path().join("a.db");
        for error in [swept.db.close().wait().unwrap_err(), Options::new(&path).open().wait().unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Busy);
            assert!(error.message().contains(what), "{error}");
        }
        assert!(!swept.is_there());
        drop(held);
        assert_eq!(call.join().unwrap().unwrap_err().kind(), ErrorKind::Closed, "{what}");
        while Options::new(&path).open().wait().is_err() {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(!swept.is_there());
        assert_eq!(swept.integer("SELECT count(*) FROM other"), 0);
    }
}
