//! Making SQLite usable in a forked child, for the connections that the child opens itself.
//!
//! Owns: SQLite's static mutexes during a fork, and SQLCipher's; keeping the files of the child apart from those that its
//! parent had open. Runs on the thread that forks, and in the child on the thread that opens its first database. A child has the
//! parent's memory as it was at the fork, and no thread of the parent but the one that forked. Two things in that memory
//! would harm connections of the child:
//! - A static mutex that another thread held at the fork is never released. So the thread that forks holds all of them
//!   during the fork, in an order in which SQLite takes them: no other thread holds one, and what they guard is whole.
//! - SQLite's list of open files (`unixInodeInfo`), found by device and inode, says which POSIX locks the process holds,
//!   and which part of the wal-index is locked and mapped. A child inherits the list and none of the locks. So in a child
//!   SQLite sees each file on a device of another number: it finds no entry of the parent's, makes its own, and locks.
//!
//! Invariants: nothing of the parent's is closed, unlocked or changed; nothing is done in a process that was not forked.
//! Leaves out: the connections of the parent, which the child must not touch, and noticing the fork (`process`).

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rusqlite::ffi;

use crate::heap;

/// In the order in which SQLite takes them: opening a shared cache holds OPEN and opens a file under VFS1; naming a
/// temporary file holds VFS1 and asks for a random number, which may look for the layer under MAIN; any of them allocates.
/// The mutexes for applications are left to these.
const IDS: [c_int; 7] = [
    ffi::SQLITE_MUTEX_STATIC_OPEN,
    ffi::SQLITE_MUTEX_STATIC_VFS1,
    ffi::SQLITE_MUTEX_STATIC_PRNG,
    ffi::SQLITE_MUTEX_STATIC_MAIN,
    ffi::SQLITE_MUTEX_STATIC_LRU,
    ffi::SQLITE_MUTEX_STATIC_PMEM,
    ffi::SQLITE_MUTEX_STATIC_MEM,
];

static MUTEXES: [AtomicPtr<ffi::sqlite3_mutex>; IDS.len()] = [const { AtomicPtr::new(ptr::null_mut()) }; IDS.len()];

/// Finds the mutexes, so that the handlers of a fork need not. Called once, before the first fork that is noticed.
pub(crate) fn prepare() {
    // It can be done only before SQLite is initialised, as it is here.
    heap::install();
    for (id, place) in IDS.into_iter().zip(&MUTEXES) {
        // SAFETY: static mutexes exist once SQLite is initialised, and are never freed.
        let mutex = unsafe {
            ffi::sqlite3_initialize();
            ffi::sqlite3_mutex_alloc(id)
        };
        place.store(mutex, Ordering::SeqCst);
    }
}

/// SQLCipher's own mutexes: one is held for each page that is encrypted. With one held SQLCipher calls SQLite's
/// allocator, so they are taken first. When the process ends SQLCipher frees them, and returns null from then on.
#[cfg(feature = "sqlcipher")]
fn ciphers() -> impl DoubleEndedIterator<Item = *mut ffi::sqlite3_mutex> {
    unsafe extern "C" {
        fn sqlcipher_mutex(number: c_int) -> *mut ffi::sqlite3_mutex;
    }
    // SAFETY: SQLCipher checks the number, and has these mutexes once SQLite is initialised.
    (0..8).map(|number| unsafe { sqlcipher_mutex(number) })
}

#[cfg(not(feature = "sqlcipher"))]
fn ciphers() -> impl DoubleEndedIterator<Item = *mut ffi::sqlite3_mutex> {
    std::iter::empty()
}

/// Takes SQLite's static mutexes, before a fork.
pub(crate) fn hold() {
    for mutex in ciphers() {
        // SAFETY: as below.
        unsafe { ffi::sqlite3_mutex_enter(mutex) };
    }
    for mutex in &MUTEXES {
        // SAFETY: a static mutex, or null, for which SQLite does nothing. The thread holds none: SQLite calls no code of a
        // program with one held, and so none that forks.
        unsafe { ffi::sqlite3_mutex_enter(mutex.load(Ordering::SeqCst)) };
    }
}

/// Releases them after the fork, in the parent and in the child.
pub(crate) fn release() {
    for mutex in MUTEXES.iter().rev() {
        // SAFETY: `hold` took it on this thread; in the child this is the thread that forked.
        unsafe { ffi::sqlite3_mutex_leave(mutex.load(Ordering::SeqCst)) };
    }
    for mutex in ciphers().rev() {
        // SAFETY: as above.
        unsafe { ffi::sqlite3_mutex_leave(mutex) };
    }
}

/// Keeps the files that this process opens from now on apart from those that its parent had open. Returns false where that
/// cannot be done. Called in a forked child before it opens a connection; more than once does no harm.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub(crate) fn separate() -> bool {
    device::separate()
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub(crate) fn separate() -> bool {
    false
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod device {
    use std::ffi::{CStr, c_char, c_int};

    use rusqlite::ffi;

    use crate::process::origin::generation;

    /// The number of a device on Linux is shorter than this, in the form in which the system tells it.
    const DEVICE_BITS: u32 = 44;

    type Call = unsafe extern "C" fn();

    pub(super) fn separate() -> bool {
        type Fstat = unsafe extern "C" fn(c_int, *mut libc::stat) -> c_int;
        type Stat = unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int;
        // SAFETY: SQLite casts each function back to the type that it has before calling it.
        let (fstat, stat) =
            unsafe { (std::mem::transmute::<Fstat, Call>(fstat), std::mem::transmute::<Stat, Call>(stat)) };
        set(c"fstat", fstat) && set(c"stat", stat)
    }

    /// Has SQLite's own layer make this system call through `call`.
    fn set(name: &CStr, call: Call) -> bool {
        // SAFETY: the layer is static. The functions take a C string, and change and read a pointer of the list of system
        // calls, which no other thread uses: this process has no connection yet that it may use.
        unsafe {
            let vfs = ffi::sqlite3_vfs_find(c"unix".as_ptr());
            let Some((set, get)) = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall.zip(vfs.xGetSystemCall)) else {
                return false;
            };
            let is_set = |now: Option<Call>| now.is_some_and(|now| now as usize == call as usize);
            is_set(get(vfs, name.as_ptr()))
                || set(vfs, name.as_ptr(), Some(call)) == ffi::SQLITE_OK && is_set(get(vfs, name.as_ptr()))
        }
    }

    unsafe extern "C" fn fstat(fd: c_int, file: *mut libc::stat) -> c_int {
        // SAFETY: the arguments are the caller's, unchanged.
        let result = unsafe { libc::fstat(fd, file) };
        mark(result, file)
    }

    unsafe extern "C" fn stat(path: *const c_char, file: *mut libc::stat) -> c_int {
        // SAFETY: as above.
        let result = unsafe { libc::stat(path, file) };
        mark(result, file)
    }

    /// Changes the number of the device to one that only this process uses.
    fn mark(result: c_int, file: *mut libc::stat) -> c_int {
        // SAFETY: after a success the caller's room is filled.
        if let Some(file) = unsafe { file.as_mut() }.filter(|_| result == 0) {
            file.st_dev ^= libc::dev_t::from(generation()) << DEVICE_BITS;
        }
        result
    }
}
