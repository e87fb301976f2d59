//! A block: the cells of rows, one after the other, and the bytes of their texts and blobs in one buffer. And the
//! blocks in which the rows of an earlier call were, for those of a later one.
//!
//! Owns: the form that results and the parameters of many rows have in common, and a few spare ones for the whole
//! process. Runs on any thread. Invariants: every text and blob cell points into the bytes; spare blocks take no more
//! than `MOST_BYTES`, and one that is taken is empty; their lock is held to move blocks and for nothing else. Leaves
//! out: the number of columns; results, which the program keeps for as long as it wants.
//!
//! Rows are collected on the caller's thread and dropped on the writer's. An allocator gives memory like that back to
//! the system, and the next call maps it anew, with a page fault for every 4 KiB.

use std::ops::Range;

use flatwater_sqlite::PerProcess;
use rusqlite::types::ValueRef;

use crate::thread::background::dispose;

/// One value, 16 bytes; the bytes of texts and blobs are in the block's buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A floating point number.
    Real(f64),
    /// A text in the buffer.
    Text {
        /// Where it begins.
        start: u64,
        /// Its bytes.
        length: u32,
    },
    /// A blob in the buffer.
    Blob {
        /// Where it begins.
        start: u64,
        /// Its bytes.
        length: u32,
    },
}

/// A result that takes more memory than this is dropped on another thread.
pub const LARGE: usize = 4 << 20;

/// The values of some rows, one after the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    cells: Vec<Cell>,
    bytes: Vec<u8>,
}

impl Block {
    /// Creates an empty block with capacity for so many cells and bytes.
    pub fn with_room(cells: usize, bytes: usize) -> Self {
        Self { cells: Vec::with_capacity(cells), bytes: Vec::with_capacity(bytes) }
    }

    /// Removes all cells, and keeps the memory.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
    }

    /// The memory that it takes.
    pub(super) fn capacity_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>() + self.bytes.capacity()
    }

    /// The memory that its cells and bytes take, without what is only reserved.
    #[inline]
    pub fn size(&self) -> usize {
        self.cells.len() * size_of::<Cell>() + self.bytes.len()
    }

    /// The number of cells.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }

    /// The number of bytes of all texts and blobs.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends NULL.
    #[inline]
    pub fn null(&mut self) {
        self.cells.push(Cell::Null);
    }

    /// Appends an integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.cells.push(Cell::Integer(value));
    }

    /// Appends a floating point number.
    #[inline]
    pub fn real(&mut self, value: f64) {
        self.cells.push(Cell::Real(value));
    }

    /// Appends a text.
    #[inline]
    pub fn text(&mut self, value: &[u8]) {
        let (start, length) = self.store(value);
        self.cells.push(Cell::Text { start, length });
    }

    /// Appends a blob.
    #[inline]
    pub fn blob(&mut self, value: &[u8]) {
        let (start, length) = self.store(value);
        self.cells.push(Cell::Blob { start, length });
    }

    /// Appends a value.
    pub fn push(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.null(),
            ValueRef::Integer(value) => self.integer(value),
            ValueRef::Real(value) => self.real(value),
            ValueRef::Text(value) => self.text(value),
            ValueRef::Blob(value) => self.blob(value),
        }
    }

    #[inline]
    fn store(&mut self, value: &[u8]) -> (u64, u32) {
        let start = self.bytes.len() as u64;
        self.bytes.extend_from_slice(value);
        // SQLite's values are shorter than 2 GiB, and it refuses a longer one (https://sqlite.org/limits.html).
        (start, u32::try_from(value.len()).unwrap_or(u32::MAX))
    }

    /// The value of the cell at `index`.
    #[inline]
    pub fn value(&self, index: usize) -> ValueRef<'_> {
        self.read(self.cells[index])
    }

    /// The values of these cells.
    #[inline]
    pub fn values(&self, cells: Range<usize>) -> impl ExactSizeIterator<Item = ValueRef<'_>> {
        self.cells[cells].iter().map(|cell| self.read(*cell))
    }

    #[inline]
    fn read(&self, cell: Cell) -> ValueRef<'_> {
        let slice = |start: u64, length: u32| {
            let start = usize::try_from(start).unwrap_or(usize::MAX);
            &self.bytes[start..start + length as usize]
        };
        match cell {
            Cell::Null => ValueRef::Null,
            Cell::Integer(value) => ValueRef::Integer(value),
            Cell::Real(value) => ValueRef::Real(value),
            Cell::Text { start, length } => ValueRef::Text(slice(start, length)),
            Cell::Blob { start, length } => ValueRef::Blob(slice(start, length)),
        }
    }
}

impl Drop for Block {
    /// Giving large memory back to the system takes long, and the thread may run an event loop, or hold the writer.
    fn drop(&mut self) {
        if self.capacity_bytes() > LARGE {
            dispose((std::mem::take(&mut self.cells), std::mem::take(&mut self.bytes)));
        }
    }
}

/// All of them together take no more memory than this.
const MOST_BYTES: usize = 4 << 20;
/// One that takes less is allocated as quickly; one that takes more was for long values.
const SIZES: std::ops::RangeInclusive<usize> = 32 << 10..=512 << 10;

#[derive(Default)]
struct Spare {
    blocks: Vec<Block>,
    bytes: usize,
}

static SPARE: PerProcess<Spare> = PerProcess::new(Spare::default);

/// Returns an empty block that has memory, if there is one.
pub(super) fn take_spare() -> Option<Block> {
    let mut spare = SPARE.lock();
    let block = spare.blocks.pop()?;
    spare.bytes -= block.capacity_bytes();
    Some(block)
}

/// Keeps the memory of these blocks, or of some.
pub(super) fn keep_spare(blocks: impl Iterator<Item = Block>) {
    let (kept, mut dropped): (Vec<_>, Vec<_>) = blocks.partition(|block| SIZES.contains(&block.capacity_bytes()));
    let mut spare = SPARE.lock();
    for mut block in kept {
        let bytes = spare.bytes + block.capacity_bytes();
        if bytes <= MOST_BYTES {
            block.clear();
            spare.bytes = bytes;
            spare.blocks.push(block);
        } else {
            dropped.push(block);
        }
    }
    // The others are freed without the lock.
    drop(spare);
    drop(dropped);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were_pushed() {
        let values = [
            ValueRef::Text(b"Ada"),
            ValueRef::Null,
            ValueRef::Integer(-1),
            ValueRef::Blob(b""),
            ValueRef::Real(0.5),
            ValueRef::Blob(b"\0\xff"),
        ];
        let mut block = Block::with_room(1, 1);
        values.into_iter().for_each(|value| block.push(value));
        assert_eq!((0..block.cells()).map(|cell| block.value(cell)).collect::<Vec<_>>(), values);
        assert_eq!(block.values(1..4).collect::<Vec<_>>(), values[1..4]);
        assert_eq!((block.cells(), block.bytes()), (6, 5));
    }

    #[test]
    fn a_cell_is_16_bytes() {
        assert_eq!(size_of::<Cell>(), 16);
    }

    #[test]
    fn what_is_taken_is_empty_and_no_more_is_kept_than_the_limit() {
        let block = |cells| {
            let mut block = Block::with_room(cells, 0);
            block.integer(7);
            block
        };
        // Other tests take and keep blocks too.
        for _ in 0..3 {
            keep_spare((0..1_000).map(|_| block(4_096)));
            let spare = SPARE.lock();
            assert!(spare.bytes <= MOST_BYTES && spare.blocks.len() <= MOST_BYTES >> 15);
            drop(spare);
            if let Some(taken) = take_spare() {
                assert_eq!((taken.cells(), taken.bytes()), (0, 0));
            }
        }
        keep_spare([block(1), block(1 << 20)].into_iter());
        assert!(SPARE.lock().blocks.iter().all(|block| SIZES.contains(&block.capacity_bytes())));
    }
}
