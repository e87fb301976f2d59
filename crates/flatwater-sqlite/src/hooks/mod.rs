//! The hooks of a connection: the state behind SQLite's callbacks.
//!
//! Owns: having SQLite call them, the busy handler, and a part for each subject; one `Hooks` per connection at a fixed
//! address. Every callback (`callbacks`, `preupdate`) runs on the thread that is inside a SQLite call on that
//! connection, so the state needs no lock; `Cell`s keep it sound when a callback runs while its connection is borrowed.
//! Invariant: a callback that panicked is remembered, and its statement ends. Leaves out: deciding. The engine sets what
//! is allowed, how long to wait and when to stop.

pub(crate) mod authorizer;
mod callbacks;
pub(crate) mod caller_hooks;
pub(crate) mod changes;
pub(crate) mod commits;
pub(crate) mod failure;
pub(crate) mod inserts;
pub(crate) mod interrupts;
pub(crate) mod preupdate;

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::ffi;

use crate::handle::Handle;
use crate::hooks::authorizer::{AuthEvent, Authorizer};
use crate::hooks::callbacks::{on_authorize, on_busy, on_commit, on_progress, on_rollback, on_update, on_wal};
use crate::hooks::caller_hooks::Called;
use crate::hooks::changes::Changes;
use crate::hooks::commits::Commits;
use crate::hooks::failure::Failure;
use crate::hooks::inserts::Inserts;
use crate::hooks::interrupts::Interrupts;

/// The busy handler, called when another connection holds a lock. Its argument is the number of earlier calls for this
/// lock; returning true means try again. It may sleep; it must not use the connection
/// (<https://sqlite.org/c3ref/busy_handler.html>).
pub type Busy = Box<dyn FnMut(u32) -> bool + Send>;

/// The state behind the callbacks of one connection.
pub struct Hooks {
    /// What a text may do.
    pub authorizer: Authorizer,
    /// What ends the statements that run.
    pub interrupts: Interrupts,
    /// Whether a table got a new row.
    pub inserts: Inserts,
    /// The rows that change.
    pub changes: Changes,
    /// The commits.
    pub commits: Commits,
    /// What failed inside of a callback that cannot fail.
    pub failure: Failure,
    /// What the caller of a connection of its own wants to be asked.
    called: Called,
    busy: RefCell<Option<Busy>>,
    /// A commit that finds at least so many frames in the WAL of an attached file copies them; 0: no commit does.
    attached_frames: Cell<c_int>,
    panicked: Cell<bool>,
    handle: Handle,
}

impl Hooks {
    /// Makes the hooks of a connection and has SQLite call them.
    ///
    /// # Safety
    /// `db` is open and used by this thread only. The hooks, which are made by `Box::into_raw`, are freed after it is
    /// closed.
    pub(crate) unsafe fn install(db: *mut ffi::sqlite3) -> *mut Self {
        let hooks = Box::into_raw(Box::new(Self {
            authorizer: Authorizer::new(),
            interrupts: Interrupts::new(),
            inserts: Inserts::default(),
            changes: Changes::default(),
            commits: Commits::default(),
            failure: Failure::default(),
            called: Called::default(),
            busy: RefCell::new(None),
            attached_frames: Cell::new(0),
            panicked: Cell::new(false),
            // SAFETY: the hooks are used only while the connection is open.
            handle: unsafe { Handle::new(db) },
        }));
        // SAFETY: just made; only shared references to it are ever made.
        let installed = unsafe { &*hooks };
        installed.install_authorizer();
        installed.install_handlers();
        hooks
    }

    /// Registers the authorizer. Each call expires the statements of the connection.
    pub(crate) fn install_authorizer(&self) {
        // SAFETY: the connection is open and used here alone; hooks keep their address until it is closed.
        unsafe { ffi::sqlite3_set_authorizer(self.handle.raw(), Some(on_authorize), self.as_context()) };
    }

    /// Registers all other handlers. Returns true if those that can be read back were still this crate's.
    fn install_handlers(&self) -> bool {
        let (db, context) = (self.handle.raw(), self.as_context());
        // SAFETY: as in `install_authorizer`; the three hook setters return the previously registered context.
        unsafe {
            ffi::sqlite3_busy_handler(db, Some(on_busy), context);
            ffi::sqlite3_progress_handler(db, self.interrupts.steps(), Some(on_progress), context);
            ffi::sqlite3_wal_hook(db, Some(on_wal), context);
            let rollback = ffi::sqlite3_rollback_hook(db, Some(on_rollback), context);
            let commit = ffi::sqlite3_commit_hook(db, Some(on_commit), context);
            let update = ffi::sqlite3_update_hook(db, Some(on_update), context);
            [commit, rollback, update] == [context; 3]
        }
    }

    /// Registers all handlers but the authorizer again, and disarms. Returns true if those that can be read back were
    /// still this crate's.
    pub(crate) fn restore(&self) -> bool {
        let handlers = self.install_handlers();
        // Whoever had other handlers called may have undone something.
        self.commits.undoes();
        let reports_rows = self.report_rows(self.changes.is_recording());
        self.interrupts.disarm();
        handlers && reports_rows
    }

    /// Sets the number of virtual machine steps between two checks of the interrupt. For tests.
    pub fn set_progress_steps(&self, steps: i32) {
        self.interrupts.look_after(steps);
        self.install_progress();
    }

    /// Registers the progress handler.
    fn install_progress(&self) {
        let steps = self.interrupts.steps();
        // SAFETY: as in `install_authorizer`.
        unsafe { ffi::sqlite3_progress_handler(self.handle.raw(), steps, Some(on_progress), self.as_context()) };
    }

    /// Sets the busy handler, which runs when another connection holds a lock. Returns the previous one. Without a busy
    /// handler a held lock is SQLITE_BUSY at once.
    pub fn set_busy(&self, busy: Option<Busy>) -> Option<Busy> {
        self.busy.replace(busy)
    }

    /// Waits, and returns true, if whoever uses the connection still waits for a lock that it did not get after so many
    /// tries: decided by the busy handler, and by what ends statements.
    #[must_use]
    pub fn waits(&self, tries: u32) -> bool {
        self.guarded(false, || {
            !self.interrupts.is_over() && self.busy.borrow_mut().as_mut().is_some_and(|again| again(tries))
        })
    }

    /// Runs `f`, which prepares a statement, and returns what the statement does too. No row is reported meanwhile.
    pub(crate) fn preparing<T>(&self, f: impl FnOnce() -> T) -> (T, Vec<AuthEvent>) {
        let reports_rows = self.changes.is_recording();
        if reports_rows {
            self.report_rows(false);
        }
        self.authorizer.start_recording();
        let prepared = f();
        let events = self.authorizer.stop_recording();
        if reports_rows {
            self.report_rows(true);
        }
        (prepared, events)
    }

    /// Starts or stops recording which rows change. What was recorded is dropped.
    pub fn record_changes(&self, on: bool) {
        self.changes.record(on);
        self.report_rows(on);
    }

    /// Counts commits from now on, and makes a commit that finds so many frames in the WAL of an attached file copy
    /// them, as SQLite does by default (<https://sqlite.org/c3ref/wal_autocheckpoint.html>); 0: no commit does. Call it
    /// after `PRAGMA wal_autocheckpoint`, which uses the same hook.
    pub fn watch_wal(&self, attached_frames: u16) {
        self.attached_frames.set(attached_frames.into());
        // SAFETY: as in `install_authorizer`.
        unsafe { ffi::sqlite3_wal_hook(self.handle.raw(), Some(on_wal), self.as_context()) };
    }

    /// Returns true once after a callback of the engine (policy, busy, interrupt) panicked.
    #[must_use]
    pub fn take_panicked(&self) -> bool {
        self.panicked.replace(false)
    }

    fn as_context(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// Runs `f`. If it panics, returns `otherwise`.
    fn guarded<T>(&self, otherwise: T, f: impl FnOnce() -> T) -> T {
        catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| {
            self.panicked.set(true);
            otherwise
        })
    }
}
