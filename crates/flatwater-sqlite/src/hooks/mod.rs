//! The callbacks from SQLite: authorizer, busy handler, progress handler, commit, WAL and update hook. The preupdate
//! hook is in `preupdate`.
//!
//! Owns: the state behind them, one `Hooks` per connection at a fixed address. Every callback runs on the thread that
//! is inside a SQLite call on that connection, so the state needs no lock; `Cell`s keep it sound when a callback runs
//! while its connection is borrowed. Invariant: no panic crosses into C; each callback catches it and returns the safe
//! result. Leaves out: deciding. The engine sets what is allowed, how long to wait and when to stop.

pub(crate) mod changes;
pub(crate) mod commits;
pub(crate) mod inserts;
pub(crate) mod interrupts;
pub(crate) mod preupdate;

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::ffi;

use crate::hooks::changes::Changes;
use crate::hooks::commits::Commits;
use crate::hooks::inserts::Inserts;
use crate::hooks::interrupts::Armed;

/// One action of a statement, as SQLite reports it to the authorizer while the statement is prepared.
///
/// The meaning of `first` and `second` depends on the action: <https://sqlite.org/c3ref/c_alter_table.html>.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuthEvent {
    /// One of SQLite's action codes, such as `rusqlite::ffi::SQLITE_INSERT`.
    pub action: i32,
    /// The first detail, often the name of a table.
    pub first: Option<Box<str>>,
    /// The second detail, often the name of a column.
    pub second: Option<Box<str>>,
    /// The schema: `main`, `temp` or an attached name.
    pub database: Option<Box<str>>,
    /// The innermost trigger or view that causes the action; `None` for the statement itself.
    pub accessor: Option<Box<str>>,
}

/// A policy's decision on an [`AuthEvent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The action is allowed.
    Allow,
    /// The statement fails to prepare with SQLITE_AUTH, before it has any effect.
    Deny,
    /// The statement is prepared without the action: a PRAGMA or a statement of transaction control does nothing then,
    /// and a function that is called is NULL. Whoever prepares the statement decides what becomes of it.
    Ignore,
}

/// Decides what a text may do. A plain function: replacing it costs nothing, whereas installing another authorizer
/// would expire every prepared statement (<https://sqlite.org/c3ref/set_authorizer.html>).
pub type Policy = fn(&AuthEvent) -> Verdict;

/// The busy handler, called when another connection holds a lock. Its argument is the number of earlier calls for this
/// lock; returning true means try again. It may sleep; it must not use the connection
/// (<https://sqlite.org/c3ref/busy_handler.html>).
pub type Busy = Box<dyn FnMut(u32) -> bool + Send>;

/// The state behind the callbacks of one connection.
pub(crate) struct Hooks {
    policy: Cell<Policy>,
    /// Filled only while this crate prepares a statement; a re-prepare inside a step is judged but not recorded.
    recorded: RefCell<Option<Vec<AuthEvent>>>,
    denied: RefCell<Option<AuthEvent>>,
    busy: RefCell<Option<Busy>>,
    pub(crate) armed: Armed,
    pub(crate) inserts: Inserts,
    pub(crate) changes: Changes,
    pub(crate) commits: Commits,
    /// A commit that finds at least so many frames in the WAL of an attached file copies them; 0: no commit does.
    attached_frames: Cell<c_int>,
    panicked: Cell<bool>,
}

/// The policy of a fresh connection: everything is allowed.
fn allow_all(_: &AuthEvent) -> Verdict {
    Verdict::Allow
}

impl Hooks {
    pub(crate) fn new() -> Self {
        Self {
            policy: Cell::new(allow_all),
            recorded: RefCell::new(None),
            denied: RefCell::new(None),
            busy: RefCell::new(None),
            armed: Armed::new(),
            inserts: Inserts::default(),
            changes: Changes::default(),
            commits: Commits::default(),
            attached_frames: Cell::new(0),
            panicked: Cell::new(false),
        }
    }

    /// Registers the authorizer. Called once per connection: a second call would expire its statements.
    ///
    /// # Safety
    /// `db` is open and used by this thread only; `self` stays at its address until the connection is closed.
    pub(crate) unsafe fn install_authorizer(&self, db: *mut ffi::sqlite3) {
        // SAFETY: as the caller promises.
        unsafe { ffi::sqlite3_set_authorizer(db, Some(on_authorize), self.as_context()) };
    }

    /// Registers all other handlers. Returns true if those that can be read back were still this crate's.
    ///
    /// # Safety
    /// As for [`install_authorizer`](Self::install_authorizer).
    pub(crate) unsafe fn install_handlers(&self, db: *mut ffi::sqlite3) -> bool {
        let context = self.as_context();
        // SAFETY: as the caller promises; the two hook setters return the previously registered context.
        unsafe {
            ffi::sqlite3_busy_handler(db, Some(on_busy), context);
            ffi::sqlite3_progress_handler(db, self.armed.steps(), Some(on_progress), context);
            ffi::sqlite3_wal_hook(db, Some(on_wal), context);
            let commit = ffi::sqlite3_commit_hook(db, Some(on_commit), context);
            let update = ffi::sqlite3_update_hook(db, Some(on_update), context);
            commit == context && update == context
        }
    }

    /// # Safety
    /// As for [`install_authorizer`](Self::install_authorizer).
    pub(crate) unsafe fn set_progress_steps(&self, db: *mut ffi::sqlite3, steps: i32) {
        self.armed.look_after(steps);
        // SAFETY: as the caller promises.
        unsafe { ffi::sqlite3_progress_handler(db, self.armed.steps(), Some(on_progress), self.as_context()) };
    }

    pub(crate) fn set_policy(&self, policy: Policy) -> Policy {
        self.policy.replace(policy)
    }

    pub(crate) fn set_busy(&self, busy: Option<Busy>) -> Option<Busy> {
        self.busy.replace(busy)
    }

    /// Calls the busy handler to decide whether to try again for a lock, after so many tries. Returns false for a
    /// statement that must end.
    pub(crate) fn waits(&self, tries: u32) -> bool {
        self.guarded(false, || {
            !self.armed.is_over() && self.busy.borrow_mut().as_mut().is_some_and(|again| again(tries))
        })
    }

    pub(crate) fn start_recording(&self) {
        *self.recorded.borrow_mut() = Some(Vec::new());
        *self.denied.borrow_mut() = None;
    }

    pub(crate) fn stop_recording(&self) -> Vec<AuthEvent> {
        self.recorded.borrow_mut().take().unwrap_or_default()
    }

    pub(crate) fn take_denied(&self) -> Option<AuthEvent> {
        self.denied.borrow_mut().take()
    }

    /// Makes commits copy the WAL of an attached file that has so many frames; 0: no commit does.
    ///
    /// # Safety
    /// As for [`install_authorizer`](Self::install_authorizer).
    pub(crate) unsafe fn watch_wal(&self, db: *mut ffi::sqlite3, attached_frames: c_int) {
        self.attached_frames.set(attached_frames);
        // SAFETY: as the caller promises.
        unsafe { ffi::sqlite3_wal_hook(db, Some(on_wal), self.as_context()) };
    }

    pub(crate) fn take_panicked(&self) -> bool {
        self.panicked.replace(false)
    }

    fn as_context(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    fn authorize(&self, event: AuthEvent) -> Verdict {
        let verdict = (self.policy.get())(&event);
        if verdict == Verdict::Deny && self.denied.borrow().is_none() {
            *self.denied.borrow_mut() = Some(event.clone());
        }
        if let Some(recorded) = self.recorded.borrow_mut().as_mut() {
            recorded.push(event);
        }
        verdict
    }

    pub(crate) fn guarded<T>(&self, otherwise: T, f: impl FnOnce() -> T) -> T {
        catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| {
            self.panicked.set(true);
            otherwise
        })
    }
}

/// # Safety
/// `context` is the address of the connection's `Hooks`, which outlives the connection.
pub(crate) unsafe fn hooks<'a>(context: *mut c_void) -> &'a Hooks {
    // SAFETY: as the caller promises; only shared references to it are ever made.
    unsafe { &*context.cast::<Hooks>() }
}

/// # Safety
/// `text` is null or a NUL-terminated string that lives for the call.
unsafe fn owned(text: *const c_char) -> Option<Box<str>> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and NUL-terminated as the caller promises.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into())
}

unsafe extern "C" fn on_authorize(
    context: *mut c_void,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    database: *const c_char,
    accessor: *const c_char,
) -> c_int {
    // SAFETY: SQLite passes the context registered here and strings that live for this call.
    let hooks = unsafe { hooks(context) };
    hooks.guarded(ffi::SQLITE_DENY, || {
        // SAFETY: as above.
        let event = unsafe {
            AuthEvent {
                action,
                first: owned(first),
                second: owned(second),
                database: owned(database),
                accessor: owned(accessor),
            }
        };
        match hooks.authorize(event) {
            Verdict::Allow => ffi::SQLITE_OK,
            Verdict::Deny => ffi::SQLITE_DENY,
            Verdict::Ignore => ffi::SQLITE_IGNORE,
        }
    })
}

unsafe extern "C" fn on_busy(context: *mut c_void, calls: c_int) -> c_int {
    // SAFETY: SQLite passes the context registered here.
    let hooks = unsafe { hooks(context) };
    c_int::from(hooks.waits(calls.unsigned_abs()))
}

unsafe extern "C" fn on_progress(context: *mut c_void) -> c_int {
    // SAFETY: SQLite passes the context registered here.
    let hooks = unsafe { hooks(context) };
    hooks.guarded(1, || {
        #[cfg(feature = "fault")]
        crate::held_step::looks();
        c_int::from(hooks.armed.ends_now())
    })
}

/// Called at the last moment before the point of no return. SQLite calls the progress handler once more when a
/// statement ends, and an interrupt then would report a failure of a statement that is committed. So from here on the
/// progress handler does not interrupt. Whoever may end the statement is asked a last time. A result other than 0 makes
/// SQLite roll the transaction back (<https://sqlite.org/c3ref/commit_hook.html>).
unsafe extern "C" fn on_commit(context: *mut c_void) -> c_int {
    // SAFETY: SQLite passes the context registered here.
    let hooks = unsafe { hooks(context) };
    hooks.guarded(0, || c_int::from(!(hooks.armed.lets_commit() && hooks.commits.begins())))
}

/// Called after a commit into a WAL, with no lock held.
unsafe extern "C" fn on_wal(
    context: *mut c_void,
    db: *mut ffi::sqlite3,
    database: *const c_char,
    frames: c_int,
) -> c_int {
    // SAFETY: SQLite passes the context registered here and a name that lives for this call.
    let (hooks, name) = unsafe { (hooks(context), CStr::from_ptr(database)) };
    hooks.guarded(ffi::SQLITE_OK, || {
        let limit = hooks.attached_frames.get();
        if name == c"main" {
            hooks.commits.publishes();
        } else if limit > 0 && frames >= limit {
            let none = std::ptr::null_mut();
            // SAFETY: `db` is the connection that committed, and may be used in this hook. The next commit copies what
            // this one could not copy.
            unsafe { ffi::sqlite3_wal_checkpoint_v2(db, database, ffi::SQLITE_CHECKPOINT_PASSIVE, none, none) };
        }
        ffi::SQLITE_OK
    })
}

unsafe extern "C" fn on_update(
    context: *mut c_void,
    action: c_int,
    database: *const c_char,
    table: *const c_char,
    rowid: ffi::sqlite3_int64,
) {
    // SAFETY: SQLite passes the context registered here.
    let hooks = unsafe { hooks(context) };
    let is_recorded = hooks.changes.is_recording();
    let is_watched = action == ffi::SQLITE_INSERT && hooks.inserts.is_watching();
    if !(is_recorded || is_watched) || table.is_null() || database.is_null() {
        return;
    }
    // SAFETY: SQLite passes names that live for this call.
    let (database, table) = unsafe { (CStr::from_ptr(database), CStr::from_ptr(table)) };
    hooks.guarded((), || {
        if is_watched {
            hooks.inserts.note(table.to_bytes(), rowid);
        }
        if is_recorded {
            hooks.changes.note(database, table, rowid, action == ffi::SQLITE_UPDATE);
        }
    });
}
