//! What this thread refuses SQLite while it runs a statement: a page that it would read too late, and a snapshot that does
//! not begin at once.
//!
//! Owns: for this thread, whose files are guarded and how; both refusals and their codes. Asked by our methods of a file
//! (`methods`), on the thread that is inside a SQLite call. Invariants: a thread that guards nothing is refused nothing; a
//! page is refused only while the snapshot is there, so never to a recovery, and once at most; a snapshot that does not
//! begin at once is refused to a caller's thread, and to a worker after a few attempts, so that it waits as its busy
//! handler says and not as SQLite does. Leaves out: a file that is mapped into memory, where a page fault reads; the order of
//! locks (`snapshot`).
//!
//! The page that is refused may be one that SQLite reads to roll back after another failure. A rollback that fails with
//! an I/O error makes SQLite drop its cache; one that is interrupted leaves pages in it that were never committed. So
//! whoever writes asks for the first, and whoever learns that a page was refused while the statement failed for another
//! reason does not use the connection again.

use std::cell::Cell;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr;
use std::time::Instant;

use rusqlite::ffi;

use crate::connection::Connection;
use crate::hooks::Hooks;
use crate::methods::Files;
use crate::snapshot::{Decision, Place, Request, Snapshot};

/// How a page is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRefusal {
    /// With SQLITE_INTERRUPT, after which SQLite keeps an open transaction if the statement only reads
    /// (<https://sqlite.org/c3ref/interrupt.html>).
    Interrupt,
    /// With SQLITE_IOERR, after which SQLite rolls the transaction back.
    Failure,
}

/// What was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A page that would have been read too late.
    Page,
    /// A snapshot that did not begin at once; nothing has happened.
    Snapshot,
    /// The new snapshot of a commit that was about to start the WAL over. Nothing of it was written, and its transaction
    /// is rolled back.
    CommitSnapshot,
}

/// Marks the extended result codes of refusals. SQLite has no such codes.
const MARK: c_int = 0x7f << 8;
const COMMIT_MARK: c_int = 0x7e << 8;

/// A code that SQLite neither tries again for nor takes for a failure of the file system
/// (`walTryBeginRead` and `sqlite3VdbeHalt`).
const SNAPSHOT: c_int = ffi::SQLITE_PROTOCOL | MARK;
const COMMIT_SNAPSHOT: c_int = ffi::SQLITE_PROTOCOL | COMMIT_MARK;

/// Whether a statement failed because something was refused, by the extended code of its error.
#[must_use]
pub fn refused(extended_code: c_int) -> Option<Refused> {
    match extended_code {
        SNAPSHOT => Some(Refused::Snapshot),
        COMMIT_SNAPSHOT => Some(Refused::CommitSnapshot),
        code if code & !0xff == MARK => Some(Refused::Page),
        _ => None,
    }
}

/// Whose snapshots are guarded.
#[derive(Clone, Copy)]
enum Guarded {
    None,
    /// Those of a connection's own database, on a thread that must not be held up.
    Caller(Files, *mut ffi::sqlite3),
    /// Those of all of a connection's databases, on a thread that may wait.
    Worker(Patient),
}

/// A connection that waits as its busy handler says.
#[derive(Clone, Copy)]
struct Patient {
    hooks: *const Hooks,
    db: *mut ffi::sqlite3,
    /// Its own database, if that is known; compared only.
    main: *mut ffi::sqlite3_file,
}

/// Of this thread.
struct Gate {
    guarded: Cell<Guarded>,
    /// Whose snapshot is noted; compared only.
    file: Cell<*mut ffi::sqlite3_file>,
    /// `None` until something is asked that hangs on it: most short statements ask for nothing.
    snapshot: Cell<Option<Snapshot>>,
    end: Cell<Option<Instant>>,
    page_refusal: Cell<PageRefusal>,
    has_read: Cell<bool>,
    has_refused: Cell<bool>,
}

thread_local! {
    static GATE: Gate = const {
        Gate {
            guarded: Cell::new(Guarded::None),
            file: Cell::new(ptr::null_mut()),
            snapshot: Cell::new(None),
            end: Cell::new(None),
            page_refusal: Cell::new(PageRefusal::Interrupt),
            has_read: Cell::new(false),
            has_refused: Cell::new(false),
        }
    };
}

/// While it lives this thread is not held up by the files of a connection. A thread has one at a time.
#[must_use]
pub struct Unheld(PhantomData<*const ()>);

impl Unheld {
    /// From now on pages are read whenever they are asked for.
    pub fn read_on(&self) {
        GATE.with(|gate| gate.end.set(None));
    }

    /// Whether a page was read from a file.
    #[must_use]
    pub fn has_read(&self) -> bool {
        GATE.with(|gate| gate.has_read.get())
    }

    /// Whether a page was refused.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        GATE.with(|gate| gate.has_refused.get())
    }
}

impl Drop for Unheld {
    fn drop(&mut self) {
        GATE.with(|gate| gate.guarded.set(Guarded::None));
    }
}

/// While it lives the snapshots of a connection that do not begin at once are refused.
pub(crate) struct PatientSnapshots(PhantomData<*const ()>);

impl Drop for PatientSnapshots {
    fn drop(&mut self) {
        GATE.with(|gate| gate.guarded.set(Guarded::None));
    }
}

impl Connection {
    /// Keeps this thread from being held up by the connection's files: no snapshot begins that would have to recover the
    /// wal-index, or to wait; and one read of the database's file or the WAL that begins after `end` is refused, unless
    /// there is no `end`. `None` if the files do not have our methods: then nothing may run on a thread that must not be
    /// held up.
    pub fn unheld(&self, end: Option<(Instant, PageRefusal)>) -> Option<Unheld> {
        let files = self.guarded_files()?;
        GATE.with(|gate| {
            gate.guarded.set(Guarded::Caller(files, self.raw()));
            gate.snapshot.set(None);
            gate.end.set(end.map(|(end, _)| end));
            gate.page_refusal.set(end.map_or(PageRefusal::Interrupt, |(_, refusal)| refusal));
            gate.has_read.set(false);
            gate.has_refused.set(false);
        });
        Some(Unheld(PhantomData))
    }

    /// # Safety
    /// The guard is dropped before the connection is.
    pub(crate) unsafe fn patient(&self) -> Option<PatientSnapshots> {
        GATE.with(|gate| {
            if !matches!(gate.guarded.get(), Guarded::None) {
                return None;
            }
            let main = self.mapping.files().map_or(ptr::null_mut(), |files| files[0]);
            gate.guarded.set(Guarded::Worker(Patient { hooks: self.hooks(), db: self.raw(), main }));
            gate.file.set(ptr::null_mut());
            Some(PatientSnapshots(PhantomData))
        })
    }
}

/// What is open on a connection, of any of its databases (<https://sqlite.org/c3ref/txn_state.html>).
///
/// # Safety
/// `db` is open, and this thread is the one that uses it; it may be inside a call.
unsafe fn snapshot_of(db: *mut ffi::sqlite3) -> Snapshot {
    // SAFETY: as the caller promises; this reads what the connection knows, and without a name answers for all databases.
    Snapshot::of(unsafe { ffi::sqlite3_txn_state(db, ptr::null()) })
}

/// The code of a refusal, if the page of `file` is asked for too late and none was refused before it.
pub(crate) fn refuses_read(file: *mut ffi::sqlite3_file) -> Option<c_int> {
    GATE.with(|gate| {
        let Guarded::Caller(files, db) = gate.guarded.get() else { return None };
        if !files.contains(&file) {
            return None;
        }
        let is_late = || gate.end.get().is_some_and(|end| Instant::now() > end);
        if gate.has_refused.get() || !is_late() || !gate.callers_snapshot(db).is_there() {
            gate.has_read.set(true);
            return None;
        }
        gate.has_refused.set(true);
        let code = match gate.page_refusal.get() {
            PageRefusal::Interrupt => ffi::SQLITE_INTERRUPT,
            PageRefusal::Failure => ffi::SQLITE_IOERR,
        };
        Some(code | MARK)
    })
}

/// Makes the request for locks of `file`'s wal-index by `own`, or refuses it.
pub(crate) fn locks(file: *mut ffi::sqlite3_file, request: Request, own: impl Fn() -> c_int) -> c_int {
    GATE.with(|gate| match gate.guarded.get() {
        Guarded::Caller([database, _], db) if file == database => {
            gate.ask(gate.callers_snapshot(db), request, Place::Caller, own, || false)
        }
        Guarded::Worker(patient) => {
            let is_same = gate.file.replace(file) == file;
            let known = gate.snapshot.get().filter(|_| is_same);
            let mut tries = 0;
            let wait = || {
                tries += 1;
                // SAFETY: the connection whose hooks these are is borrowed for as long as it is patient.
                unsafe { &*patient.hooks }.waits(tries)
            };
            gate.ask(known.unwrap_or_else(|| patient.snapshot(file)), request, Place::Worker, own, wait)
        }
        _ => own(),
    })
}

impl Gate {
    /// Nothing was asked before that could have changed it.
    fn callers_snapshot(&self, db: *mut ffi::sqlite3) -> Snapshot {
        // SAFETY: the thread that guards a connection's files is inside a call on that connection.
        let snapshot = self.snapshot.get().unwrap_or_else(|| unsafe { snapshot_of(db) });
        self.snapshot.set(Some(snapshot));
        snapshot
    }

    fn ask(
        &self,
        mut snapshot: Snapshot,
        request: Request,
        place: Place,
        own: impl Fn() -> c_int,
        mut wait: impl FnMut() -> bool,
    ) -> c_int {
        let decision = snapshot.asks(request, place);
        let refusal = if snapshot.is_of_a_commit() { COMMIT_SNAPSHOT } else { SNAPSHOT };
        let code = match decision {
            Decision::Pass => own(),
            Decision::Refuse => refusal,
            Decision::Wait => loop {
                let code = own();
                if code != ffi::SQLITE_BUSY {
                    break code;
                }
                if !wait() {
                    break refusal;
                }
            },
        };
        snapshot.answered(request, code);
        self.snapshot.set(Some(snapshot));
        code
    }
}

impl Patient {
    /// What is known of a file's snapshot before its first request.
    fn snapshot(&self, file: *mut ffi::sqlite3_file) -> Snapshot {
        // SAFETY: the connection is borrowed for as long as it is patient, by this thread.
        let known = unsafe { snapshot_of(self.db) };
        if file == self.main { known } else { known.of_another_file() }
    }
}
