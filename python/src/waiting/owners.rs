//! Who must go on so that a transaction ends: a call that begins there would wait for itself.
//!
//! Owns: who has the open transaction of a database. Runs on the loop's thread, or on the thread that waits, with the
//! interpreter's lock. Invariants: a note is as old as its transaction's guard, and counts for as long as the transaction
//! is open, whoever ends it; it keeps neither a task nor a frame. Leaves out: what a frame's
//! block is (`flatwater._waiting.with_blocks`); telling a call where it begins (`place`).

use flatwater::ErrorCode;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flatwater::bindings::Target;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::told::errors::refused;

/// Who must go on so that a transaction ends.
enum Who {
    Task(Py<PyWeakrefReference>),
    /// The thread that runs the frame with this address, which is in the `with` block of the transaction.
    Block(usize),
}

struct Owner {
    transaction: Target,
    who: Who,
}

/// By the number of the database, which has one open transaction at most.
static OWNERS: Mutex<BTreeMap<usize, Owner>> = Mutex::new(BTreeMap::new());

/// Held while no code of Python runs.
fn owners() -> MutexGuard<'static, BTreeMap<usize, Owner>> {
    OWNERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that the task which runs now has the transaction open.
pub(crate) fn note_task(py: Python<'_>, transaction: Target) -> PyResult<()> {
    let task = current_task(py)?;
    if !task.is_none() {
        note(transaction, Who::Task(PyWeakrefReference::new(&task)?.unbind()));
    }
    Ok(())
}

/// Notes that the frame with this address has the transaction open.
pub(crate) fn note_block(transaction: Target, frame: usize) {
    note(transaction, Who::Block(frame));
}

fn note(transaction: Target, who: Who) {
    let mut owners = owners();
    // It may have ended, and the next one have begun.
    if transaction.in_transaction() {
        owners.insert(transaction.database(), Owner { transaction, who });
    }
}

/// Removes the note, because the guard of the transaction is gone.
pub(crate) fn forget(transaction: &Target) {
    let mut owners = owners();
    let database = transaction.database();
    if owners.get(&database).is_some_and(|owner| owner.transaction.is_same_transaction(transaction)) {
        let owner = owners.remove(&database);
        drop(owners);
        drop(owner);
    }
}

/// Returns true if the database has a transaction open that waits for the code which runs now.
pub(crate) fn is_inside(py: Python<'_>, database: usize) -> PyResult<bool> {
    let owners = owners();
    let Some(owner) = owners.get(&database).filter(|owner| owner.transaction.in_transaction()) else {
        return Ok(false);
    };
    let who = owner.who.clone_ref(py);
    drop(owners);
    who.is_running(py)
}

/// Refuses to close a handle where the close would wait for the code which runs now. What others have open is theirs.
pub(crate) fn refuse_close(py: Python<'_>, handle: &Target) -> PyResult<()> {
    let is_its_own = owners().get(&handle.database()).is_some_and(|owner| owner.transaction.has_handle_of(handle));
    if !is_its_own || !is_inside(py, handle.database())? {
        return Ok(());
    }
    let hint = "end its block before";
    Err(refused(
        py,
        ErrorCode::CallsItself,
        "a close inside of a transaction's block would wait for the block",
        Some(hint),
    ))
}

impl Who {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Task(task) => Self::Task(task.clone_ref(py)),
            Self::Block(frame) => Self::Block(*frame),
        }
    }

    /// Returns true if it is the code which runs now.
    fn is_running(&self, py: Python<'_>) -> PyResult<bool> {
        match self {
            Self::Task(task) => {
                let owner = task.bind(py).upgrade();
                Ok(owner.is_some_and(|owner| current_task(py).is_ok_and(|task| task.is(&owner))))
            }
            Self::Block(frame) => {
                static IS_RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                IS_RUNNING.import(py, "flatwater._waiting.with_blocks", "is_running")?.call1((*frame,))?.extract()
            }
        }
    }
}

/// The task that runs now, or `None`. Without a loop, as on a plain thread, it raises.
fn current_task(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FUNCTION.import(py, "asyncio", "current_task")?.call0()
}
