//! Savepoints with names, for code that has no scopes to nest.
//!
//! Owns: the calls. Runs on the caller's thread; no work runs here. Leaves out: nested transactions (`transaction`), and
//! the stack of the savepoints, which the writer has.

use crate::api::call::Call;
use crate::api::transaction::Transaction;
use crate::error::{Error, Result};
use crate::workers::work::{NamedStep, Work};

impl Transaction<'_> {
    /// Opens a savepoint, to which [`rollback_to`](Self::rollback_to) returns.
    ///
    /// Savepoints form a stack, as [SQLite's](https://sqlite.org/lang_savepoint.html) do. A name may be any text that
    /// is not empty, and may be used again: it then refers to the newest savepoint of this name. Names are compared
    /// without regard to the case of ASCII letters. A savepoint ends with its transaction at the latest. To nest
    /// transactions by scopes instead, use [`transaction`](Self::transaction).
    ///
    /// If the call is dropped before it completes, it is undefined whether the savepoint was opened.
    ///
    /// # Errors
    /// `Misuse` for an empty name, or if the transaction is over.
    pub fn savepoint(&self, name: &str) -> Call<()> {
        self.named("savepoint", NamedStep::Open, name)
    }

    /// Closes the savepoint of this name and all that were opened after it, and keeps their changes. The transaction
    /// stays open, even if this is its first savepoint. If the call is dropped before it completes, it is undefined
    /// whether they were closed.
    ///
    /// # Errors
    /// `Misuse` if there is no such savepoint in this transaction, or if the transaction is over. A nested transaction
    /// does not see the savepoints of the outer one.
    pub fn release(&self, name: &str) -> Call<()> {
        self.named("release", NamedStep::Release, name)
    }

    /// Undoes all changes since the savepoint of this name was opened. The savepoint stays open; those that were opened
    /// after it are closed. If the call is dropped before it completes, it is undefined whether the changes
    /// were undone.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn rollback_to(&self, name: &str) -> Call<()> {
        self.named("rollback_to", NamedStep::RollbackTo, name)
    }

    fn named(&self, operation: &'static str, step: NamedStep, name: &str) -> Call<()> {
        self.session.call(operation, named(step, name), |answer, _| answer.done())
    }
}

pub(crate) fn named(step: NamedStep, name: &str) -> Result<Work> {
    if name.is_empty() {
        return Err(Error::misuse("the name of a savepoint is empty").with_hint("name it, or nest with `begin`"));
    }
    Ok(Work::Named(step, name.into()))
}
