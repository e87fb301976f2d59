//! The sink that collects rows in a flat block.
//!
//! Owns: the block while it grows. Runs inside the step loop, on the thread that runs the statement. Invariant: the
//! block contains only whole rows when it leaves the sink. Leaves out: reading the block, which `values::row` does.

use flatwater_sqlite::{Flow, Sink};

use crate::values::block::Block;
use crate::values::column::Names;
use crate::values::row::Rows;

pub(crate) struct RowSink {
    block: Block,
    rows_left: usize,
}

impl RowSink {
    /// Creates a sink with capacity for a result of this many cells and bytes. It stops after `limit` rows.
    pub(crate) fn new((cells, bytes): (usize, usize), limit: usize) -> Self {
        Self { block: Block::with_room(cells, bytes), rows_left: limit }
    }

    /// Returns the number of cells and bytes of the result.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.block.cells(), self.block.bytes())
    }

    /// Returns how many more rows the sink accepts.
    pub(crate) fn rows_left(&self) -> usize {
        self.rows_left
    }

    pub(crate) fn finish(self, names: Names) -> Rows {
        Rows { names, block: self.block }
    }
}

/// The first batch ends after this many rows.
const FIRST_ROWS: usize = 1024;
/// A later batch ends after the row with which it has this many cells: 512 KiB of them.
const BATCH_CELLS: usize = 32_768;
/// A batch ends after the row with which it has this many bytes of texts and blobs.
const BATCH_BYTES: usize = 256 << 10;

/// The sink for a part of a result.
pub(crate) struct BatchSink(RowSink);

impl BatchSink {
    /// Creates a sink for rows of so many columns.
    pub(crate) fn new(columns: usize, is_first: bool) -> Self {
        let rows = if is_first { FIRST_ROWS } else { (BATCH_CELLS / columns.max(1)).clamp(1, BATCH_CELLS) };
        // Most results are short.
        let room = if is_first { rows / 16 } else { rows };
        Self(RowSink::new((room * columns, 0), rows))
    }

    /// Creates a sink for as many rows of so many columns as have this many cells, of which so many are expected.
    pub(crate) fn of_part(columns: usize, cells: usize, expected: usize) -> Self {
        Self(RowSink::new((cells.min(expected), 0), (cells / columns.max(1)).max(1)))
    }

    /// See [`RowSink::size`].
    pub(crate) fn size(&self) -> (usize, usize) {
        self.0.size()
    }

    pub(crate) fn finish(self, names: Names) -> Rows {
        self.0.finish(names)
    }
}

impl Sink for BatchSink {
    #[inline]
    fn null(&mut self) {
        self.0.null();
    }

    #[inline]
    fn integer(&mut self, value: i64) {
        self.0.integer(value);
    }

    #[inline]
    fn real(&mut self, value: f64) {
        self.0.real(value);
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.0.text(value);
    }

    #[inline]
    fn blob(&mut self, value: &[u8]) {
        self.0.blob(value);
    }

    #[inline]
    fn row_done(&mut self) -> Flow {
        if self.0.block.bytes() >= BATCH_BYTES { Flow::Stop } else { self.0.row_done() }
    }
}

impl Sink for RowSink {
    #[inline]
    fn null(&mut self) {
        self.block.null();
    }

    #[inline]
    fn integer(&mut self, value: i64) {
        self.block.integer(value);
    }

    #[inline]
    fn real(&mut self, value: f64) {
        self.block.real(value);
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.block.text(value);
    }

    #[inline]
    fn blob(&mut self, value: &[u8]) {
        self.block.blob(value);
    }

    #[inline]
    fn row_done(&mut self) -> Flow {
        self.rows_left -= 1;
        if self.rows_left == 0 { Flow::Stop } else { Flow::Continue }
    }
}
