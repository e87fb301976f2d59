//! A result by columns: their names and their values.
//!
//! Owns: the memory, which any thread may read when it is complete, and give back. Invariants: no object of Python is referred
//! to; the chunks of all columns end at the same rows. Leaves out: how it is made (`columns`), the type of a column (`column`).

use flatwater::bindings::dispose;

use crate::results::column::Column;

/// A table that takes more memory than this is dropped on another thread.
const LARGE: usize = 4 << 20;

/// The columns of a result.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) names: Vec<String>,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: usize,
}

impl Drop for Table {
    /// Giving large memory back to the system takes long, and the thread may run an event loop.
    fn drop(&mut self) {
        if self.columns.iter().map(Column::bytes).sum::<usize>() > LARGE {
            dispose(std::mem::take(&mut self.columns));
        }
    }
}
