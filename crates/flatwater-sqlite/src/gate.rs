//! Reads of a file that come too late: a statement that must not hold its thread up ends before the next page that it
//! would have to read, for nobody is asked while a page is read.
//!
//! Owns: a read in front of SQLite's own, in the methods of a connection's files, and the moment after which this thread
//! refuses one. Runs where a page is not in the cache. Invariants: a thread that set no moment reads as ever; only one
//! read is refused, so that SQLite can read what it needs to undo the statement. Leaves out: a file that is mapped into
//! memory, where a page fault reads.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::panic::catch_unwind;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rusqlite::ffi;

use crate::connection::Connection;
use crate::files::File;

thread_local! {
    static ENDS: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Reads since a moment was set.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, the first read of a file that this thread begins after a moment is refused: the statement fails with
/// SQLITE_INTERRUPT, and what it wrote is rolled back as after an interrupt
/// (<https://sqlite.org/c3ref/interrupt.html>). SQLite reads nothing once a commit is in the WAL.
#[derive(Debug)]
#[must_use]
pub struct LateReads(PhantomData<*const ()>);

impl LateReads {
    /// How many reads this thread was allowed since then.
    #[must_use]
    pub fn reads(&self) -> u32 {
        READS.get()
    }
}

impl Drop for LateReads {
    fn drop(&mut self) {
        ENDS.set(None);
    }
}

type Read = unsafe extern "C" fn(*mut ffi::sqlite3_file, *mut c_void, c_int, ffi::sqlite3_int64) -> c_int;

/// The methods of a file with our read, and the read that they had.
#[repr(C)]
struct Gated {
    methods: ffi::sqlite3_io_methods,
    read: Read,
    /// The address of the methods before.
    own: usize,
}

/// One for each file system layer that was met, for ever: files point to them.
static GATED: Mutex<Vec<&Gated>> = Mutex::new(Vec::new());

/// The layout of the methods that we know (<https://sqlite.org/c3ref/io_methods.html>).
const VERSION: c_int = 3;

impl Connection {
    /// Refuses one read of the database's file or the WAL that this thread begins after `end`. Does nothing in another
    /// journal mode.
    pub fn refuse_reads_after(&self, end: Instant) -> LateReads {
        if !self.mapping.is_gated() {
            self.gate_reads();
        }
        ENDS.set(Some(end));
        READS.set(0);
        LateReads(PhantomData)
    }

    fn gate_reads(&self) {
        let (Some(database), Some(wal)) = (self.file(File::Database), self.file(File::Wal)) else { return };
        for file in [database, wal] {
            // SAFETY: the file is open, and nobody else uses its connection.
            let methods = unsafe { &mut (*file).pMethods };
            // SAFETY: an open file's methods live as long as its file system layer, which is for ever.
            if let Some(gated) = unsafe { methods.as_ref() }.and_then(gated) {
                *methods = &raw const gated.methods;
            }
        }
        self.mapping.gated();
    }
}

/// The methods with the gate; `None` if they have it, or have another layout.
fn gated(own: &ffi::sqlite3_io_methods) -> Option<&'static Gated> {
    let mut all = GATED.lock().unwrap_or_else(PoisonError::into_inner);
    if own.iVersion != VERSION || all.iter().any(|gated| std::ptr::eq(&raw const gated.methods, own)) {
        return None;
    }
    let address = std::ptr::from_ref(own).addr();
    if let Some(gated) = all.iter().find(|gated| gated.own == address) {
        return Some(gated);
    }
    let methods = ffi::sqlite3_io_methods { xRead: Some(read), ..*own };
    let gated: &'static Gated = Box::leak(Box::new(Gated { methods, read: own.xRead?, own: address }));
    all.push(gated);
    Some(gated)
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    data: *mut c_void,
    bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    if catch_unwind(is_too_late).unwrap_or(false) {
        return ffi::SQLITE_INTERRUPT;
    }
    // SAFETY: SQLite calls this for files whose methods are the first field of a `Gated`, and for no others.
    let own = unsafe { (*(*file).pMethods.cast::<Gated>()).read };
    // SAFETY: the arguments of SQLite's call, for the method that it would have called.
    unsafe { own(file, data, bytes, offset) }
}

/// Answers true once.
fn is_too_late() -> bool {
    let is_late = ENDS.get().is_some_and(|end| Instant::now() > end);
    if is_late {
        ENDS.set(None);
    } else {
        READS.set(READS.get().wrapping_add(1));
    }
    is_late
}
