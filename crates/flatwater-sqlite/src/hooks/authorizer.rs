//! What a text may do, and what it does: the state behind SQLite's authorizer.
//!
//! Owns: the policy, the actions of the statement that is being prepared, and the first one that was denied. Used by the
//! thread that is inside a SQLite call on the connection. Invariant: the authorizer itself is never set again, because that
//! expires every prepared statement (<https://sqlite.org/c3ref/set_authorizer.html>); only its policy changes. Leaves out:
//! the policies, which are the engine's.

use std::cell::{Cell, RefCell};

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

/// The state behind the authorizer of one connection.
pub struct Authorizer {
    policy: Cell<Policy>,
    /// Filled only while this crate prepares a statement; a re-prepare inside a step is judged but not recorded.
    recorded: RefCell<Option<Vec<AuthEvent>>>,
    denied: RefCell<Option<AuthEvent>>,
}

/// The policy of a fresh connection: everything is allowed.
pub(crate) fn allow_all(_: &AuthEvent) -> Verdict {
    Verdict::Allow
}

impl Authorizer {
    pub(super) fn new() -> Self {
        Self { policy: Cell::new(allow_all), recorded: RefCell::new(None), denied: RefCell::new(None) }
    }

    /// Sets the policy that decides what a text may do. Returns the previous policy.
    pub fn set_policy(&self, policy: Policy) -> Policy {
        self.policy.replace(policy)
    }

    /// Returns the first event that was denied since the last `prepare` began.
    #[must_use]
    pub fn take_denied(&self) -> Option<AuthEvent> {
        self.denied.borrow_mut().take()
    }

    pub(crate) fn start_recording(&self) {
        *self.recorded.borrow_mut() = Some(Vec::new());
        *self.denied.borrow_mut() = None;
    }

    /// Returns true while a statement is prepared whose actions are wanted.
    pub(crate) fn is_recording(&self) -> bool {
        self.recorded.try_borrow().is_ok_and(|recorded| recorded.is_some())
    }

    pub(crate) fn stop_recording(&self) -> Vec<AuthEvent> {
        self.recorded.borrow_mut().take().unwrap_or_default()
    }

    pub(super) fn authorize(&self, event: AuthEvent) -> Verdict {
        let verdict = (self.policy.get())(&event);
        if verdict == Verdict::Deny && self.denied.borrow().is_none() {
            *self.denied.borrow_mut() = Some(event.clone());
        }
        if let Some(recorded) = self.recorded.borrow_mut().as_mut() {
            recorded.push(event);
        }
        verdict
    }
}
