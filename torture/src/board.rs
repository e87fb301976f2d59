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
pub(crate) const SLOTS: usize = 8;
/// A number and its complement, so that a partial write can be told from a complete one.
const CELL: usize = 16;
/// If a number is still torn after this many reads, its writer was killed during the write.
const LOOKS: usize = 100;
/// The number of cells of a slot.
const CELLS: usize = 8;

pub(crate) struct Board(File);

impl Board {
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        Ok(Self(options.read(true).write(true).create(true).truncate(false).open(directory.join("board"))?))
    }

    pub(crate) fn put(&self, slot: usize, cell: impl Into<usize>, number: i64) -> io::Result<()> {
        let mut bytes = [0; CELL];
        bytes[..8].copy_from_slice(&number.to_ne_bytes());
        bytes[8..].copy_from_slice(&(!number).to_ne_bytes());
        self.0.write_all_at(&bytes, at(slot, cell.into()))
    }

    /// Returns the number; 0 if none was stored.
    pub(crate) fn get(&self, slot: usize, cell: impl Into<usize>) -> io::Result<i64> {
        let (at, mut bytes) = (at(slot, cell.into()), [0; CELL]);
        for _ in 0..LOOKS {
            let length = self.0.read_at(&mut bytes, at)?;
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
    pub(crate) fn sum(&self, cell: impl Into<usize> + Copy) -> io::Result<u64> {
        (0..SLOTS).try_fold(0, |sum, slot| Ok(sum + self.get(slot, cell)?.unsigned_abs()))
    }

    /// Returns the highest number that any part stored.
    pub(crate) fn highest(&self, cell: impl Into<usize> + Copy) -> io::Result<i64> {
        (0..SLOTS).try_fold(0, |highest, slot| Ok(highest.max(self.get(slot, cell)?)))
    }
}

fn at(slot: usize, cell: usize) -> u64 {
    assert!(slot < SLOTS && cell < CELLS, "there are {SLOTS} slots with {CELLS} cells");
    ((slot * CELLS + cell) * CELL) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: usize = 0;
    const ENTRY: usize = 7;

    #[test]
    fn each_part_has_its_own_numbers_and_half_a_number_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let board = Board::open(directory.path()).unwrap();
        assert_eq!(board.highest(VALUE).unwrap(), 0);
        board.put(2, VALUE, 7).unwrap();
        board.put(1, VALUE, 9).unwrap();
        board.put(1, ENTRY, 30).unwrap();
        let again = Board::open(directory.path()).unwrap();
        assert_eq!((again.highest(VALUE).unwrap(), again.get(2, VALUE).unwrap()), (9, 7));
        board.0.write_all_at(&[1], at(1, VALUE)).unwrap();
        assert_eq!(again.highest(VALUE).unwrap(), 7);
    }
}
