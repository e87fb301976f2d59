//! How beginning a snapshot may lock the wal-index. Pure: a request for locks goes in, a decision comes out.
//!
//! Owns: the order of requests that SQLite makes while it begins a snapshot (`walTryBeginRead`, `walIndexReadHdr`,
//! `walIndexRecover`), and after how many attempts it is ended. Used by this crate's xShmLock, on the thread that is
//! inside a SQLite call. Invariants: SQLite never sleeps, which it does at the beginning of its sixth attempt; on a
//! caller's thread no lock is requested that a recovery takes, so no recovery can begin; a release of a lock is always
//! passed on. Leaves out: making the requests, and waiting.
//!
//! One attempt makes requests in this order, and only some of them. A request that does not come later in the order
//! than the one before it belongs to the next attempt, at the same snapshot or at a later one: one call of SQLite can
//! begin and end many, since a module of virtual tables runs statements of its own. A snapshot that began fetches the
//! file's first page (`lockBtree`), and a failed attempt fetches none. So the pages tell the two cases apart.
//!
//! ```text
//! 0       WRITE exclusive           the two copies of the header differ
//! 1       RECOVER shared            WRITE was taken: is a recovery running?
//!         CKPT, RECOVER exclusive   a recovery begins
//! 2       READ(0) shared            all frames are copied
//! 3 .. 6  READ(1..4) exclusive      to move a mark to the newest frame
//! 7       READ(1..4) shared         the mark itself
//! ```

use std::ffi::c_int;

use rusqlite::ffi;

/// The maximum number of failed attempts. SQLite sleeps before its sixth, and the fifth can still fail after its last
/// request was granted.
const ATTEMPTS: u8 = 4;
/// The same while a commit waits in between: SQLite's own pauses add up to 17 ms by then.
const PATIENT_ATTEMPTS: u8 = 20;

/// The locks of a wal-index (<https://sqlite.org/walformat.html#wal_locks>).
const WRITE: c_int = 0;
const CHECKPOINT: c_int = 1;
const RECOVER: c_int = 2;
const READ_0: c_int = 3;
const LAST_READ: c_int = 7;
/// The last step of an attempt.
const MARK: u8 = 7;

/// One call of xShmLock (<https://sqlite.org/c3ref/io_methods.html>).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) first: c_int,
    pub(crate) count: c_int,
    pub(crate) flags: c_int,
}

impl Request {
    fn takes(self) -> bool {
        self.flags & ffi::SQLITE_SHM_LOCK != 0
    }

    fn is_shared(self) -> bool {
        self.flags & ffi::SQLITE_SHM_SHARED != 0
    }

    fn covers(self, lock: c_int) -> bool {
        (self.first..self.first + self.count).contains(&lock)
    }

    fn is_for_readers(self) -> bool {
        self.first >= READ_0
    }

    /// The position of the request in an attempt.
    fn step(self) -> u8 {
        match (self.first, self.is_shared()) {
            (WRITE, _) => 0,
            (CHECKPOINT | RECOVER, _) => 1,
            (READ_0, true) => 2,
            (_, true) => MARK,
            (first, false) => 2 + u8::try_from(first - READ_0).unwrap_or(0),
        }
    }

    /// The request that a commit makes before it gives its mark up to start the WAL over: all marks but the first at
    /// once.
    fn is_for_all_marks(self) -> bool {
        self.count > 1
    }
}

/// The kind of thread on which a snapshot begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A thread that must not be held up.
    Caller,
    /// A thread that may wait, but not longer than its busy handler allows.
    Worker,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The request is passed to SQLite's own method.
    Pass,
    /// The request is refused, and the snapshot does not begin.
    Refuse,
    /// Like `Pass`; if another connection has the lock, the thread waits for it.
    Wait,
}

/// What is known of one file's snapshot, from the state of its connection and from the requests since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot {
    /// A read mark is held: the snapshot exists.
    is_there: bool,
    /// The write lock is held: what begins now is the snapshot of a commit that starts the WAL over (`walRestartLog`).
    writes: bool,
    /// A checkpoint or a recovery is in progress, which requests readers' locks in its own order.
    is_elsewhere: bool,
    /// The number of failed attempts.
    failed: u8,
    step: Option<u8>,
    /// The number of pages that the connection had fetched when an attempt was last repeated.
    pages: Option<u64>,
}

impl Snapshot {
    /// From the result of `sqlite3_txn_state` (<https://sqlite.org/c3ref/txn_state.html>).
    pub(crate) fn of(state: c_int) -> Self {
        Self {
            is_there: state > ffi::SQLITE_TXN_NONE,
            writes: state == ffi::SQLITE_TXN_WRITE,
            is_elsewhere: false,
            failed: 0,
            step: None,
            pages: None,
        }
    }

    /// What this state implies for another file of the same connection.
    pub(crate) fn of_another_file(self) -> Self {
        Self { is_there: false, ..self }
    }

    /// Decides on a request before it is made. `pages` counts the pages that the connection fetched so far.
    pub(crate) fn asks(&mut self, request: Request, place: Place, pages: impl FnOnce() -> u64) -> Decision {
        if !request.takes() || self.is_there || self.is_elsewhere {
            return Decision::Pass;
        }
        let step = request.step();
        if self.step.is_some_and(|before| step <= before) {
            let pages = pages();
            let began = self.pages.replace(pages).is_some_and(|before| before != pages);
            self.failed = if began { 0 } else { self.failed.saturating_add(1) };
        }
        self.step = Some(step);
        let is_recovery = !request.is_for_readers();
        match place {
            Place::Caller if is_recovery || self.failed >= ATTEMPTS => Decision::Refuse,
            Place::Caller => Decision::Pass,
            Place::Worker if self.writes && self.failed < PATIENT_ATTEMPTS && step == MARK => Decision::Wait,
            Place::Worker if self.writes && self.failed < PATIENT_ATTEMPTS => Decision::Pass,
            Place::Worker if self.failed >= ATTEMPTS => Decision::Refuse,
            Place::Worker => Decision::Pass,
        }
    }

    /// Returns true if the snapshot of a commit was refused, and not that of a statement that began.
    pub(crate) fn is_of_a_commit(&self) -> bool {
        self.writes
    }

    /// Records the result of SQLite's own method.
    pub(crate) fn answered(&mut self, request: Request, code: c_int) {
        let taken = code == ffi::SQLITE_OK && request.takes();
        let released = !request.takes();
        if self.is_elsewhere && request.is_for_readers() {
            return;
        }
        if request.covers(CHECKPOINT) || request.covers(RECOVER) {
            if !request.is_shared() {
                self.is_elsewhere = (taken || self.is_elsewhere) && !released;
            }
        } else if request.covers(WRITE) {
            self.writes = (taken || self.writes) && !released;
        } else if request.is_shared() {
            self.is_there = (taken || self.is_there) && !released;
            if taken {
                self.step = Some(request.step());
            }
        } else if request.covers(LAST_READ) && !taken && !released && !request.is_for_all_marks() {
            // No mark could be moved. Unless another mark is usable, this was the attempt's last request.
            self.failed = self.failed.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Decision::{Pass, Refuse, Wait};
    use super::Place::{Caller, Worker};
    use super::*;

    const TAKE_SHARED: c_int = ffi::SQLITE_SHM_LOCK | ffi::SQLITE_SHM_SHARED;
    const TAKE: c_int = ffi::SQLITE_SHM_LOCK | ffi::SQLITE_SHM_EXCLUSIVE;
    const GIVE_SHARED: c_int = ffi::SQLITE_SHM_UNLOCK | ffi::SQLITE_SHM_SHARED;
    const GIVE: c_int = ffi::SQLITE_SHM_UNLOCK | ffi::SQLITE_SHM_EXCLUSIVE;

    fn one(first: c_int, flags: c_int) -> Request {
        Request { first, count: 1, flags }
    }

    fn read(mark: c_int, flags: c_int) -> Request {
        one(READ_0 + mark, flags)
    }

    /// Makes a request; `code` is the result if the request is passed on.
    fn ask(snapshot: &mut Snapshot, place: Place, request: Request, code: c_int) -> Decision {
        ask_after(snapshot, place, request, code, 0)
    }

    /// The same on a connection that has fetched `pages` pages.
    fn ask_after(snapshot: &mut Snapshot, place: Place, request: Request, code: c_int, pages: u64) -> Decision {
        let decision = snapshot.asks(request, place, || pages);
        if decision != Refuse {
            snapshot.answered(request, code);
        }
        decision
    }

    #[test]
    fn a_caller_takes_nothing_that_a_recovery_takes() {
        let recovery = Request { first: CHECKPOINT, count: 2, flags: TAKE };
        let requests = [one(WRITE, TAKE), one(RECOVER, TAKE_SHARED), one(RECOVER, TAKE), recovery];
        for request in requests {
            assert_eq!(ask(&mut Snapshot::of(0), Caller, request, 0), Refuse, "{request:?}");
            assert_eq!(ask(&mut Snapshot::of(0), Worker, request, 0), Pass, "{request:?}");
        }
    }

    #[test]
    fn with_a_snapshot_the_write_lock_is_asked_for_as_ever() {
        for place in [Caller, Worker] {
            assert_eq!(ask(&mut Snapshot::of(ffi::SQLITE_TXN_READ), place, one(WRITE, TAKE), 0), Pass);
        }
    }

    #[test]
    fn a_snapshot_that_begins_at_once_is_noticed_and_so_is_its_end() {
        let mut snapshot = Snapshot::of(ffi::SQLITE_TXN_NONE);
        assert_eq!(ask(&mut snapshot, Caller, read(1, TAKE), 0), Pass);
        assert_eq!(ask(&mut snapshot, Caller, read(1, GIVE), 0), Pass);
        assert!(!snapshot.is_there);
        assert_eq!(ask(&mut snapshot, Caller, read(1, TAKE_SHARED), 0), Pass);
        assert!(snapshot.is_there);
        assert_eq!(ask(&mut snapshot, Caller, read(1, GIVE_SHARED), 0), Pass);
        assert!(!snapshot.is_there);
    }

    #[test]
    fn the_fifth_attempt_is_refused_whatever_the_four_before_it_failed_for() {
        type Attempt = fn(&mut Snapshot, Place) -> Decision;
        // Another connection is just moving the mark.
        let mark: Attempt = |snapshot, place| ask(snapshot, place, read(1, TAKE_SHARED), ffi::SQLITE_BUSY);
        // The header changed before the lock was taken.
        let changed: Attempt = |snapshot, place| {
            let first = ask(snapshot, place, read(0, TAKE_SHARED), 0);
            if first == Pass {
                ask(snapshot, place, read(0, GIVE_SHARED), 0);
            }
            first
        };
        for attempt in [mark, changed] {
            for place in [Caller, Worker] {
                let mut snapshot = Snapshot::of(0);
                let decisions: Vec<_> = (0..5).map(|_| attempt(&mut snapshot, place)).collect();
                assert_eq!(decisions, [Pass, Pass, Pass, Pass, Refuse]);
            }
        }
    }

    #[test]
    fn snapshots_that_began_and_ended_are_no_failed_attempts() {
        for place in [Caller, Worker] {
            let mut snapshot = Snapshot::of(ffi::SQLITE_TXN_NONE);
            for pages in 0..20 {
                assert_eq!(ask_after(&mut snapshot, place, read(1, TAKE_SHARED), 0, pages), Pass);
                assert_eq!(ask_after(&mut snapshot, place, read(1, GIVE_SHARED), 0, pages), Pass);
            }
            let pages = 20;
            let failing = |_| ask_after(&mut snapshot, place, read(1, TAKE_SHARED), ffi::SQLITE_BUSY, pages);
            let decisions: Vec<_> = (0..5).map(failing).collect();
            assert_eq!(decisions, [Pass, Pass, Pass, Pass, Refuse], "a later snapshot has attempts of its own");
        }
    }

    #[test]
    fn an_attempt_that_finds_every_mark_taken_counts_as_one_at_least() {
        let mut snapshot = Snapshot::of(0);
        let mut attempts = 0;
        while attempts < 10 {
            let all = (1..=4).all(|mark| ask(&mut snapshot, Caller, read(mark, TAKE), ffi::SQLITE_BUSY) == Pass);
            if !all {
                break;
            }
            attempts += 1;
        }
        assert!((1..=4).contains(&attempts), "{attempts}");
    }

    #[test]
    fn a_worker_is_refused_once_a_writer_that_stands_still_has_kept_it_from_the_header_four_times() {
        let mut snapshot = Snapshot::of(0);
        for _ in 0..4 {
            assert_eq!(ask(&mut snapshot, Worker, one(WRITE, TAKE), ffi::SQLITE_BUSY), Pass);
            assert_eq!(ask(&mut snapshot, Worker, one(RECOVER, TAKE_SHARED), 0), Pass);
            assert_eq!(ask(&mut snapshot, Worker, one(RECOVER, GIVE_SHARED), 0), Pass);
        }
        assert_eq!(ask(&mut snapshot, Worker, one(WRITE, TAKE), ffi::SQLITE_BUSY), Refuse);
    }

    #[test]
    fn what_a_recovery_or_a_checkpoint_asks_for_is_not_counted() {
        for first in [CHECKPOINT, RECOVER] {
            let mut snapshot = Snapshot::of(0);
            assert_eq!(ask(&mut snapshot, Worker, one(WRITE, TAKE), 0), Pass);
            assert_eq!(ask(&mut snapshot, Worker, one(first, TAKE), 0), Pass);
            for _ in 0..10 {
                assert_eq!(ask(&mut snapshot, Worker, read(4, TAKE), ffi::SQLITE_BUSY), Pass);
            }
            assert_eq!(ask(&mut snapshot, Worker, one(first, GIVE), 0), Pass);
            assert_eq!(ask(&mut snapshot, Worker, one(WRITE, GIVE), 0), Pass);
            assert_eq!(ask(&mut snapshot, Worker, read(1, TAKE_SHARED), 0), Pass);
            assert!(snapshot.is_there);
        }
    }

    /// A commit that starts the WAL over: it has mark 0 and the write lock, and begins a new snapshot.
    fn starting_over(place: Place) -> Snapshot {
        let mut snapshot = Snapshot::of(ffi::SQLITE_TXN_WRITE);
        let all = Request { first: READ_0 + 1, count: 4, flags: TAKE };
        assert_eq!(ask(&mut snapshot, place, all, 0), Pass);
        assert_eq!(ask(&mut snapshot, place, Request { flags: GIVE, ..all }, 0), Pass);
        assert_eq!(ask(&mut snapshot, place, read(0, GIVE_SHARED), 0), Pass);
        assert!(!snapshot.is_there && snapshot.is_of_a_commit());
        snapshot
    }

    #[test]
    fn a_commit_that_starts_the_wal_over_waits_for_its_mark_on_a_worker_only() {
        let mut caller = starting_over(Caller);
        let decisions: Vec<_> =
            (0..5).map(|_| ask(&mut caller, Caller, read(1, TAKE_SHARED), ffi::SQLITE_BUSY)).collect();
        assert_eq!(decisions, [Pass, Pass, Pass, Pass, Refuse]);
        let mut worker = starting_over(Worker);
        let waits = (0..100).take_while(|_| ask(&mut worker, Worker, read(1, TAKE_SHARED), 0) == Wait).count();
        assert_eq!(waits, 1, "with its mark it has a snapshot again");
        let mut worker = starting_over(Worker);
        let answer = |worker: &mut Snapshot| ask(worker, Worker, read(1, TAKE_SHARED), ffi::SQLITE_BUSY);
        assert_eq!((0..100).take_while(|_| answer(&mut worker) == Wait).count(), usize::from(PATIENT_ATTEMPTS));
    }
}
