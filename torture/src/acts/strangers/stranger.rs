//! A database as bytes: the file and the files beside it, before any process opens it.
//!
//! Owns: writing it to a directory, once for each side, and reading the files later. A damaged header can make SQLite
//! extend a file by terabytes of zeros, so the length of a file is checked before it is read.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Longer files are not read.
const LONGEST: u64 = 64 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stranger {
    pub(super) main: Vec<u8>,
    pub(super) wal: Option<Vec<u8>>,
    pub(super) journal: Option<Vec<u8>>,
    pub(super) shm: Option<Vec<u8>>,
}

impl Stranger {
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, &self.main)?;
        let files = [("-wal", &self.wal), ("-journal", &self.journal), ("-shm", &self.shm)];
        files.into_iter().try_for_each(|(end, bytes)| match bytes {
            Some(bytes) => fs::write(beside(path, end), bytes),
            None => Ok(()),
        })
    }

    /// Reads the files at `path`. Only when this process does not have the database open: closing a file releases the
    /// locks on it.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let there = |end| {
            let path = beside(path, end);
            if path.is_file() { bytes_of(&path).map(Some) } else { Ok(None) }
        };
        Ok(Self { main: bytes_of(path)?, wal: there("-wal")?, journal: there("-journal")?, shm: there("-shm")? })
    }

    /// Returns which persistent content differs. The first process that opens a database rebuilds `-shm`, so it does
    /// not count; an empty file beside the database is equivalent to a missing one.
    pub(super) fn differs_from(&self, other: &Self) -> Option<String> {
        let empty = Vec::new();
        let or_empty = |bytes: &Option<Vec<u8>>| bytes.clone().unwrap_or_else(|| empty.clone());
        let files = [
            ("the database file", self.main.clone(), other.main.clone()),
            ("the -wal", or_empty(&self.wal), or_empty(&other.wal)),
            ("the -journal", or_empty(&self.journal), or_empty(&other.journal)),
        ];
        files.into_iter().find(|(_, ours, theirs)| ours != theirs).map(|(name, ours, theirs)| {
            let at = ours.iter().zip(&theirs).position(|(a, b)| a != b).unwrap_or(ours.len().min(theirs.len()));
            format!("{name} differs from byte {at} on; {} and {} bytes long", ours.len(), theirs.len())
        })
    }

    pub(super) fn page_size(&self) -> usize {
        match be16(&self.main, 16) {
            1 => 65536,
            size if size >= 512 => usize::from(size),
            _ => 512,
        }
    }

    pub(super) fn pages(&self) -> usize {
        self.main.len() / self.page_size()
    }

    /// Returns the bytes of a page, numbered from 1.
    pub(super) fn page_mut(&mut self, number: usize) -> Option<&mut [u8]> {
        let size = self.page_size();
        self.main.get_mut((number.checked_sub(1)?) * size..number * size)
    }
}

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > LONGEST {
        return Err(io::Error::other(format!("{} is too long to be read", path.display())));
    }
    fs::read(path)
}

/// Returns the name of a file beside a database.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// Reads a big-endian number of two bytes; 0 beyond the end.
pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_be_bytes)
}

/// Reads a big-endian number of four bytes; 0 beyond the end.
pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Writes bytes at an offset, as far as there is room.
pub(super) fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    for (old, new) in bytes.iter_mut().skip(at).zip(new) {
        *old = *new;
    }
}
