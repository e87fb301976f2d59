//! Fork without exec: a child can do nothing with the databases that its parent had open, and nothing to them, however it
//! ends; it opens its own, also the same files.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use flatwater::values::ExecuteResult;
use flatwater::{Call, Database, Error, ErrorKind, Options, Transaction, params};

use crate::support::{COUNT, INSERT, Stop, TestFile, count, is_alone_in_process, rows, wait_until, while_writing};

/// A child that takes longer hangs, and is ended by the kernel.
const WATCHDOG_SECONDS: u32 = 200;
const FORKS: usize = 10;
const SERVED: i64 = 50;
const ROUNDS: i64 = 10;

/// What is open in the parent at the fork, and what the child's copy of it is.
struct Handles {
    db: Database,
    blocking: Database,
    transaction: Transaction<'static>,
    /// Waits for the transaction's end.
    waiting: Pin<Box<Call<ExecuteResult>>>,
    new: Call<ExecuteResult>,
}

/// Forks. The parent gets its handles back and the child's number; the child gets them too, and ends after `child`.
fn fork<H>(handles: H, child: impl FnOnce(H)) -> (H, libc::pid_t) {
    // SAFETY: the child of a process with several threads may only do what no lock of another thread is in the way of.
    // The C library's allocator is made ready by `fork` itself, what the engine does is what is tested here, and a child
    // that meets such a lock is ended by the alarm, which fails the test.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: plain system calls; the child ends here and never returns to the test program.
            unsafe {
                libc::alarm(WATCHDOG_SECONDS);
                let ended = catch_unwind(AssertUnwindSafe(|| child(handles)));
                libc::_exit(i32::from(ended.is_err()))
            }
        }
        -1 => panic!("no child: {}", std::io::Error::last_os_error()),
        child => (handles, child),
    }
}

/// Waits for the child, which must have found all as it should be.
fn join(child: libc::pid_t) {
    assert_eq!(code(child), 0);
}

/// Waits for the child, which must end by itself, and answers its exit code.
fn code(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: a child of this process that nobody else waits for, and room for its status.
    let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((ended, libc::WIFEXITED(status)), (child, true), "status {status:#x}");
    libc::WEXITSTATUS(status)
}

/// What the future answers at its first poll.
fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("it waits"),
    }
}

fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut answer = None;
    wait_until(|| {
        if let Poll::Ready(ready) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            answer = Some(ready);
        }
        answer.is_some()
    });
    answer.unwrap()
}

#[track_caller]
fn refused<T>(answer: Result<T, Error>) {
    let Err(error) = answer else { panic!("it was served") };
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(error.message().contains("forked"), "{error}");
}

fn everything_is_refused(handles: &mut Handles) {
    let Handles { db, blocking, transaction, waiting, .. } = handles;
    let one = || [(INSERT, params![])];
    refused(at_once(waiting));
    refused(at_once(db.execute(INSERT, ())));
    refused(at_once(db.execute_many(INSERT, [()])));
    refused(at_once(db.batch(one())));
    refused(at_once(db.execute_script(INSERT)));
    refused(at_once(db.query(COUNT, ())));
    refused(at_once(db.query_optional(COUNT, ())));
    refused(at_once(db.query_optional_value::<i64>(COUNT, ())));
    refused(at_once(db.query_as::<(i64,)>(COUNT, ())));
    refused(at_once(db.begin()));
    refused(at_once(db.transaction(async |_| Ok::<_, Error>(()))));
    refused(at_once(db.read_with(|_| Ok::<_, Error>(()))));
    refused(at_once(db.write_with(|_| Ok::<_, Error>(()))));
    refused(at_once(db.ungrouped().with_timeout(Duration::from_secs(1)).execute(INSERT, ())));
    refused(at_once(db.close()));
    assert_eq!(db.stats().writes_waiting, 0);
    refused(blocking.execute(INSERT, ()).wait());
    refused(blocking.execute_many(INSERT, [()]).wait());
    refused(blocking.batch(one()).wait());
    refused(blocking.execute_script(INSERT).wait());
    refused(blocking.query(COUNT, ()).wait());
    refused(blocking.query_optional(COUNT, ()).wait());
    refused(blocking.query_optional_value::<i64>(COUNT, ()).wait());
    refused(blocking.query_as::<(i64,)>(COUNT, ()).wait());
    refused(blocking.read_with(|_| Ok::<_, Error>(())).wait());
    refused(blocking.write_with(|_| Ok::<_, Error>(())).wait());
    refused(blocking.close().wait());
    refused(at_once(transaction.execute(INSERT, ())));
    refused(at_once(transaction.query(COUNT, ())));
    refused(at_once(transaction.begin()));
}

/// The names of the threads of this process.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("comm"));
    tasks.filter_map(|comm| std::fs::read_to_string(comm).ok()).collect()
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Return,
    Exit,
    Kill,
    Panic,
    Commit,
}

fn end(handles: Handles, ending: Ending) {
    match ending {
        Ending::Return => {
            let Handles { db, blocking, transaction, waiting, new } = handles;
            drop((db.clone(), db, blocking, waiting, new, transaction));
            assert_eq!(threads().len(), 1, "nobody began to close what is the parent's");
        }
        Ending::Exit => {
            drop(handles);
            // SAFETY: ends the process as a return from `main` does, but for the standard library's own clean-up: that
            // takes a lock which a thread that was just starting at the fork may have held.
            unsafe { libc::exit(0) }
        }
        // SAFETY: ends the process.
        Ending::Kill => unsafe { libc::_exit(0) },
        Ending::Panic => {
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                let _handles = handles;
                std::panic::resume_unwind(Box::new("through the handles"));
            }));
            assert!(unwound.is_err());
        }
        Ending::Commit => {
            let Handles { db, transaction, new, .. } = handles;
            refused(at_once(transaction.commit()));
            refused(new.wait());
            drop(db);
        }
    }
}

#[test]
fn a_child_can_do_nothing_with_what_its_parent_opened_and_nothing_to_it() {
    if !is_alone_in_process("forked::a_child_can_do_nothing_with_what_its_parent_opened_and_nothing_to_it") {
        return;
    }
    let (file, other) = (TestFile::new(), TestFile::new());
    let db = file.open();
    let mut written = 0;
    let acknowledged = while_writing(&db, |another_round| {
        for ending in [Ending::Return, Ending::Exit, Ending::Kill, Ending::Panic, Ending::Commit] {
            for _ in 0..FORKS {
                let held = other.options().open().wait().unwrap();
                let transaction = finish(held.begin()).unwrap();
                finish(transaction.execute(INSERT, ())).unwrap();
                let mut waiting = Box::pin(held.with_timeout(Duration::from_secs(3600)).execute(INSERT, ()));
                let pending = waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(pending.is_pending(), "it waits for the transaction");
                let new = held.execute(INSERT, ());
                let handles = Handles { blocking: held.clone(), db: held, transaction, waiting, new };
                let (handles, child) = fork(handles, |mut handles| {
                    everything_is_refused(&mut handles);
                    end(handles, ending);
                });
                another_round();
                join(child);
                written += 3;
                parent_goes_on(handles, &other, written);
            }
            another_round();
            assert!(file.visit() > 0 && file.has_wal(), "{ending:?}");
        }
    });
    assert_eq!((file.visit(), count(&db)), (acknowledged, acknowledged));
    db.close().wait().unwrap();
    assert!(!file.has_wal());
    assert_eq!(rows(&file.plain()), acknowledged);
}

fn parent_goes_on(handles: Handles, file: &TestFile, expected: i64) {
    let Handles { db, blocking, transaction, waiting, new } = handles;
    assert_eq!(finish(transaction.query_optional_value::<i64>(COUNT, ())).unwrap(), Some(expected - 2));
    finish(transaction.commit()).unwrap();
    finish(waiting).unwrap();
    new.wait().unwrap();
    assert_eq!(file.visit(), expected);
    assert!(file.has_wal(), "the parent still has its locks");
    drop(db);
    blocking.close().wait().unwrap();
    assert!(!file.has_wal());
}

#[test]
fn a_child_of_a_process_without_an_open_database_uses_its_own() {
    if !is_alone_in_process("forked::a_child_of_a_process_without_an_open_database_uses_its_own") {
        return;
    }
    let file = TestFile::new();
    for round in 0..30 {
        let use_it = || {
            let db = file.open();
            db.execute(INSERT, ()).wait().unwrap();
            db.write_with(|tx| tx.execute(INSERT, []).map_err(Error::from)).wait().unwrap();
            assert!(count(&db) > round * 6);
            db.close().wait().unwrap();
        };
        use_it();
        // The standard library cannot start threads in a child if one was just starting or ending at the fork.
        wait_until(|| !threads().iter().any(|name| name.starts_with("fw-writer")));
        let ((), child) = fork((), |()| use_it());
        use_it();
        join(child);
        assert_eq!(file.visit(), (round + 1) * 6);
    }
}

/// The fork comes at any moment of opening, using and closing; the child is served, and never waits for a thread or a lock of
/// one that it does not have.
#[test]
fn a_child_of_a_process_that_opens_and_closes_is_served() {
    if !is_alone_in_process("forked::a_child_of_a_process_that_opens_and_closes_is_served") {
        return;
    }
    let (file, own) = (TestFile::new(), TestFile::new());
    let (stops, opened) = (AtomicBool::new(false), AtomicI64::new(0));
    std::thread::scope(|scope| {
        let _stop = Stop(&stops);
        scope.spawn(|| {
            while !stops.load(Ordering::SeqCst) {
                let db = file.open();
                db.execute(INSERT, ()).wait().unwrap();
                db.close().wait().unwrap();
                opened.fetch_add(1, Ordering::SeqCst);
            }
        });
        for _ in 0..SERVED {
            let ((), child) = fork((), |()| {
                let db = own.options().open().wait().unwrap();
                finish(db.execute(INSERT, ()).never_inline()).unwrap();
                db.close().wait().unwrap();
            });
            join(child);
        }
    });
    assert_eq!((file.visit(), own.visit()), (opened.into_inner(), SERVED));
}

/// The files with figures beside a database.
fn records(file: &TestFile) -> Vec<std::ffi::OsString> {
    let folder = file.path().parent().unwrap().to_owned();
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().contains("-observe-")).collect()
}

#[test]
fn a_child_removes_no_figures_of_its_parent_and_has_its_own() {
    if !is_alone_in_process("forked::a_child_removes_no_figures_of_its_parent_and_has_its_own") {
        return;
    }
    let file = TestFile::new();
    let open = || file.options().tuning(|tuning| tuning.observe(true)).open().wait().unwrap();
    let db = open();
    wait_until(|| records(&file).len() == 1);
    let of_parent = records(&file);
    let (db, child) = fork(db, |db| {
        drop(db);
        let db = open();
        wait_until(|| records(&file).len() == 2);
        db.close().wait().unwrap();
        assert_eq!(records(&file), of_parent);
    });
    join(child);
    assert_eq!(records(&file), of_parent);
    db.close().wait().unwrap();
    assert!(records(&file).is_empty());
}

/// Everything that a process does with a database of its own: `rows` are added.
fn is_of_use(options: Options, rows: i64) {
    let db = options.open().wait().unwrap();
    let before = count(&db);
    let mut live = db.live(COUNT, ());
    finish(live.next()).unwrap().unwrap();
    for _ in 0..rows - 2 {
        finish(db.execute(INSERT, ()).never_inline()).unwrap();
    }
    let transaction = finish(db.begin()).unwrap();
    finish(transaction.execute(INSERT, ())).unwrap();
    finish(transaction.commit()).unwrap();
    db.write_with(|tx| tx.execute(INSERT, []).map_err(Error::from)).wait().unwrap();
    let seen = || finish(db.query_optional_value::<i64>(COUNT, ())).unwrap().unwrap();
    assert!(seen() >= before + rows);
    wait_until(|| {
        let result = finish(live.next()).unwrap().unwrap();
        result.read::<(i64,)>().unwrap()[0].0 >= before + rows
    });
    drop(live);
    db.close().wait().unwrap();
}

#[test]
fn a_child_uses_other_files_and_the_same_file_while_its_parent_writes() {
    if !is_alone_in_process("forked::a_child_uses_other_files_and_the_same_file_while_its_parent_writes") {
        return;
    }
    const ROWS: i64 = 20;
    let (file, other) = (TestFile::new(), TestFile::new());
    let db = file.open();
    let acknowledged = while_writing(&db, |another_round| {
        for round in 1..=ROUNDS {
            let ((), child) = fork((), |()| {
                is_of_use(other.options(), ROWS);
                is_of_use(file.options(), ROWS);
                // The grandchild has inherited what its parent and its grandparent opened.
                let own = file.open();
                let ((), grandchild) = fork((), |()| is_of_use(file.options(), ROWS));
                join(grandchild);
                own.execute(INSERT, ()).wait().unwrap();
            });
            another_round();
            join(child);
            another_round();
            assert!(file.visit() > 0 && file.has_wal(), "the parent still has its locks");
            assert_eq!(other.visit(), round * ROWS);
        }
    });
    let expected = acknowledged + ROUNDS * (2 * ROWS + 1);
    assert_eq!((file.visit(), count(&db)), (expected, expected));
    db.close().wait().unwrap();
    assert_eq!(rows(&file.plain()), expected);
}

#[test]
fn the_locks_of_a_child_and_of_its_parent_hold_against_each_other() {
    if !is_alone_in_process("forked::the_locks_of_a_child_and_of_its_parent_hold_against_each_other") {
        return;
    }
    let file = TestFile::new();
    let options = || file.options().busy_timeout(Duration::ZERO);
    let busy = |db: &Database| {
        let error = db.execute(INSERT, ()).wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    };
    let db = options().open().wait().unwrap();
    let transaction = finish(db.begin()).unwrap();
    finish(transaction.execute(INSERT, ())).unwrap();
    let (mut parent_hears, child_tells) = std::io::pipe().unwrap();
    let (child_hears, mut parent_tells) = std::io::pipe().unwrap();
    // The parent drops the child's ends, so that it does not wait for one that is gone.
    let of_child = (child_tells, child_hears);
    let in_child = |(mut tells, mut hears): (std::io::PipeWriter, std::io::PipeReader)| {
        let own = options().open().wait().unwrap();
        busy(&own);
        assert_eq!(count(&own), 0, "it is not committed");
        tells.write_all(b"busy").unwrap();
        hears.read_exact(&mut [0; 4]).unwrap();
        assert_eq!(count(&own), 1);
        own.execute(INSERT, ()).wait().unwrap();
        let transaction = finish(own.begin()).unwrap();
        finish(transaction.execute(INSERT, ())).unwrap();
        tells.write_all(b"open").unwrap();
        hears.read_exact(&mut [0; 4]).unwrap();
        finish(transaction.commit()).unwrap();
        own.close().wait().unwrap();
    };
    let (of_child, child) = fork(of_child, in_child);
    drop(of_child);
    parent_hears.read_exact(&mut [0; 4]).unwrap();
    assert_eq!(file.visit(), 0);
    assert!(file.has_wal(), "the parent has its locks");
    finish(transaction.commit()).unwrap();
    parent_tells.write_all(b"done").unwrap();
    parent_hears.read_exact(&mut [0; 4]).unwrap();
    busy(&db);
    parent_tells.write_all(b"done").unwrap();
    join(child);
    assert!(file.visit() == 3 && file.has_wal(), "the child's close took no lock of the parent away");
    db.execute(INSERT, ()).wait().unwrap();
    assert_eq!((file.visit(), count(&db)), (4, 4));
}

#[test]
fn a_child_that_outlives_a_close_keeps_nobody_from_the_file() {
    if !is_alone_in_process("forked::a_child_that_outlives_a_close_keeps_nobody_from_the_file") {
        return;
    }
    let file = TestFile::new();
    let (mut wait, release) = std::io::pipe().unwrap();
    let db = file.open();
    db.execute(INSERT, ()).wait().unwrap();
    let ((db, release), child) = fork((db, release), move |(_db, release)| {
        drop(release);
        // Ends when the parent's side does.
        std::io::copy(&mut wait, &mut std::io::sink()).unwrap();
    });
    db.close().wait().unwrap();
    assert_eq!(file.visit(), 1, "another process gets in");
    let again = file.open();
    again.execute(INSERT, ()).wait().unwrap();
    again.close().wait().unwrap();
    assert_eq!(file.visit(), 2);
    drop(release);
    join(child);
}
