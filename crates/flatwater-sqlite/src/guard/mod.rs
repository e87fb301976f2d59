//! Refusing SQLite, while this thread runs a statement, a snapshot that does not begin at once; and timing what it reads.
//!
//! Owns: for this thread, which connection's files are guarded and how. Called by the file methods (`file_methods`), on
//! the thread that is inside a SQLite call. Invariants: a thread that guards nothing is refused nothing; a snapshot that
//! does not begin at once is refused to a caller's thread, and to a worker after a few attempts, so that the worker waits
//! with its busy handler and not inside SQLite; no page is refused. Leaves out: a file that is mapped into memory, where a
//! page fault reads; the order of locks (`snapshot_locks`); the codes of refusals (`refusals`).

pub(crate) mod file_methods;
mod frame_writes;
pub(crate) mod refusals;
mod snapshot_locks;

use std::cell::Cell;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr;
use std::time::{Duration, Instant};

use rusqlite::ffi;

use crate::guard::refusals::{COMMIT_SNAPSHOT, SNAPSHOT};
use crate::guard::snapshot_locks::{Decision, Place, Request, Snapshot};
use crate::handle::Handle;
use crate::hooks::Hooks;
use crate::wal::files::Files;
use crate::wal::mapping::GuardedFiles;

/// The snapshots that this thread guards.
#[derive(Clone, Copy)]
enum Guarded {
    None,
    /// Those of a connection's own database, on a thread that must not be held up.
    Caller(GuardedFiles, *mut ffi::sqlite3),
    /// Those of all of a connection's databases, on a thread that may wait.
    Worker(Patient),
}

/// A connection that waits with its busy handler.
#[derive(Clone, Copy)]
struct Patient {
    hooks: *const Hooks,
    db: *mut ffi::sqlite3,
    /// The file of its own database, if that is known; only compared.
    main: *mut ffi::sqlite3_file,
}

/// The state of this thread.
struct Gate {
    guarded: Cell<Guarded>,
    /// The file that `snapshot` belongs to; only compared.
    file: Cell<*mut ffi::sqlite3_file>,
    /// `None` until a request needs it: most short statements make no such request.
    snapshot: Cell<Option<Snapshot>>,
    /// How long reads of pages from files took.
    reading: Cell<Duration>,
}

thread_local! {
    static GATE: Gate = const {
        Gate {
            guarded: Cell::new(Guarded::None),
            file: Cell::new(ptr::null_mut()),
            snapshot: Cell::new(None),
            reading: Cell::new(Duration::ZERO),
        }
    };
}

/// While it lives, no lock of a connection's files holds up this thread. A thread has one at a time.
#[must_use]
pub struct Unheld(PhantomData<*const ()>);

impl Unheld {
    pub(crate) fn begin(files: GuardedFiles, handle: &Handle) -> Self {
        GATE.with(|gate| {
            gate.guarded.set(Guarded::Caller(files, handle.raw()));
            gate.snapshot.set(None);
            gate.reading.set(Duration::ZERO);
        });
        Self(PhantomData)
    }

    /// Returns how long the reads of pages from files took.
    #[must_use]
    pub fn reading(&self) -> Duration {
        GATE.with(|gate| gate.reading.get())
    }
}

impl Drop for Unheld {
    fn drop(&mut self) {
        GATE.with(|gate| gate.guarded.set(Guarded::None));
    }
}

/// While it lives, snapshots of a connection that do not begin at once are refused.
pub(crate) struct PatientSnapshots(PhantomData<*const ()>);

impl PatientSnapshots {
    /// Returns `None` on a thread that guards snapshots already.
    ///
    /// # Safety
    /// All three belong to one connection, and the value is dropped before that is.
    pub(crate) unsafe fn begin(hooks: *const Hooks, handle: &Handle, files: &Files) -> Option<Self> {
        GATE.with(|gate| {
            if !matches!(gate.guarded.get(), Guarded::None) {
                return None;
            }
            let main = files.mapping.files().map_or(ptr::null_mut(), |files| files[0]);
            gate.guarded.set(Guarded::Worker(Patient { hooks, db: handle.raw(), main }));
            gate.file.set(ptr::null_mut());
            Some(Self(PhantomData))
        })
    }
}

impl Drop for PatientSnapshots {
    fn drop(&mut self) {
        GATE.with(|gate| gate.guarded.set(Guarded::None));
    }
}

/// The transaction state of a connection, over all of its databases (<https://sqlite.org/c3ref/txn_state.html>).
///
/// # Safety
/// `db` is open, and this thread is the one that uses it; it may be inside a call.
unsafe fn snapshot_of(db: *mut ffi::sqlite3) -> Snapshot {
    // SAFETY: as the caller promises; this reads the connection's state, and without a name covers all databases.
    Snapshot::of(unsafe { ffi::sqlite3_txn_state(db, ptr::null()) })
}

/// The number of pages that a connection fetched, from its cache or not
/// (<https://sqlite.org/c3ref/c_dbstatus_options.html>).
///
/// # Safety
/// As for [`snapshot_of`].
unsafe fn pages_of(db: *mut ffi::sqlite3) -> u64 {
    let count = |which| {
        let (mut current, mut highest): (c_int, c_int) = (0, 0);
        // SAFETY: as the caller promises; both out-pointers live for the call, which adds counters up.
        unsafe { ffi::sqlite3_db_status(db, which, &raw mut current, &raw mut highest, 0) };
        u64::from(current.cast_unsigned())
    };
    count(ffi::SQLITE_DBSTATUS_CACHE_HIT) << 32 | count(ffi::SQLITE_DBSTATUS_CACHE_MISS)
}

/// Returns when a read of `file` begins, if it is timed: [`has_read`] is called when it has ended.
pub(crate) fn begin_read(file: *mut ffi::sqlite3_file) -> Option<Instant> {
    GATE.with(|gate| match gate.guarded.get() {
        Guarded::Caller(files, _) if files.contains(&file) => Some(Instant::now()),
        _ => None,
    })
}

/// A timed read that began then has ended.
pub(crate) fn has_read(began: Instant) {
    GATE.with(|gate| gate.reading.set(gate.reading.get().saturating_add(began.elapsed())));
}

/// Passes the request for locks of `file`'s wal-index to `own`, or refuses it.
pub(crate) fn locks(file: *mut ffi::sqlite3_file, request: Request, own: impl Fn() -> c_int) -> c_int {
    GATE.with(|gate| match gate.guarded.get() {
        Guarded::Caller([database, _], db) if file == database => {
            gate.ask((gate.callers_snapshot(db), db), request, Place::Caller, own, || false)
        }
        Guarded::Worker(patient) => {
            let is_same = gate.file.replace(file) == file;
            let known = gate.snapshot.get().filter(|_| is_same);
            let mut tries = 0;
            let wait = || {
                tries += 1;
                // SAFETY: the connection that owns these hooks is borrowed for as long as it is patient.
                unsafe { &*patient.hooks }.waits(tries)
            };
            let snapshot = known.unwrap_or_else(|| patient.snapshot(file));
            gate.ask((snapshot, patient.db), request, Place::Worker, own, wait)
        }
        _ => own(),
    })
}

impl Gate {
    /// The state at the first request: no earlier request can have changed it.
    fn callers_snapshot(&self, db: *mut ffi::sqlite3) -> Snapshot {
        // SAFETY: the thread that guards a connection's files is inside a call on that connection.
        let snapshot = self.snapshot.get().unwrap_or_else(|| unsafe { snapshot_of(db) });
        self.snapshot.set(Some(snapshot));
        snapshot
    }

    fn ask(
        &self,
        (mut snapshot, db): (Snapshot, *mut ffi::sqlite3),
        request: Request,
        place: Place,
        own: impl Fn() -> c_int,
        mut wait: impl FnMut() -> bool,
    ) -> c_int {
        // SAFETY: the thread that guards a connection's files is inside a call on that connection.
        let decision = snapshot.asks(request, place, || unsafe { pages_of(db) });
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
