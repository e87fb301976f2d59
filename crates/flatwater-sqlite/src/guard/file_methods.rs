//! This crate's file methods, in front of SQLite's own, for the files of a connection.
//!
//! Owns: the tables of methods that files point to (<https://sqlite.org/c3ref/io_methods.html>), installing them, and
//! calling SQLite's own. SQLite calls the methods on the thread that is inside a call. Invariants: a table equals
//! SQLite's own but for the methods below, and lives for ever, because files point to it; only layers that are part of
//! SQLite get one, because their own tables are static. Leaves out: the decision what to refuse (`guard`), what becomes of a
//! frame that is written (`frame_writes`).
//!
//! - xRead is timed by `guard`, and reports a failed read as an I/O error (`system_failure`).
//! - xShmLock asks `guard` whether the lock may be taken.
//! - xShmBarrier is only the memory fence that SQLite requires. SQLite's own also takes a process-wide mutex, "for
//!   redundancy", which a thread holds while it opens or closes a database.
//! - Of the WAL of the connection's own database, xWrite holds the header of a frame until its page is written, and xRead,
//!   xTruncate, xSync, xFileSize and xClose write it first. So does xShmBarrier of the database, before a commit is published.

use std::ffi::{CStr, c_int, c_void};
use std::panic::catch_unwind;
use std::ptr;
use std::sync::atomic::{Ordering, fence};

use rusqlite::ffi;

use crate::error::system_failure;
use crate::guard;
use crate::guard::frame_writes;
use crate::guard::snapshot_locks::Request;
use crate::process::PerProcess;
use crate::wal::files::{File, Files};
use crate::wal::mapping::GuardedFiles;

type Read = unsafe extern "C" fn(*mut ffi::sqlite3_file, *mut c_void, c_int, ffi::sqlite3_int64) -> c_int;
type Close = unsafe extern "C" fn(*mut ffi::sqlite3_file) -> c_int;
type FileSize = unsafe extern "C" fn(*mut ffi::sqlite3_file, *mut ffi::sqlite3_int64) -> c_int;
type Sync = unsafe extern "C" fn(*mut ffi::sqlite3_file, c_int) -> c_int;
type Truncate = unsafe extern "C" fn(*mut ffi::sqlite3_file, ffi::sqlite3_int64) -> c_int;
type ShmLock = unsafe extern "C" fn(*mut ffi::sqlite3_file, c_int, c_int, c_int) -> c_int;

/// A table with this crate's methods, and SQLite's own methods that they call.
#[repr(C)]
struct Table {
    methods: ffi::sqlite3_io_methods,
    close: Close,
    read: Read,
    write: frame_writes::Write,
    truncate: Truncate,
    sync: Sync,
    file_size: FileSize,
    shm_lock: ShmLock,
    is_of: Kind,
    /// SQLite's own table.
    own: &'static ffi::sqlite3_io_methods,
}

/// The files for which a table is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The WAL of a connection's own database.
    Wal,
    Any,
}

/// One table of each kind for each of SQLite's own tables met so far.
static TABLES: PerProcess<Vec<&Table>> = PerProcess::new(Vec::new);

/// The version of the method table that this code supports.
const VERSION: c_int = 3;

/// SQLite's own layers. Other layers may make a table for each file.
const LAYERS: [&CStr; 4] = [c"unix", c"unix-excl", c"win32", c"win32-longpath"];

impl Files {
    /// Installs this crate's methods in front of those of the connection's files that are open now: databases,
    /// including attached ones, and their WALs or journals. Does nothing for files of a layer that is not SQLite's own.
    pub fn guard(&self) {
        for index in 0.. {
            // SAFETY: the connection is open; the name lives until the database is detached, which is not before the end.
            let name = unsafe { ffi::sqlite3_db_name(self.handle().raw(), index) };
            if name.is_null() {
                break;
            }
            // SAFETY: as above.
            let name = unsafe { CStr::from_ptr(name) };
            for control in [ffi::SQLITE_FCNTL_FILE_POINTER, ffi::SQLITE_FCNTL_JOURNAL_POINTER] {
                if let Some(file) = self.find_of(name, control) {
                    self.put_methods(name, file, Kind::Any);
                }
            }
        }
        let _ = self.guarded();
    }

    /// The database and the WAL, if they have this crate's methods. They stay the same while the connection is in WAL
    /// mode.
    pub(crate) fn guarded(&self) -> Option<GuardedFiles> {
        self.mapping.files().or_else(|| {
            let files = [self.find(File::Database)?, self.find(File::Wal)?];
            let [database, wal] = files;
            // Otherwise SQLite fills sectors with further frames, and writes parts of pages.
            let of_wal = if has_powersafe_overwrite(database) { Kind::Wal } else { Kind::Any };
            let has_methods = self.put_methods(c"main", database, Kind::Any) && self.put_methods(c"main", wal, of_wal);
            has_methods.then(|| {
                self.mapping.guarded(files);
                files
            })
        })
    }

    /// Installs the methods. Returns true if the file has this crate's methods now.
    fn put_methods(&self, database: &CStr, file: *mut ffi::sqlite3_file, kind: Kind) -> bool {
        if !self.has_own_layer(database) {
            return false;
        }
        // SAFETY: the file is open, and no other code uses its connection.
        let methods = unsafe { &mut (*file).pMethods };
        // SAFETY: the methods of an open file of SQLite's own layers are static, and so are this crate's.
        match unsafe { methods.as_ref() }.and_then(|methods| table(methods, kind)) {
            Some(table) => {
                *methods = &raw const table.methods;
                true
            }
            None => false,
        }
    }

    /// Returns true if the file system layer of a database is part of SQLite.
    fn has_own_layer(&self, database: &CStr) -> bool {
        let mut layer: *mut ffi::sqlite3_vfs = ptr::null_mut();
        // SAFETY: the connection is open, and the control stores the address of a layer, which is never freed while files
        // of it are open; its name is a C string.
        unsafe {
            let control = ffi::SQLITE_FCNTL_VFS_POINTER;
            ffi::sqlite3_file_control(self.handle().raw(), database.as_ptr(), control, (&raw mut layer).cast());
            layer.as_ref().is_some_and(|layer| LAYERS.contains(&CStr::from_ptr(layer.zName)))
        }
    }
}

/// Returns true if a write to the device leaves the bytes beside it as they were (<https://sqlite.org/psow.html>). `file` is open.
fn has_powersafe_overwrite(file: *mut ffi::sqlite3_file) -> bool {
    // SAFETY: the file is open, so it has methods, which belong to it.
    let device = unsafe { (*(*file).pMethods).xDeviceCharacteristics.map(|device| device(file)) };
    device.is_some_and(|device| device & ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE != 0)
}

/// The table of a kind for methods that are SQLite's own, or this crate's already; `None` if they have another layout. That of a
/// WAL serves as the one of any file.
fn table(methods: &'static ffi::sqlite3_io_methods, kind: Kind) -> Option<&'static Table> {
    let mut all = TABLES.lock();
    let present = all.iter().copied().find(|table| ptr::eq(&raw const table.methods, methods));
    if let Some(table) = present.filter(|table| table.is_of == kind || table.is_of == Kind::Wal) {
        return Some(table);
    }
    let own = present.map_or(methods, |table| table.own);
    if let Some(table) = all.iter().find(|table| ptr::eq(table.own, own) && table.is_of == kind) {
        return Some(table);
    }
    if own.iVersion != VERSION {
        return None;
    }
    let table: &'static Table = Box::leak(Box::new(guarded(own, kind)?));
    all.push(table);
    Some(table)
}

/// The table of a kind for SQLite's own methods.
fn guarded(own: &'static ffi::sqlite3_io_methods, kind: Kind) -> Option<Table> {
    let methods =
        ffi::sqlite3_io_methods { xRead: Some(read), xShmLock: Some(shm_lock), xShmBarrier: Some(shm_barrier), ..*own };
    Some(Table {
        methods: if kind == Kind::Wal { with_writes(methods) } else { methods },
        close: own.xClose?,
        read: own.xRead?,
        write: own.xWrite?,
        truncate: own.xTruncate?,
        sync: own.xSync?,
        file_size: own.xFileSize?,
        shm_lock: own.xShmLock?,
        is_of: kind,
        own,
    })
}

/// The methods of a WAL.
fn with_writes(methods: ffi::sqlite3_io_methods) -> ffi::sqlite3_io_methods {
    ffi::sqlite3_io_methods {
        xClose: Some(close),
        xRead: Some(read_wal),
        xWrite: Some(write),
        xTruncate: Some(truncate),
        xSync: Some(sync),
        xFileSize: Some(file_size),
        ..methods
    }
}

/// # Safety
/// The methods of `file` are the first field of a `Table`.
unsafe fn table_of<'a>(file: *mut ffi::sqlite3_file) -> &'a Table {
    // SAFETY: as the caller promises; tables live for ever.
    unsafe { &*(*file).pMethods.cast::<Table>() }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    data: *mut c_void,
    bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite calls this for files that point to a `Table`, with the arguments for the method that it would have
    // called.
    let read = || system_failure::of_read(unsafe { (table_of(file).read)(file, data, bytes, offset) });
    match catch_unwind(|| guard::begin_read(file)) {
        Ok(Some(began)) => {
            let code = read();
            // It cannot panic: it reads the clock and adds.
            let _ = catch_unwind(|| guard::has_read(began));
            code
        }
        _ => read(),
    }
}

unsafe extern "C" fn read_wal(
    file: *mut ffi::sqlite3_file,
    data: *mut c_void,
    bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: as in `read`.
    after_held(frame_writes::reads(file, offset), || unsafe { read(file, data, bytes, offset) })
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    data: *const c_void,
    bytes: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: as in `read`.
    let write = || unsafe { frame_writes::write(table_of(file).write, file, data, bytes, offset) };
    catch_unwind(write).unwrap_or(ffi::SQLITE_IOERR_WRITE)
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, bytes: ffi::sqlite3_int64) -> c_int {
    // SAFETY: as in `read`.
    after_held(frame_writes::write_held(), || unsafe { (table_of(file).truncate)(file, bytes) })
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as in `read`.
    after_held(frame_writes::write_held(), || unsafe { (table_of(file).sync)(file, flags) })
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, bytes: *mut ffi::sqlite3_int64) -> c_int {
    // SAFETY: as in `read`.
    after_held(frame_writes::write_held(), || unsafe { (table_of(file).file_size)(file, bytes) })
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let held = frame_writes::write_held();
    // SAFETY: as in `read`. It is closed in any case.
    let closed = unsafe { (table_of(file).close)(file) };
    after_held(held, || closed)
}

/// Returns the code of writing the header that was held, or goes on.
fn after_held(code: c_int, own: impl FnOnce() -> c_int) -> c_int {
    if code == ffi::SQLITE_OK { own() } else { code }
}

unsafe extern "C" fn shm_lock(file: *mut ffi::sqlite3_file, first: c_int, count: c_int, flags: c_int) -> c_int {
    // SAFETY: as in `read`.
    let own = || unsafe { (table_of(file).shm_lock)(file, first, count, flags) };
    let request = Request { first, count, flags };
    // If the guard panicked, the lock may or may not be taken; SQLite treats it as not taken, and the connection is
    // closed.
    catch_unwind(|| guard::locks(file, request, own)).unwrap_or(ffi::SQLITE_IOERR_SHMLOCK)
}

unsafe extern "C" fn shm_barrier(_file: *mut ffi::sqlite3_file) {
    // SQLite calls this between the two copies of the header of the wal-index that publish a commit. It holds no header then:
    // this is for a SQLite that would write the last one in another way. The fence cannot report that the write failed.
    let _ = frame_writes::write_held();
    fence(Ordering::SeqCst);
}
