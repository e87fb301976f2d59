//! Failures on demand, for tests (feature `fault`).
//!
//! Owns: process-wide switches inside SQLite: its fault simulator and its table of system calls. The calls fail on
//! whatever thread makes them. Invariant: while a guard lives, every database of the process is affected, so tests that
//! use one run one at a time (each guard holds a lock). Leaves out: fsync, which is not in SQLite's table and needs its
//! own test program.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;

/// SQLite's number for "a COMMIT fails before anything is written".
const COMMIT_FAULT: c_int = 400;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static FAILING_COMMITS: AtomicI64 = AtomicI64::new(0);
/// The number of calls until the process is killed; not positive while no kill is requested.
static UNTIL_KILLED: AtomicI64 = AtomicI64::new(0);
static WRITES: Calls = Calls::new();
static READS: Calls = Calls::new();
static OPENS: Calls = Calls::new();
static WHICH_OPENS: Mutex<Opens> = Mutex::new(Opens { end: "", to_write: false });

/// Which calls of one kind fail.
struct Calls {
    passing: AtomicI64,
    failing: AtomicI64,
    errno: AtomicI32,
}

impl Calls {
    const fn new() -> Self {
        Self { passing: AtomicI64::new(i64::MAX), failing: AtomicI64::new(0), errno: AtomicI32::new(0) }
    }

    fn set(&self, passing: i64, failing: i64, errno: i32) {
        self.errno.store(errno, Ordering::SeqCst);
        self.failing.store(failing, Ordering::SeqCst);
        self.passing.store(passing, Ordering::SeqCst);
    }

    /// Counts a call. Returns true, with the error number set, if the call must fail.
    fn fails(&self) -> bool {
        let fails = self.passing.fetch_sub(1, Ordering::SeqCst) <= 0 && self.failing.fetch_sub(1, Ordering::SeqCst) > 0;
        if fails {
            // SAFETY: the C library's errno of this thread.
            unsafe { *__errno_location() = self.errno.load(Ordering::SeqCst) };
        }
        fails
    }
}

/// An active failure; dropping it ends the failure.
pub struct Fault {
    off: fn(),
    _alone: MutexGuard<'static, ()>,
}

impl Drop for Fault {
    fn drop(&mut self) {
        (self.off)();
    }
}

/// Makes the next `count` COMMITs of the process fail with an I/O error before anything is written.
pub fn fail_commits(count: i64) -> Fault {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    FAILING_COMMITS.store(count, Ordering::SeqCst);
    // SAFETY: FAULT_INSTALL takes one function pointer of this type.
    unsafe {
        ffi::sqlite3_test_control(ffi::SQLITE_TESTCTRL_FAULT_INSTALL, on_fault as unsafe extern "C" fn(c_int) -> c_int);
    }
    Fault {
        off: || {
            // SAFETY: a null pointer removes the callback.
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

/// Lets `passing` more writes to files pass, then makes `failing` writes fail with `errno` (such as 28, ENOSPC, or 5,
/// EIO).
pub fn fail_writes(passing: i64, failing: i64, errno: i32) -> Fault {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    WRITES.set(passing, failing, errno);
    set_calls(&[(c"pwrite", PWRITE), (c"pwrite64", PWRITE)]);
    Fault { off: reset_calls, _alone: alone }
}

/// Lets `passing` more reads of files pass, then makes `failing` reads fail with `errno`.
pub fn fail_reads(passing: i64, failing: i64, errno: i32) -> Fault {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    READS.set(passing, failing, errno);
    set_calls(&[(c"pread", PREAD), (c"pread64", PREAD)]);
    Fault { off: reset_calls, _alone: alone }
}

/// Which opens fail.
struct Opens {
    end: &'static str,
    /// Only opens for writing, so that SQLite retries and opens for reading.
    to_write: bool,
}

/// For files whose names end with `end`, such as `-wal`: lets `passing` more opens pass, then makes `failing` opens
/// fail with `errno`. With `to_write` only opens for writing count and fail.
pub fn fail_opens(end: &'static str, to_write: bool, passing: i64, failing: i64, errno: i32) -> Fault {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    *WHICH_OPENS.lock().unwrap_or_else(PoisonError::into_inner) = Opens { end, to_write };
    OPENS.set(passing, failing, errno);
    set_calls(&[(c"open", OPEN)]);
    Fault { off: reset_calls, _alone: alone }
}

/// Returns true if as many opens failed as were requested with [`fail_opens`].
pub fn have_opens_failed() -> bool {
    OPENS.failing.load(Ordering::SeqCst) <= 0
}

/// Ends this process with SIGKILL instead of running the `call`-th call (from 1 on) of SQLite that opens, closes,
/// writes, truncates, locks, maps or removes a file.
pub fn kill_at_call(call: i64) -> Fault {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    UNTIL_KILLED.store(call, Ordering::SeqCst);
    set_calls(KILLING);
    Fault { off: reset_calls, _alone: alone }
}

type Call = unsafe extern "C" fn();
type Name = &'static CStr;

// SAFETY: for all of these: SQLite calls the function set for a name with the arguments of the C library's function.
const PWRITE: Call = unsafe {
    std::mem::transmute::<unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize, Call>(pwrite_or_fail)
};
// SAFETY: as above.
const PREAD: Call = unsafe {
    std::mem::transmute::<unsafe extern "C" fn(c_int, *mut c_void, usize, i64) -> isize, Call>(pread_or_fail)
};

// SAFETY: as above.
const OPEN: Call =
    unsafe { std::mem::transmute::<unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int, Call>(open_or_fail) };

/// Sets system calls of the default VFS. For names that this build of SQLite does not use, SQLite returns
/// SQLITE_NOTFOUND and changes nothing.
fn set_calls(calls: &[(Name, Call)]) {
    for (name, call) in calls {
        set_call(name.as_ptr(), Some(*call));
    }
}

/// Restores the calls that SQLite started with.
fn reset_calls() {
    set_call(std::ptr::null(), None);
}

fn set_call(name: *const c_char, call: Option<Call>) {
    // SAFETY: the default VFS lives as long as the process; `xSetSystemCall` takes a NUL-terminated name, or null for
    // all of them, and a function of the type the call has.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(std::ptr::null());
        if let Some(set) = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall) {
            set(vfs, name, call);
        }
    }
}

unsafe extern "C" {
    #[link_name = "pwrite"]
    fn real_pwrite(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize;
    #[link_name = "pread"]
    fn real_pread(fd: c_int, data: *mut c_void, bytes: usize, offset: i64) -> isize;
    fn __errno_location() -> *mut c_int;
}

unsafe extern "C" fn pwrite_or_fail(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize {
    if WRITES.fails() {
        return -1;
    }
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { real_pwrite(fd, data, bytes, offset) }
}

unsafe extern "C" fn pread_or_fail(fd: c_int, data: *mut c_void, bytes: usize, offset: i64) -> isize {
    if READS.fails() {
        return -1;
    }
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { real_pread(fd, data, bytes, offset) }
}

unsafe extern "C" fn open_or_fail(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    let is_meant = {
        let which = WHICH_OPENS.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: SQLite passes a path that ends with a NUL.
        let path = unsafe { CStr::from_ptr(path) }.to_bytes();
        path.ends_with(which.end.as_bytes()) && (!which.to_write || flags & libc::O_ACCMODE == libc::O_RDWR)
    };
    if is_meant && OPENS.fails() {
        return -1;
    }
    // SAFETY: the arguments are the caller's, unchanged.
    unsafe { libc::open(path, flags, mode) }
}

/// Counts a call; the last one ends the process.
fn kill_if_it_is_time() {
    if UNTIL_KILLED.fetch_sub(1, Ordering::SeqCst) == 1 {
        // SAFETY: ends this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        loop {
            std::thread::park();
        }
    }
}

/// Defines a system call that is counted before it is made.
macro_rules! killing {
    ($($name:ident ($($arg:ident: $type:ty),*) -> $answer:ty = $real:path;)*) => {
        $(unsafe extern "C" fn $name($($arg: $type),*) -> $answer {
            kill_if_it_is_time();
            // SAFETY: the arguments are the caller's, unchanged.
            unsafe { $real($($arg),*) }
        })*
    };
}

// `fcntl` gets its third argument as any function does, on the machines that Linux runs on.
killing! {
    counted_open(path: *const c_char, flags: c_int, mode: c_int) -> c_int = libc::open;
    counted_close(fd: c_int) -> c_int = libc::close;
    counted_pwrite(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize = real_pwrite;
    counted_ftruncate(fd: c_int, bytes: i64) -> c_int = libc::ftruncate;
    counted_fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int = libc::fcntl;
    counted_unlink(path: *const c_char) -> c_int = libc::unlink;
    counted_mmap(at: *mut c_void, bytes: usize, rights: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void
        = libc::mmap;
    counted_munmap(at: *mut c_void, bytes: usize) -> c_int = libc::munmap;
}

const KILLING: &[(Name, Call)] = {
    macro_rules! call {
        ($name:literal, $type:ty, $function:ident) => {
            // SAFETY: as for `PWRITE`.
            ($name, unsafe { std::mem::transmute::<$type, Call>($function) })
        };
    }
    &[
        call!(c"open", unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int, counted_open),
        call!(c"close", unsafe extern "C" fn(c_int) -> c_int, counted_close),
        call!(c"pwrite", unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize, counted_pwrite),
        call!(c"pwrite64", unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize, counted_pwrite),
        call!(c"ftruncate", unsafe extern "C" fn(c_int, i64) -> c_int, counted_ftruncate),
        call!(c"fcntl", unsafe extern "C" fn(c_int, c_int, *mut c_void) -> c_int, counted_fcntl),
        call!(c"unlink", unsafe extern "C" fn(*const c_char) -> c_int, counted_unlink),
        call!(c"mmap", unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void, counted_mmap),
        call!(c"munmap", unsafe extern "C" fn(*mut c_void, usize) -> c_int, counted_munmap),
    ]
};
