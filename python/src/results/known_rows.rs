//! The rows of a live query that a program holds, so that a row that did not change stays the same object.
//!
//! Owns: finding the object of a row with the same columns and values. Runs on the thread that touches the row.
//! Invariant: it keeps no row alive; who dropped a row has nothing to compare the next one with. Leaves out: results
//! that are read once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use flatwater::bindings::cell;
use flatwater::{Rows, ValueRef};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

/// An object that is a row.
pub(crate) trait RowObject: PyClass<Frozen = True> + Sync {
    /// The result that it is of, and its number there.
    fn place(&self) -> (&Rows, usize);
}

/// The rows that are held, by a hash of their values. Rows that are gone take no place beside the next one of the same
/// values, nor more than as many places as those that are held.
#[derive(Clone, Default)]
pub(crate) struct KnownRows(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    rows: HashMap<u64, Vec<Py<PyWeakrefReference>>>,
    /// When there are this many, those that are gone are removed.
    limit: usize,
}

const FEW: usize = 64;

impl KnownRows {
    /// Returns the object that is held for such a row, or `new`, which is known from now on.
    pub(crate) fn same_or<'py, R: RowObject>(&self, new: Bound<'py, R>) -> PyResult<Bound<'py, R>> {
        let py = new.py();
        let hash = hash(new.get().place());
        // Copied, because what a weak reference does may run code of the program.
        let held = {
            let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            table.rows.get(&hash).map(|all| all.iter().map(|one| one.clone_ref(py)).collect::<Vec<_>>())
        };
        for one in held.into_iter().flatten() {
            if let Some(row) = one.bind(py).upgrade()
                && let Ok(row) = row.cast_into::<R>()
                && are_same(row.get().place(), new.get().place())
            {
                return Ok(row);
            }
        }
        let weak = PyWeakrefReference::new(new.as_any())?.unbind();
        let gone = self.0.lock().unwrap_or_else(PoisonError::into_inner).add(py, hash, weak);
        drop(gone);
        Ok(new)
    }
}

impl Table {
    /// Adds a row. Returns the references to rows that are gone: those with the same hash, and all if it was time to look
    /// for them.
    fn add(&mut self, py: Python<'_>, hash: u64, weak: Py<PyWeakrefReference>) -> Vec<Py<PyWeakrefReference>> {
        let is_gone = |one: &mut Py<PyWeakrefReference>| one.bind(py).upgrade().is_none();
        let alike = self.rows.entry(hash).or_default();
        let mut gone: Vec<_> = alike.extract_if(.., is_gone).collect();
        alike.push(weak);
        if self.rows.len() > self.limit.max(FEW) {
            for all in self.rows.values_mut() {
                gone.extend(all.extract_if(.., is_gone));
            }
            self.rows.retain(|_, all| !all.is_empty());
            self.limit = self.rows.len() * 2;
        }
        gone
    }
}

fn values((rows, index): (&Rows, usize)) -> impl Iterator<Item = ValueRef<'_>> {
    (0..rows.columns().len()).map(move |column| cell(rows, index, column))
}

fn hash(row: (&Rows, usize)) -> u64 {
    let mut hasher = DefaultHasher::new();
    for value in values(row) {
        match value {
            ValueRef::Null => 0_u8.hash(&mut hasher),
            ValueRef::Integer(value) => value.hash(&mut hasher),
            ValueRef::Real(value) => value.to_bits().hash(&mut hasher),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn are_same(a: (&Rows, usize), b: (&Rows, usize)) -> bool {
    let same = |(a, b): (ValueRef<'_>, ValueRef<'_>)| match (a, b) {
        // Minus zero is another value.
        (ValueRef::Real(a), ValueRef::Real(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    };
    a.0.columns().eq(b.0.columns()) && values(a).zip(values(b)).all(same)
}
