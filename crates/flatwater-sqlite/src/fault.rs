//! Failures on demand, for tests (feature `fault`).
//!
//! Owns: process-wide switches inside SQLite: its fault simulator and its table of system calls. While a guard lives,
//! every database of the process is affected, so tests that use one run one at a time (each guard holds a lock). Leaves
//! out: fsync, which is not in SQLite's table and needs a test program of its own.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;

/// SQLite's number for "a COMMIT fails before anything is written".
const COMMIT_FAULT: c_int = 400;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static FAILING_COMMITS: AtomicI64 = AtomicI64::new(0);
static PASSING_WRITES: AtomicI64 = AtomicI64::new(i64::MAX);
static FAILING_WRITES: AtomicI64 = AtomicI64::new(0);
static WRITE_ERRNO: AtomicI32 = AtomicI32::new(0);

/// A failure that is switched on; dropping it switches it off.
pub struct Fault {
    off: fn(),
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Fault {
    fn drop(&mut self) {
        (self.off)();
    }
}

/// The next `count` COMMITs of the process fail with an I/O error before anything is written.
pub fn fail_commits(count: i64) -> Fault {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    FAILING_COMMITS.store(count, Ordering::SeqCst);
    // SAFETY: FAULT_INSTALL takes one function pointer of this type.
    unsafe {
        ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_FAULT_INSTALL, on_fault as unsafe extern "C" fn(c_int) -> c_int);
    }
    Fault {
        off: || {
            // SAFETY: a null pointer takes the callback out.
            unsafe {
                ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_FAULT_INSTALL, std::ptr::null_mut::<c_void>());
            }
        },
        _alone: alone,
    }
}

unsafe extern "C" fn on_fault(number: c_int) -> c_int {
    let fails = number == COMMIT_FAULT && FAILING_COMMITS.fetch_sub(1, Ordering::SeqCst) > 0;
    c_int::from(fails)
}

/// After `passing` more writes to files, `failing` ones end with `errno` (such as 28, ENOSPC, or 5, EIO).
pub fn fail_writes(passing: i64, failing: i64, errno: i32) -> Fault {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    WRITE_ERRNO.store(errno, Ordering::SeqCst);
    FAILING_WRITES.store(failing, Ordering::SeqCst);
    PASSING_WRITES.store(passing, Ordering::SeqCst);
    set_write_call(Some(pwrite_or_fail));
    Fault { off: || set_write_call(None), _alone: alone }
}

type PWrite = unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize;

/// Sets the `pwrite` of every VFS; `None` is the one SQLite started with.
fn set_write_call(call: Option<PWrite>) {
    // SAFETY: `xSetSystemCall` takes a NUL-terminated name and a function of the type the call has; names that this
    // build of SQLite does not use answer SQLITE_NOTFOUND and change nothing.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
        let Some(set) = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall) else { return };
        let call: ffi::sqlite3_syscall_ptr =
            call.map(|call| std::mem::transmute::<PWrite, unsafe extern "C" fn()>(call));
        for name in [c"pwrite", c"pwrite64"] {
            set(vfs, name.as_ptr().cast::<c_char>(), call);
        }
    }
}

unsafe extern "C" {
    #[link_name = "pwrite"]
    fn real_pwrite(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize;
    fn __errno_location() -> *mut c_int;
}

unsafe extern "C" fn pwrite_or_fail(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize {
    if PASSING_WRITES.fetch_sub(1, Ordering::SeqCst) <= 0 && FAILING_WRITES.fetch_sub(1, Ordering::SeqCst) > 0 {
        // SAFETY: the C library's errno of this thread.
        unsafe { *__errno_location() = WRITE_ERRNO.load(Ordering::SeqCst) };
        return -1;
    }
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { real_pwrite(fd, data, bytes, offset) }
}
