//! The sink that fills a flat block of rows.
//!
//! Owns: the block while it grows. Runs inside the step loop. Invariant: only whole rows leave it. Leaves out: reading
//! the block, which is `types::row`.

use flatwater_sqlite::{Flow, Sink};

use crate::types::row::{Cell, Names, Rows};

pub(crate) struct RowSink {
    cells: Vec<Cell>,
    bytes: Vec<u8>,
    rows_left: usize,
}

impl RowSink {
    /// Sized for a result like the last ones. Stops after `limit` rows.
    pub(crate) fn new((cells, bytes): (usize, usize), limit: usize) -> Self {
        Self { cells: Vec::with_capacity(cells), bytes: Vec::with_capacity(bytes), rows_left: limit }
    }

    /// Cells and bytes of the result.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.cells.len(), self.bytes.len())
    }

    /// How many more rows it takes.
    pub(crate) fn rows_left(&self) -> usize {
        self.rows_left
    }

    pub(crate) fn finish(self, names: Names) -> Rows {
        Rows { names, cells: self.cells, bytes: self.bytes }
    }

    #[inline]
    fn store(&mut self, value: &[u8]) -> (u64, u32) {
        let start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(value);
        // SQLite's values are shorter than 2 GiB (https://sqlite.org/limits.html).
        (start, u32::try_from(value.len()).unwrap_or(u32::MAX))
    }
}

impl Sink for RowSink {
    #[inline]
    fn null(&mut self) {
        self.cells.push(Cell::Null);
    }

    #[inline]
    fn integer(&mut self, value: i64) {
        self.cells.push(Cell::Integer(value));
    }

    #[inline]
    fn real(&mut self, value: f64) {
        self.cells.push(Cell::Real(value));
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        let (start, length) = self.store(value);
        self.cells.push(Cell::Text { start, length });
    }

    #[inline]
    fn blob(&mut self, value: &[u8]) {
        let (start, length) = self.store(value);
        self.cells.push(Cell::Blob { start, length });
    }

    #[inline]
    fn row_done(&mut self) -> Flow {
        self.rows_left -= 1;
        if self.rows_left == 0 { Flow::Stop } else { Flow::Continue }
    }
}
