//! What a single event does to the line of the processes that write: a caller that leaves, a program that is started,
//! counters that begin again from zero, threads and handles of one process.
//!
//! The processes beside the test are in `writers`. A fork is tested with `flatwater-sqlite`, since it needs `unsafe`.

use std::time::Duration;

use flatwater::calls::TimeoutEffect;
use flatwater::{Database, ErrorKind};
use flatwater_sqlite::{TurnFile, Word};

use super::writers::{SOME, Writers, has_open, is_file, writes_until};
use crate::support::{Killed, integer, run, until, wait_until};

const INSERT: &str = "INSERT INTO turns VALUES (-1)";

/// Two handles of one engine have one place in line, and four threads share it.
#[test]
fn threads_and_handles_of_one_process_write_beside_other_processes() {
    let mut writers = Writers::start(2);
    let handles = [(); 2].map(|()| writers.file.options().open().wait().unwrap());
    writes_until(&handles[0], || handles.iter().all(|db| db.stats().turns.taken > 0));
    std::thread::scope(|scope| {
        for db in handles.iter().cycle().take(4) {
            scope.spawn(|| {
                for _ in 0..SOME {
                    db.execute(INSERT, ()).wait().unwrap();
                }
            });
        }
    });
    writers.progress(&[0, 1]);
    let [one, other] = handles;
    one.close().wait().unwrap();
    other.execute(INSERT, ()).wait().unwrap();
    other.close().wait().unwrap();
    assert_eq!(integer(&writers.file.plain(), "SELECT count(*) FROM turns WHERE who = -1"), 4 * SOME + 1);
    writers.end();
}

#[test]
fn a_program_that_a_writer_starts_inherits_no_file() {
    let mut writers = Writers::start(2);
    let db = writers.file.options().open().wait().unwrap();
    writes_until(&db, || has_open(std::process::id(), &writers.turn_file()));
    let sleep = Killed(std::process::Command::new("sleep").arg("100000").spawn().unwrap());
    wait_until(|| std::fs::read_to_string(format!("/proc/{}/comm", sleep.0.id())).unwrap() == "sleep\n");
    for file in [writers.turn_file(), writers.file.path(), writers.file.beside("-wal"), writers.file.beside("-shm")] {
        assert!(!has_open(sleep.0.id(), &file), "{}", file.display());
    }
    db.close().wait().unwrap();
    writers.progress(&[0, 1]);
    writers.end();
}

#[test]
fn tickets_begin_again_from_zero_under_the_writers() {
    for start in [u32::MAX - 40, (1 << 31) - 40] {
        let mut writers = Writers::start(0);
        let file = TurnFile::open(&writers.turn_file(), &writers.file.path(), true).unwrap().unwrap();
        file.set(Word::Next, start).unwrap();
        file.set(Word::Served, start).unwrap();
        (0..4).for_each(|_| writers.start_another(true));
        wait_until(|| file.counters().unwrap().served.wrapping_sub(start) > 80);
        let all = writers.all();
        writers.progress(&all);
        let served = file.counters().unwrap().served;
        assert!(served.wrapping_sub(start) < 1 << 30, "{served} after {start}");
        writers.lets_go(&file);
        drop(file);
        writers.end();
    }
}

/// Another program has SQLite's lock, and somebody is in line before all others and does nothing.
struct Held {
    first: TurnFile,
    plain: rusqlite::Connection,
}

impl Held {
    fn new(writers: &Writers) -> Self {
        let first = TurnFile::open(&writers.turn_file(), &writers.file.path(), true).unwrap().unwrap();
        assert!(first.lock(1).unwrap());
        first.set(Word::Next, 1).unwrap();
        let plain = writers.file.plain();
        plain.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self { first, plain }
    }

    /// Returns true if another one has a ticket.
    fn has_others(&self) -> bool {
        self.first.is_held(0, u32::MAX).unwrap()
    }

    /// The lock is free, and the turn of the first one is over.
    fn ends(&self) {
        self.plain.execute_batch("ROLLBACK").unwrap();
        self.first.set(Word::Served, 1).unwrap();
        self.first.unlock(1);
        self.first.wake(Word::Served, u32::MAX);
    }
}

fn held() -> (Writers, Database, Held) {
    let writers = Writers::start(0);
    let db = writers.file.options().open().wait().unwrap();
    let held = Held::new(&writers);
    (writers, db, held)
}

/// Only the write that stayed is there, and no ticket is left.
fn ends_with_one_write(writers: Writers, db: &Database, held: Held) {
    wait_until(|| !held.has_others());
    assert_eq!(integer(&held.plain, "SELECT count(*) FROM turns"), 1);
    let turn_file = writers.turn_file();
    assert!(is_file(&turn_file));
    writers.lets_go(&held.first);
    drop(held);
    db.close().wait().unwrap();
    assert!(!turn_file.exists(), "nobody is in line, and the last one removes it");
    writers.end();
}

#[test]
fn callers_that_give_up_in_line_and_deadlines_there_write_nothing() {
    let (writers, db, held) = held();
    run(async {
        for _ in 0..5 {
            let mut given_up = db.execute(INSERT, ());
            assert!(futures_util::poll!(&mut given_up).is_pending());
            until(|| held.has_others()).await;
            drop(given_up);
            until(|| !held.has_others()).await;
            let late = db.with_timeout(Duration::from_millis(50)).execute(INSERT, ()).await.unwrap_err();
            assert_eq!((late.kind(), late.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{late}");
            until(|| !held.has_others()).await;
        }
        held.ends();
        db.execute(INSERT, ()).await.unwrap();
    });
    ends_with_one_write(writers, &db, held);
}

/// Another thread passes on the turn that it leaves.
#[test]
fn a_thread_that_blocks_for_its_write_waits_in_line_itself() {
    let (writers, db, held) = held();
    std::thread::scope(|scope| {
        let writes = scope.spawn(|| {
            let write = db.write_with(|transaction| {
                transaction.execute(INSERT, ()).map_err(flatwater::Error::from)?;
                Ok::<_, flatwater::Error>(std::thread::current().id())
            });
            write.wait().unwrap()
        });
        wait_until(|| held.has_others());
        held.ends();
        let thread = writes.thread().id();
        assert_eq!(writes.join().unwrap(), thread);
    });
    assert_eq!(db.stats().turns.taken, 1);
    ends_with_one_write(writers, &db, held);
}

/// The place in line is that of the process.
#[test]
fn the_next_call_takes_the_place_of_one_that_leaves() {
    let (writers, db, held) = held();
    run(async {
        let (mut given_up, mut stays) = (db.execute(INSERT, ()), db.execute(INSERT, ()));
        assert!(futures_util::poll!(&mut given_up).is_pending());
        until(|| held.has_others()).await;
        assert!(futures_util::poll!(&mut stays).is_pending());
        drop(given_up);
        until(|| db.stats().writes_waiting == 0).await;
        held.ends();
        stays.await.unwrap();
    });
    assert!(db.stats().turns.taken > 0);
    ends_with_one_write(writers, &db, held);
}

/// A process that waits in line behind one that is stopped in a transaction gets its turn when that one goes on.
#[test]
fn a_process_behind_a_stopped_holder_gives_up_in_time_and_writes_later() {
    let mut writers = Writers::start(1);
    let db = writers.file.options().open().wait().unwrap();
    writes_until(&db, || db.stats().turns.taken > 0);
    let plain = writers.file.plain();
    plain.busy_timeout(Duration::ZERO).unwrap();
    // Until it is stopped with the lock.
    loop {
        writers.stops(0);
        if plain.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_err() {
            break;
        }
        writers.signal(0, "-CONT");
    }
    let count = || integer(&plain, "SELECT count(*) FROM turns WHERE who = -2");
    for _ in 0..5 {
        let late = db.with_timeout(Duration::from_millis(50)).execute("INSERT INTO turns VALUES (-2)", ()).wait();
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
    }
    writers.signal(0, "-CONT");
    db.execute("INSERT INTO turns VALUES (-2)", ()).wait().unwrap();
    assert_eq!(count(), 1);
    writers.progress(&[0]);
    db.close().wait().unwrap();
    writers.end();
}
