//! The write-ahead log seen from outside: the wal-index header.
//!
//! Owns: reading the shared-memory header through SQLite's own mapping, so that no descriptor on the `-shm` file is ever
//! opened (closing one would drop all POSIX locks of the process, <https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_>).
//! Leaves out: when to look.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::ffi;

use crate::connection::Connection;

/// One copy of the wal-index header (<https://sqlite.org/walformat.html#the_wal_index_header>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalHeader {
    /// Goes up by one with every commit and survives a restart of the WAL; only a recovery sets it back.
    pub change: u32,
    /// The number of valid frames in the WAL.
    pub max_frame: u32,
    /// The WAL's two salts, changed at each restart.
    pub salts: [u32; 2],
    /// Frames of it that are copied into the database.
    pub copied: u32,
    /// The page size in bytes.
    pub page_bytes: u32,
}

const REGION_BYTES: c_int = 32 * 1024;
const CHANGE: usize = 8;
const MAX_FRAME: usize = 16;
const SALT_1: usize = 32;
const SALT_2: usize = 36;
/// The page size is the upper half of the word before, in the machine's order.
const PAGE: usize = 12;
const COPIED: usize = 96;

/// Out of the word whose last two bytes are the page size, where 1 stands for 65,536.
fn page_bytes(word: u32) -> u32 {
    let [_, _, low, high] = word.to_ne_bytes();
    match u32::from(u16::from_ne_bytes([low, high])) {
        1 => 65_536,
        bytes => bytes,
    }
}

impl Connection {
    /// The wal-index header as it is published now, or `None` for a database that is not in WAL mode or whose header
    /// is not mapped. Makes no system call once mapped. Call it only after the connection has read the database.
    #[must_use]
    pub fn wal_header(&self) -> Option<WalHeader> {
        let base = self.wal_index()?;
        let load = |offset: usize| {
            // SAFETY: the mapping is REGION_BYTES long and page-aligned, the offsets are multiples of 4, and other
            // processes write these words: hence atomic loads.
            unsafe { AtomicU32::from_ptr(base.cast::<u8>().add(offset).cast()) }.load(Ordering::Acquire)
        };
        Some(WalHeader {
            change: load(CHANGE),
            max_frame: load(MAX_FRAME),
            salts: [load(SALT_1), load(SALT_2)],
            copied: load(COPIED),
            page_bytes: page_bytes(load(PAGE)),
        })
    }

    /// Where the wal-index is mapped, for finding it among the mappings of the process. Only a number: it says nothing
    /// of how long the mapping stays.
    #[must_use]
    pub fn wal_index_address(&self) -> Option<usize> {
        self.wal_index().map(|base| base.addr())
    }

    /// SQLite's mapping of the first wal-index region. Asked anew each time: it stays valid until this connection
    /// leaves WAL mode or closes, and so outlives the call.
    fn wal_index(&self) -> Option<*mut c_void> {
        if !self.in_wal_mode() {
            return None;
        }
        let mut file: *mut ffi::sqlite3_file = std::ptr::null_mut();
        // SAFETY: the connection is open; FILE_POINTER stores a pointer that lives as long as it does
        // (https://sqlite.org/c3ref/c_fcntl_begin_atomic_write.html#sqlitefcntlfilepointer), and xShmMap without
        // extension only answers a region that exists.
        unsafe {
            let rc = ffi::sqlite3_file_control(
                self.raw(),
                c"main".as_ptr(),
                ffi::SQLITE_FCNTL_FILE_POINTER,
                (&raw mut file).cast(),
            );
            let methods = file.as_ref()?.pMethods.as_ref()?;
            if rc != ffi::SQLITE_OK || methods.iVersion < 2 {
                return None;
            }
            let mut base: *mut c_void = std::ptr::null_mut();
            let rc = methods.xShmMap?(file, 0, REGION_BYTES, 0, (&raw mut base).cast());
            (rc & 0xff == ffi::SQLITE_OK && !base.is_null()).then_some(base)
        }
    }
}
