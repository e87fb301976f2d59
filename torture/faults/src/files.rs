//! Maps descriptors and paths to the files of the database.
//!
//! Each file has a number, which is the number of its bit in a plan: 0 to 3 are `main.db`, its `-wal`, `-shm` and
//! `-journal`, 4 to 7 those of `other.db`, 8 is the directory, 9 the process itself, which starts threads. The program has its own table of these numbers in
//! `plan.rs` of the act.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicU8, Ordering};

pub(crate) const DIRECTORY: u8 = 8;
pub(crate) const PROCESS: u8 = 9;
const ENDS: [&[u8]; 4] = [b"", b"-wal", b"-shm", b"-journal"];
const DATABASES: [&[u8]; 2] = [b"main.db", b"other.db"];
const DESCRIPTORS: usize = 4096;

/// For each descriptor, the number of its file plus one, or zero.
static OPEN: [AtomicU8; DESCRIPTORS] = [const { AtomicU8::new(0) }; DESCRIPTORS];

/// Returns the file of a path. Paths of the database's files are absolute.
pub(crate) fn of_path(path: &CStr) -> Option<u8> {
    let rest = path.to_bytes().strip_prefix(directory()?)?;
    if rest.is_empty() {
        return Some(DIRECTORY);
    }
    let name = rest.strip_prefix(b"/")?;
    let number = |database: usize| {
        let end = name.strip_prefix(DATABASES[database])?;
        let end = ENDS.iter().position(|known| *known == end)?;
        u8::try_from(database * ENDS.len() + end).ok()
    };
    number(0).or_else(|| number(1))
}

pub(crate) fn of_descriptor(fd: c_int) -> Option<u8> {
    slot(fd)?.load(Ordering::Relaxed).checked_sub(1)
}

/// Records that the descriptor refers to this file from now on.
pub(crate) fn opened(fd: c_int, file: Option<u8>) {
    if let Some(slot) = slot(fd) {
        slot.store(file.map_or(0, |file| file + 1), Ordering::Relaxed);
    }
}

fn slot(fd: c_int) -> Option<&'static AtomicU8> {
    usize::try_from(fd).ok().and_then(|fd| OPEN.get(fd))
}

fn directory() -> Option<&'static [u8]> {
    // SAFETY: the name ends with a NUL.
    let value: *const c_char = unsafe { libc::getenv(c"FLATWATER_TORTURE_FAULTS".as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a value of the environment ends with a NUL; the program that uses this library never changes its
    // environment.
    Some(unsafe { CStr::from_ptr(value) }.to_bytes())
}
