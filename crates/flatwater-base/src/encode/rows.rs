//! The sink that collects rows in a flat block: all of a result, or a part of it.
//!
//! Owns: the block while it grows. Runs inside the step loop, on the thread that runs the statement. Invariant: the
//! block contains only whole rows when it leaves the sink, and takes no more memory than there is room, but for one value of
//! a row. Leaves out: reading the block, which `values::row` does; the error of a result that is too large.

use flatwater_sqlite::{Flow, Sink};

use super::Room;
use crate::values::block::Block;
use crate::values::column::Names;
use crate::values::row::Rows;

/// The first batch ends after this many rows.
const FIRST_ROWS: usize = 1024;
/// A later batch ends after the row with which it has this many cells: 512 KiB of them.
const BATCH_CELLS: usize = 32_768;
/// A batch ends after the row with which it has this many bytes of texts and blobs.
const BATCH_BYTES: usize = 256 << 10;

/// Collects rows.
pub struct RowSink {
    block: Block,
    rows_left: usize,
    /// It stops after the row with which it has this many bytes of texts and blobs.
    most_bytes: usize,
    room: Room,
    /// There was no room for it. Of the block only its emptiness is sure.
    is_over: bool,
}

impl RowSink {
    /// Creates a sink with capacity for a result of this many cells and bytes. It stops after `limit` rows.
    pub fn new((cells, bytes): (usize, usize), limit: usize, room: Room) -> Self {
        let block = Block::with_room(cells, bytes);
        Self { block, rows_left: limit, most_bytes: usize::MAX, room, is_over: false }
    }

    /// Creates a sink for a part of a result: rows of so many columns.
    pub fn of_batch(columns: usize, is_first: bool, bytes: usize) -> Self {
        let rows = if is_first { FIRST_ROWS } else { (BATCH_CELLS / columns.max(1)).clamp(1, BATCH_CELLS) };
        // Most results are short.
        let expected = if is_first { rows / 16 } else { rows };
        let room = Room { bytes, runs_to_end: false };
        Self { most_bytes: BATCH_BYTES, ..Self::new((expected * columns, 0), rows, room) }
    }

    /// Creates a sink for as many rows of so many columns as have this many cells, of which so many are expected.
    pub fn of_part(columns: usize, cells: usize, expected: usize, bytes: usize) -> Self {
        let room = Room { bytes, runs_to_end: false };
        let rows = (cells / columns.max(1)).max(1);
        Self { most_bytes: BATCH_BYTES, ..Self::new((cells.min(expected), 0), rows, room) }
    }

    /// Returns true if the result has more bytes than there was room for. Then it has no rows.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns true if there is room for the value, or notes that there is none.
    #[inline]
    fn has_room(&mut self, value: &[u8]) -> bool {
        // Of two lengths in memory the sum does not overflow.
        let fits = self.block.size() + value.len() <= self.room.bytes;
        if !fits {
            self.is_over = true;
        }
        fits
    }

    #[cold]
    fn drop_rows(&mut self) -> Flow {
        self.is_over = true;
        self.block = Block::default();
        if self.room.runs_to_end { Flow::Continue } else { Flow::Stop }
    }

    /// Returns the number of cells and bytes of the result.
    pub fn size(&self) -> (usize, usize) {
        (self.block.cells(), self.block.bytes())
    }

    /// Returns how many more rows the sink accepts.
    pub fn rows_left(&self) -> usize {
        self.rows_left
    }

    /// Returns the rows, with the names of their columns.
    pub fn finish(self, names: Names) -> Rows {
        Rows { names, block: self.block }
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
        if self.has_room(value) {
            self.block.text(value);
        }
    }

    #[inline]
    fn blob(&mut self, value: &[u8]) {
        if self.has_room(value) {
            self.block.blob(value);
        }
    }

    #[inline]
    fn row_done(&mut self) -> Flow {
        if self.is_over || self.block.size() > self.room.bytes {
            return self.drop_rows();
        }
        self.rows_left -= 1;
        if self.rows_left == 0 || self.block.bytes() >= self.most_bytes { Flow::Stop } else { Flow::Continue }
    }
}
