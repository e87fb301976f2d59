//! Reads of a file that come too late: a statement that must not hold its thread up ends before the next page that it
//! would have to read, for nobody is asked while a page is read.
//!
//! Owns: a read in front of SQLite's own, in the methods of a connection's files, and the moment after which this thread
//! refuses one. Runs where a page is not in the cache. Invariants: a thread that set no moment reads as ever; one read is
//! refused and no more. Leaves out: a file that is mapped into memory, where a page fault reads; a file system layer that
//! is not SQLite's own.
//!
//! The read that is refused may be one that SQLite makes to roll back after another failure. A rollback that fails with
//! an I/O error makes SQLite drop its cache; one that is interrupted leaves pages in it that were never committed. So
//! whoever writes asks for the first, and whoever learns that a read was refused while the statement failed for another
//! reason does not use the connection again.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::panic::catch_unwind;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rusqlite::ffi;

use crate::connection::Connection;
use crate::failures;
use crate::files::File;

/// How a read is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// With SQLITE_INTERRUPT, after which SQLite keeps an open transaction if the statement only reads
    /// (<https://sqlite.org/c3ref/interrupt.html>).
    Interrupt,
    /// With SQLITE_IOERR, after which SQLite rolls the transaction back.
    Failure,
}

/// Marks the extended result code of a refusal. SQLite has no such code.
const MARK: c_int = 0x7f << 8;

/// Whether a statement failed because a read was refused.
#[must_use]
pub fn is_refusal(extended_code: c_int) -> bool {
    extended_code & !0xff == MARK
}

/// The files of a connection, which have the gate.
pub(crate) type Files = [*mut ffi::sqlite3_file; 2];

/// Until when which files may be read, and what became of it. Of this thread.
struct Gate {
    /// Null while nothing is refused.
    files: Cell<Files>,
    end: Cell<Option<Instant>>,
    refusal: Cell<Refusal>,
    has_read: Cell<bool>,
    has_refused: Cell<bool>,
}

const NO_FILES: Files = [ptr::null_mut(); 2];

thread_local! {
    static GATE: Gate = const {
        Gate {
            files: Cell::new(NO_FILES),
            end: Cell::new(None),
            refusal: Cell::new(Refusal::Interrupt),
            has_read: Cell::new(false),
            has_refused: Cell::new(false),
        }
    };
}

/// While it lives, the first read of the connection's files that this thread begins after a moment is refused. A thread
/// has one at a time.
#[must_use]
pub struct LateReads(PhantomData<*const ()>);

impl LateReads {
    /// Whether a page was read from a file.
    #[must_use]
    pub fn has_read(&self) -> bool {
        GATE.with(|gate| gate.has_read.get())
    }

    /// Whether a read was refused.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        GATE.with(|gate| gate.has_refused.get())
    }
}

impl Drop for LateReads {
    fn drop(&mut self) {
        GATE.with(|gate| gate.files.set(NO_FILES));
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

/// One for each table of methods that was met, for ever: files point to them.
static GATED: Mutex<Vec<&Gated>> = Mutex::new(Vec::new());

/// The layout of the methods that we know (<https://sqlite.org/c3ref/io_methods.html>).
const VERSION: c_int = 3;

/// SQLite's own layers, whose tables of methods are static. Others may make one for each file.
const LAYERS: [&CStr; 4] = [c"unix", c"unix-excl", c"win32", c"win32-longpath"];

impl Connection {
    /// Refuses one read of the database's file or the WAL that this thread begins after `end`. Does nothing for files
    /// that cannot have the gate.
    pub fn refuse_reads_after(&self, end: Instant, refusal: Refusal) -> LateReads {
        let files = self.mapping.files().or_else(|| self.gate_reads());
        GATE.with(|gate| {
            gate.files.set(files.unwrap_or(NO_FILES));
            gate.end.set(Some(end));
            gate.refusal.set(refusal);
            gate.has_read.set(false);
            gate.has_refused.set(false);
        });
        LateReads(PhantomData)
    }

    /// Puts the gate before the reads of the files, which stay the same for as long as the connection is in WAL mode.
    pub(crate) fn gate_reads(&self) -> Option<Files> {
        let files = [self.file(File::Database)?, self.file(File::Wal)?];
        if self.has_own_layer() {
            for file in files {
                // SAFETY: the file is open and one of SQLite's own layers, and nobody else uses its connection.
                unsafe { put_before(file) };
            }
        }
        self.mapping.gated(files);
        Some(files)
    }

    /// Whether the files are those of a layer that SQLite brings along.
    pub(crate) fn has_own_layer(&self) -> bool {
        let mut layer: *mut ffi::sqlite3_vfs = ptr::null_mut();
        // SAFETY: the connection is open, and the control stores the address of a layer, which is never freed while files
        // of it are open; its name is a C string.
        unsafe {
            let control = ffi::SQLITE_FCNTL_VFS_POINTER;
            ffi::sqlite3_file_control(self.raw(), c"main".as_ptr(), control, (&raw mut layer).cast());
            layer.as_ref().is_some_and(|layer| LAYERS.contains(&CStr::from_ptr(layer.zName)))
        }
    }
}

/// Puts the gate before the reads of one file.
///
/// # Safety
/// The file is open, of one of SQLite's own layers, and nobody else uses its connection.
pub(crate) unsafe fn put_before(file: *mut ffi::sqlite3_file) {
    // SAFETY: as the caller promises.
    let methods = unsafe { &mut (*file).pMethods };
    // SAFETY: the methods of an open file of SQLite's own layers are static.
    if let Some(gated) = unsafe { methods.as_ref() }.and_then(gated) {
        *methods = &raw const gated.methods;
    }
}

/// The methods with the gate; `None` if they have it, or have another layout.
fn gated(own: &ffi::sqlite3_io_methods) -> Option<&'static Gated> {
    let mut all = GATED.lock().unwrap_or_else(PoisonError::into_inner);
    if own.iVersion != VERSION || all.iter().any(|gated| ptr::eq(&raw const gated.methods, own)) {
        return None;
    }
    let address = ptr::from_ref(own).addr();
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
    if let Ok(Some(code)) = catch_unwind(|| refused(file)) {
        return code;
    }
    // SAFETY: SQLite calls this for files whose methods are the first field of a `Gated`, and for no others.
    let own = unsafe { (*(*file).pMethods.cast::<Gated>()).read };
    // SAFETY: the arguments of SQLite's call, for the method that it would have called.
    failures::of_read(unsafe { own(file, data, bytes, offset) })
}

/// The code of a refusal, if the read is too late and none was refused before it.
fn refused(file: *mut ffi::sqlite3_file) -> Option<c_int> {
    GATE.with(|gate| {
        if !gate.files.get().contains(&file) {
            return None;
        }
        if gate.has_refused.get() || gate.end.get().is_none_or(|end| Instant::now() <= end) {
            gate.has_read.set(true);
            return None;
        }
        gate.has_refused.set(true);
        let code = match gate.refusal.get() {
            Refusal::Interrupt => ffi::SQLITE_INTERRUPT,
            Refusal::Failure => ffi::SQLITE_IOERR,
        };
        Some(code | MARK)
    })
}
