//! What is remembered of the files of a connection: where the wal-index is mapped, and that the files have this crate's
//! methods.
//!
//! Owns: remembering it, and forgetting it in time. Runs on the thread that uses the connection. Invariant: both are
//! remembered only while nothing can have made the connection leave WAL mode, which ends both. Leaves out: finding them out
//! (`wal`, `file_methods`).

use std::cell::Cell;
use std::ffi::c_void;

use rusqlite::ffi;

/// The database and the WAL of a connection, which have this crate's methods.
pub(crate) type GuardedFiles = [*mut ffi::sqlite3_file; 2];

/// What is known of the connection's files, as long as it is certain to hold.
#[derive(Debug)]
pub(crate) struct Mapping {
    known: Cell<Known>,
    /// The rusqlite connection was handed out, and other code may still have it.
    is_lent: Cell<bool>,
}

/// Facts that hold for as long as the connection is in WAL mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// The address at which the wal-index is mapped, or null.
    base: *mut c_void,
    /// The files, if they have this crate's methods.
    guarded: Option<GuardedFiles>,
}

const NOTHING: Known = Known { base: std::ptr::null_mut(), guarded: None };

impl Mapping {
    pub(crate) fn new() -> Self {
        Self { known: Cell::new(NOTHING), is_lent: Cell::new(true) }
    }

    /// The rusqlite connection is handed out: the code that has it may leave WAL mode at any time.
    pub(crate) fn lend(&self) {
        self.forget();
        self.is_lent.set(true);
    }

    /// No other code has the rusqlite connection any more.
    pub(crate) fn take_back(&mut self) {
        self.is_lent.set(false);
    }

    /// Forgets what is known, because something runs that may leave WAL mode.
    pub(crate) fn forget(&self) {
        self.known.set(NOTHING);
    }

    /// Like `forget`, but returns what was known, so that `put_back` can restore it if nothing left WAL mode after all.
    pub(crate) fn set_aside(&self) -> Known {
        self.known.replace(NOTHING)
    }

    pub(crate) fn put_back(&mut self, known: Known) {
        self.known.set(known);
    }

    /// The files, if they are known to have this crate's methods.
    pub(crate) fn files(&self) -> Option<GuardedFiles> {
        self.known.get().guarded
    }

    /// Records that the files have this crate's methods.
    pub(crate) fn guarded(&self, files: GuardedFiles) {
        self.learn(Known { guarded: Some(files), ..self.known.get() });
    }

    /// The address at which the wal-index is mapped, if that is known.
    pub(crate) fn get(&self) -> Option<*mut c_void> {
        let Known { base, .. } = self.known.get();
        (!base.is_null()).then_some(base)
    }

    /// Records the address.
    pub(crate) fn remember(&self, base: *mut c_void) {
        self.learn(Known { base, ..self.known.get() });
    }

    fn learn(&self, known: Known) {
        if !self.is_lent.get() {
            self.known.set(known);
        }
    }
}
