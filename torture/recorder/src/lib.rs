//! A library to preload into a process that runs Flatwater. It records what happens to the files of one directory, in
//! order: what is written where, truncated, created, unlinked, and which syncs began and ended.
//!
//! Owns: the functions that replace the C library's. Each makes the system call directly, so that there is no symbol to
//! look up, and no call returns to this library. A call that changes a file, and its record, are made under one lock,
//! so the log has the true order. A sync runs outside the lock: it covers what was recorded before its begin, and it
//! counts from its end. `-shm` files are not recorded, because they do not survive a power failure.
//!
//! The process sends commands by opening paths that do not exist: `/flatwater-torture/mark/TEXT` writes TEXT into the
//! log, `/flatwater-torture/fail-wal-sync/` makes the next sync of a WAL fail with EIO, `fail-wal-write/` the next
//! write that completes a commit in a WAL, although the write is made; `fail-nothing/` cancels a failure that has not
//! occurred yet.
//!
//! Leaves out: calls that SQLite does not make on a database (`writev`, `fallocate`, `rename`, writes through a
//! mapping, `dup`). The reader of the log checks that no such call was missed: it builds the files from the log and
//! compares them.
#![cfg(target_os = "linux")]

mod log;

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::slice;

use libc::{off_t, size_t, ssize_t};

use crate::log::{Fails, Kind, Place};

const MARK: &[u8] = b"/flatwater-torture/mark/";
const FAIL: &[u8] = b"/flatwater-torture/fail-";

/// # Safety
/// As open(2). The mode is passed whenever the flags require it; otherwise the value is arbitrary and is not used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// As `open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { open_at(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// As `open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { open_at(directory, path, flags, mode) }
}

/// # Safety
/// As `open`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { open_at(directory, path, flags, mode) }
}

/// # Safety
/// As openat(2).
unsafe fn open_at(directory: c_int, path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    // SAFETY: the caller's path is a C string.
    let text = unsafe { CStr::from_ptr(path) }.to_bytes();
    if let Some(mark) = text.strip_prefix(MARK) {
        log::with(|log| log.record(Kind::Mark, 0, 0, mark));
        return missing();
    }
    if let Some(what) = text.strip_prefix(FAIL) {
        log::fail_next(match what {
            b"wal-sync/" => Fails::Sync,
            b"wal-write/" => Fails::Write,
            _ => Fails::Nothing,
        });
        return missing();
    }
    // SAFETY: the arguments of the caller's own call.
    let call = || unsafe { libc::syscall(libc::SYS_openat, directory, path, flags, mode) as c_int };
    match log::place(text) {
        Place::Elsewhere => call(),
        Place::Directory => {
            let fd = call();
            log::opened(fd, log::DIRECTORY);
            fd
        }
        Place::File(name) => log::with(|log| {
            // SAFETY: the caller's path is a C string.
            let was_there = unsafe { libc::syscall(libc::SYS_faccessat, directory, path, libc::F_OK) } == 0;
            let fd = call();
            if fd >= 0 {
                let file = log.file(name, was_there);
                log::opened(fd, file);
                if flags & libc::O_TRUNC != 0 {
                    log.record(Kind::Truncate, file, 0, &[]);
                }
            }
            fd
        })
        .unwrap_or_else(call),
    }
}

fn missing() -> c_int {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() = libc::ENOENT };
    -1
}

fn fail() {
    // SAFETY: this thread's errno.
    unsafe { *libc::__errno_location() = libc::EIO };
}

/// # Safety
/// As close(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    log::closed(fd);
    // SAFETY: the arguments of the caller's own call.
    unsafe { libc::syscall(libc::SYS_close, fd) as c_int }
}

/// # Safety
/// As write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, data: *const c_void, bytes: size_t) -> ssize_t {
    // SAFETY: the arguments of the caller's own call.
    let call = || unsafe { libc::syscall(libc::SYS_write, fd, data, bytes) as ssize_t };
    // SAFETY: reads a descriptor's position; no memory is accessed.
    let at = || unsafe { libc::syscall(libc::SYS_lseek, fd, 0 as c_long, libc::SEEK_CUR) as off_t };
    // SAFETY: the caller guarantees it.
    unsafe { written(fd, data, at, call) }
}

/// # Safety
/// As pwrite(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite(fd: c_int, data: *const c_void, bytes: size_t, at: off_t) -> ssize_t {
    // SAFETY: the arguments of the caller's own call.
    let call = || unsafe { libc::syscall(libc::SYS_pwrite64, fd, data, bytes, at) as ssize_t };
    // SAFETY: the caller guarantees it.
    unsafe { written(fd, data, || at, call) }
}

/// # Safety
/// As pwrite(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(fd: c_int, data: *const c_void, bytes: size_t, at: off_t) -> ssize_t {
    // SAFETY: the caller guarantees it.
    unsafe { pwrite(fd, data, bytes, at) }
}

/// Makes a write and records the bytes that were written. The write may still be reported as failed.
///
/// # Safety
/// `data` must have as many bytes as `call` returns.
unsafe fn written(fd: c_int, data: *const c_void, at: impl FnOnce() -> off_t, call: impl Fn() -> ssize_t) -> ssize_t {
    let Some(file) = log::file_of(fd).filter(|file| *file != log::DIRECTORY) else { return call() };
    log::with(|log| {
        let at = at();
        let done = call();
        if let Ok(bytes) = usize::try_from(done) {
            // SAFETY: the caller guarantees it.
            let data = unsafe { slice::from_raw_parts(data.cast::<u8>(), bytes) };
            log.record(Kind::Write, file, at.unsigned_abs(), data);
            if log.completes_commit(file, data) && log.fails(file, Fails::Write) {
                fail();
                return -1;
            }
        }
        done
    })
    .unwrap_or_else(call)
}

/// # Safety
/// As ftruncate(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate(fd: c_int, length: off_t) -> c_int {
    // SAFETY: the arguments of the caller's own call.
    let call = || unsafe { libc::syscall(libc::SYS_ftruncate, fd, length) as c_int };
    let Some(file) = log::file_of(fd) else { return call() };
    log::with(|log| {
        let done = call();
        if done == 0 {
            log.record(Kind::Truncate, file, length.unsigned_abs(), &[]);
        }
        done
    })
    .unwrap_or_else(call)
}

/// # Safety
/// As ftruncate(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ftruncate64(fd: c_int, length: off_t) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { ftruncate(fd, length) }
}

/// # Safety
/// As fsync(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    synced(fd, libc::SYS_fsync)
}

/// # Safety
/// As fdatasync(2), which syncs the file's length as far as it is needed to read the data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    synced(fd, libc::SYS_fdatasync)
}

fn synced(fd: c_int, number: c_long) -> c_int {
    // SAFETY: the call takes any descriptor.
    let call = || unsafe { libc::syscall(number, fd) as c_int };
    let Some(file) = log::file_of(fd) else { return call() };
    let Some(sync) = log::with(|log| log.sync_begins(fd, file)) else { return call() };
    let succeeds = !sync.fails && call() == 0;
    let is_kept = log::with(|log| log.sync_ends(fd, file, sync.number, succeeds));
    if is_kept == Some(true) {
        return 0;
    }
    fail();
    -1
}

/// # Safety
/// As unlink(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: the caller guarantees it.
    unsafe { unlinkat(libc::AT_FDCWD, path, 0) }
}

/// # Safety
/// As unlinkat(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the arguments of the caller's own call.
    let call = || unsafe { libc::syscall(libc::SYS_unlinkat, directory, path, flags) as c_int };
    // SAFETY: the caller's path is a C string.
    let Place::File(name) = log::place(unsafe { CStr::from_ptr(path) }.to_bytes()) else { return call() };
    log::with(|log| {
        let done = call();
        if done == 0 {
            log.unlinked(name);
        }
        done
    })
    .unwrap_or_else(call)
}
