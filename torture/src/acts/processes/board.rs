//! The results that all processes of a round share: a small file of numbers.
//!
//! Each part has its own cells, so no process modifies a cell that another process may write. A part stores a number
//! here *after* it got the result; another part reads it *before* it makes a call. The result of that call must then
//! include the number.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The maximum number of parts with cells.
pub(super) const SLOTS: usize = 8;
/// A number and its complement, so that a partial write can be told from a complete one.
const CELL: usize = 16;
/// If a number is still torn after this many reads, its writer was killed during the write.
const LOOKS: usize = 100;

/// The numbers of each part.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell {
    /// The highest value of the counter that the part received.
    Value,
    /// The last entry that was acknowledged to the part.
    Entry,
    /// The number of reads whose result was correct.
    Reads,
    /// The number of inline runs.
    Inline,
    /// The number of maintenance operations.
    Works,
    /// How often the journal mode was switched away from WAL.
    Switches,
}

/// The number of cells of a slot.
const CELLS: usize = 8;

pub(super) struct Board(File);

impl Board {
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        Ok(Self(options.read(true).write(true).create(true).truncate(false).open(directory.join("board"))?))
    }

    pub(super) fn put(&self, slot: usize, cell: Cell, number: i64) -> io::Result<()> {
        let mut bytes = [0; CELL];
        bytes[..8].copy_from_slice(&number.to_ne_bytes());
        bytes[8..].copy_from_slice(&(!number).to_ne_bytes());
        self.0.write_all_at(&bytes, at(slot, cell))
    }

    /// Returns the number; 0 if none was stored.
    pub(super) fn get(&self, slot: usize, cell: Cell) -> io::Result<i64> {
        let mut bytes = [0; CELL];
        for _ in 0..LOOKS {
            let length = self.0.read_at(&mut bytes, at(slot, cell))?;
            let half = |from: usize| i64::from_ne_bytes(bytes[from..from + 8].try_into().expect("eight bytes"));
            if length == CELL && half(0) == !half(8) {
                return Ok(half(0));
            }
            if length < CELL || bytes == [0; CELL] {
                return Ok(0);
            }
        }
        Ok(0)
    }

    /// Returns the sum over all parts.
    pub(super) fn sum(&self, cell: Cell) -> io::Result<u64> {
        (0..SLOTS).try_fold(0, |sum, slot| Ok(sum + self.get(slot, cell)?.unsigned_abs()))
    }

    /// Returns the highest value of the counter that any part received.
    pub(super) fn highest(&self) -> io::Result<i64> {
        (0..SLOTS).try_fold(0, |highest, slot| Ok(highest.max(self.get(slot, Cell::Value)?)))
    }
}

fn at(slot: usize, cell: Cell) -> u64 {
    assert!(slot < SLOTS, "there are {SLOTS} slots");
    ((slot * CELLS + cell as usize) * CELL) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_own_numbers_and_half_a_number_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let board = Board::open(directory.path()).unwrap();
        assert_eq!(board.highest().unwrap(), 0);
        board.put(2, Cell::Value, 7).unwrap();
        board.put(1, Cell::Value, 9).unwrap();
        board.put(1, Cell::Entry, 30).unwrap();
        let again = Board::open(directory.path()).unwrap();
        assert_eq!((again.highest().unwrap(), again.get(2, Cell::Value).unwrap()), (9, 7));
        board.0.write_all_at(&[1], at(1, Cell::Value)).unwrap();
        assert_eq!(again.highest().unwrap(), 7);
    }
}
