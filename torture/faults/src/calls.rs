//! The functions that replace the C library's. Each asks the plan for the call's fate, and makes the same system call
//! as the replaced function, with its arguments.
//!
//! `open` and `fcntl` have variadic arguments in C, which are not always given. On the machines that Linux supports, a
//! function may declare an argument that was not passed, as long as it does not use it.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::plan::{Fate, Kind, fate};
use crate::system::{as_int, failed, wait_20_ms};
use crate::{control, files, system};

/// Applies the plan to a call without bytes: returns the error number, waits, or continues.
macro_rules! meet {
    ($kind:expr, $file:expr) => {
        match fate($kind, $file) {
            Fate::Fails(errno) => return failed(errno),
            Fate::Late => wait_20_ms(),
            Fate::Made | Fate::Short => {}
        }
    };
}

/// Applies the plan to a call of this many bytes: the result is how many of them to process.
macro_rules! cut {
    ($kind:expr, $fd:expr, $bytes:expr) => {
        match fate($kind, files::of_descriptor($fd)) {
            Fate::Fails(errno) => return failed(errno),
            Fate::Short => $bytes.div_ceil(2),
            Fate::Late => {
                wait_20_ms();
                $bytes
            }
            Fate::Made => $bytes,
        }
    };
}

/// Another name of a replaced function.
macro_rules! also {
    ($($name:ident = $other:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(
            // SAFETY: the C library's signature; nothing else in this library defines the name.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $type),*) -> $answer {
                // SAFETY: the caller's arguments.
                unsafe { $other($($arg),*) }
            }
        )*
    };
}

// SAFETY: the C library's signature; no other item in this library defines the name. This also applies to the functions
// below.
#[unsafe(no_mangle)]
unsafe extern "C" fn openat(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: a path passed to open ends with a NUL.
    let name = unsafe { CStr::from_ptr(path) };
    if let Some(answer) = control::answer(name) {
        return failed(answer);
    }
    let file = files::of_path(name);
    meet!(Kind::Open, file);
    // SAFETY: the caller's arguments.
    let fd = unsafe { system::open(at, path, flags, mode) };
    files::opened(fd, file);
    fd
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: the caller's arguments.
    unsafe { openat(libc::AT_FDCWD, path, flags, mode) }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: c_int) -> c_int {
    let file = files::of_descriptor(fd);
    let fate = fate(Kind::Close, file);
    files::opened(fd, None);
    if matches!(fate, Fate::Late) {
        wait_20_ms();
    }
    // SAFETY: the caller's argument. As in Linux, the descriptor is closed even if an error is returned.
    let answer = as_int(unsafe { libc::syscall(libc::SYS_close, fd) });
    if let Fate::Fails(errno) = fate { failed(errno) } else { answer }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn read(fd: c_int, data: *mut c_void, bytes: usize) -> isize {
    let bytes = cut!(Kind::Read, fd, bytes);
    // SAFETY: the caller's arguments, or fewer bytes.
    unsafe { libc::syscall(libc::SYS_read, fd, data, bytes) as isize }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn pread(fd: c_int, data: *mut c_void, bytes: usize, offset: i64) -> isize {
    let bytes = cut!(Kind::Read, fd, bytes);
    // SAFETY: the caller's arguments, or fewer bytes.
    unsafe { libc::syscall(libc::SYS_pread64, fd, data, bytes, offset) as isize }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn write(fd: c_int, data: *const c_void, bytes: usize) -> isize {
    let bytes = cut!(Kind::Write, fd, bytes);
    // SAFETY: the caller's arguments, or fewer bytes.
    unsafe { libc::syscall(libc::SYS_write, fd, data, bytes) as isize }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize {
    let bytes = cut!(Kind::Write, fd, bytes);
    // SAFETY: the caller's arguments, or fewer bytes.
    unsafe { libc::syscall(libc::SYS_pwrite64, fd, data, bytes, offset) as isize }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn fsync(fd: c_int) -> c_int {
    meet!(Kind::Sync, files::of_descriptor(fd));
    // SAFETY: the caller's argument.
    as_int(unsafe { libc::syscall(libc::SYS_fsync, fd) })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn fdatasync(fd: c_int) -> c_int {
    meet!(Kind::Sync, files::of_descriptor(fd));
    // SAFETY: the caller's argument.
    as_int(unsafe { libc::syscall(libc::SYS_fdatasync, fd) })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn ftruncate(fd: c_int, bytes: i64) -> c_int {
    meet!(Kind::Truncate, files::of_descriptor(fd));
    // SAFETY: the caller's arguments.
    as_int(unsafe { libc::syscall(libc::SYS_ftruncate, fd, bytes) })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn fallocate(fd: c_int, mode: c_int, offset: i64, bytes: i64) -> c_int {
    meet!(Kind::Truncate, files::of_descriptor(fd));
    // SAFETY: the caller's arguments.
    as_int(unsafe { libc::syscall(libc::SYS_fallocate, fd, mode, offset, bytes) })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: usize,
    rights: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    match fate(Kind::Map, files::of_descriptor(fd)) {
        Fate::Fails(errno) => {
            system::set_errno(errno);
            return libc::MAP_FAILED;
        }
        Fate::Late => wait_20_ms(),
        Fate::Made | Fate::Short => {}
    }
    // SAFETY: the caller's arguments.
    unsafe { libc::syscall(libc::SYS_mmap, at, bytes, rights, flags, fd, offset) as *mut c_void }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: a path ends with a NUL.
    meet!(Kind::Unlink, files::of_path(unsafe { CStr::from_ptr(path) }));
    // SAFETY: the caller's argument.
    as_int(unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, path, 0) })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int {
    let file = files::of_descriptor(fd);
    match command {
        libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW if file.is_some() => {
            // SAFETY: these commands have a pointer to a lock as argument.
            let frees = c_int::from(unsafe { (*argument.cast::<libc::flock>()).l_type }) == libc::F_UNLCK;
            meet!(if frees { Kind::Unlock } else { Kind::Lock }, file);
        }
        libc::F_GETLK | libc::F_OFD_GETLK => meet!(Kind::Lock, file),
        _ => {}
    }
    // SAFETY: the caller's arguments.
    let answer = as_int(unsafe { libc::syscall(libc::SYS_fcntl, fd, command, argument) });
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        files::opened(answer, file);
    }
    answer
}

also! {
    open64 = open(path: *const c_char, flags: c_int, mode: c_int) -> c_int;
    openat64 = openat(at: c_int, path: *const c_char, flags: c_int, mode: c_int) -> c_int;
    pread64 = pread(fd: c_int, data: *mut c_void, bytes: usize, offset: i64) -> isize;
    pwrite64 = pwrite(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize;
    ftruncate64 = ftruncate(fd: c_int, bytes: i64) -> c_int;
    fallocate64 = fallocate(fd: c_int, mode: c_int, offset: i64, bytes: i64) -> c_int;
    mmap64 = mmap(at: *mut c_void, bytes: usize, rights: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fcntl64 = fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int;
}
