//! The header of the wal-index (<https://sqlite.org/walformat.html#the_wal_index_file_format>).
//!
//! Owns: reading it from the file. Pure, but for that. Invariant: a header that is just being written is read again, since its two copies
//! differ. Leaves out: the index behind it.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::path::Path;

use super::locks::Held;

/// The bytes whose locks say who writes, and who copies the WAL into the database.
pub(super) const WRITE: u64 = 120;
pub(super) const CHECKPOINT: u64 = 121;
/// The first of five bytes whose locks say who reads up to a mark.
const READ: u64 = 123;
const MARKS: usize = 5;

const COPY: usize = 48;
const LENGTH: usize = 136;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct WalIndex {
    pub(super) page_bytes: u32,
    /// The number of the last frame.
    pub(super) frames: u32,
    /// How many frames are copied into the database.
    pub(super) copied: u32,
    pub(super) marks: [u32; MARKS],
}

impl WalIndex {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let mut bytes = [0; LENGTH];
        for _ in 0..100 {
            match File::open(path).and_then(|mut file| file.read_exact(&mut bytes)) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(Error::other("no process has it open in WAL mode"));
                }
                read => read?,
            }
            if let Some(index) = parse(&bytes) {
                return Ok(index);
            }
            std::thread::yield_now();
        }
        Err(Error::other("the wal-index is not whole"))
    }

    /// Returns the mark of a reader's lock; `None` for another lock.
    pub(super) fn mark_of_lock(&self, lock: &Held) -> Option<u32> {
        let slot = (0..MARKS).find(|slot| lock.covers(READ + *slot as u64))?;
        (!lock.is_write).then(|| if slot == 0 { 0 } else { self.marks[slot] })
    }
}

fn parse(bytes: &[u8; LENGTH]) -> Option<WalIndex> {
    let number = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let page = u16::from_ne_bytes([bytes[14], bytes[15]]);
    (bytes[..COPY] == bytes[COPY..2 * COPY]).then(|| WalIndex {
        // As in `walIndexPage`: 65,536 has its highest bit in the lowest place.
        page_bytes: (u32::from(page) & 0xfe00) + ((u32::from(page) & 1) << 16),
        frames: number(16),
        copied: number(96),
        marks: std::array::from_fn(|slot| number(100 + 4 * slot)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_when_its_copies_agree() {
        let mut bytes = [0; LENGTH];
        for copy in [0, COPY] {
            bytes[copy + 14..copy + 16].copy_from_slice(&4096_u16.to_ne_bytes());
            bytes[copy + 16..copy + 20].copy_from_slice(&7_u32.to_ne_bytes());
        }
        bytes[96..100].copy_from_slice(&3_u32.to_ne_bytes());
        bytes[104..108].copy_from_slice(&5_u32.to_ne_bytes());
        let index = WalIndex { page_bytes: 4096, frames: 7, copied: 3, marks: [0, 5, 0, 0, 0] };
        assert_eq!(parse(&bytes), Some(index));
        let lock = |from, to, is_write| Held { process: Some(1), is_write, from, to };
        assert_eq!(index.mark_of_lock(&lock(124, 124, false)), Some(5));
        assert_eq!(index.mark_of_lock(&lock(123, 123, false)), Some(0));
        assert_eq!(index.mark_of_lock(&lock(124, 124, true)), None);
        assert_eq!(index.mark_of_lock(&lock(128, 128, false)), None);
        bytes[0] = 1;
        assert_eq!(parse(&bytes), None);
    }
}
