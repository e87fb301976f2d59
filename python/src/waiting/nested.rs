//! The nested transactions that a flow of the program is in: a task, or a thread.
//!
//! Owns: the list of them, outermost first, in a context variable, so that a task begins with those of the one that started
//! it. Runs with the interpreter's lock. Invariant: the list keeps no transaction. Leaves out: which of them a call belongs to,
//! which the engine decides (`place`).

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyWeakrefMethods, PyWeakrefReference};

use crate::capi::context_variable::ContextVariable;
use crate::handles::transaction::TransactionGuard;

/// A tuple of weak references to guards.
static NESTED: ContextVariable = ContextVariable::new(c"flatwater_nested");

/// The code that goes on from here is in this nested transaction.
pub(crate) fn enter(guard: &Bound<'_, TransactionGuard>) -> PyResult<()> {
    let py = guard.py();
    // Those that another context left are still there.
    let is_open = |one: &Bound<'_, PyAny>| guard_of(one).is_some_and(|guard| guard.get().in_transaction());
    let mut nested: Vec<_> = references(py)?.filter(is_open).collect();
    nested.push(PyWeakrefReference::new(guard)?.into_any());
    set(py, nested)
}

/// The code that goes on from here is in it no more.
pub(crate) fn leave(guard: &Bound<'_, TransactionGuard>) -> PyResult<()> {
    let py = guard.py();
    let is_this = |one: &Bound<'_, PyAny>| guard_of(one).is_some_and(|one| one.is(guard));
    let (left, nested): (Vec<_>, Vec<_>) = references(py)?.partition(is_this);
    if left.is_empty() { Ok(()) } else { set(py, nested) }
}

/// Calls `f` with those that this code is in, the innermost first, until it returns true.
pub(crate) fn find(py: Python<'_>, mut f: impl FnMut(&TransactionGuard) -> bool) -> PyResult<()> {
    let nested: Vec<_> = references(py)?.collect();
    nested.iter().rev().filter_map(guard_of).any(|guard| f(guard.get()));
    Ok(())
}

fn set<'py>(py: Python<'py>, nested: Vec<Bound<'py, PyAny>>) -> PyResult<()> {
    NESTED.set(PyTuple::new(py, nested)?.as_any())
}

fn references(py: Python<'_>) -> PyResult<impl Iterator<Item = Bound<'_, PyAny>>> {
    let nested = NESTED.get(py)?.map(|nested| nested.cast_into::<PyTuple>()).transpose()?;
    Ok(nested.into_iter().flatten())
}

fn guard_of<'py>(reference: &Bound<'py, PyAny>) -> Option<Bound<'py, TransactionGuard>> {
    reference.cast::<PyWeakrefReference>().ok()?.upgrade()?.cast_into().ok()
}
