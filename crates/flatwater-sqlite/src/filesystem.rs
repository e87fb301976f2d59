//! What kind of file system a path lies on, and whether a file may be written.
//!
//! Owns: asking the kernel, and the names behind its numbers. Opens nothing. Leaves out: which kinds are fit for a
//! database.

use std::path::Path;

use crate::failures::SystemFailure;

/// Why this process may not write the file at `path`, as the system says without opening it; `None` if it may, or where
/// that cannot be asked.
#[must_use]
#[cfg(unix)]
pub fn why_not_writable(path: &Path) -> Option<SystemFailure> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the path ends with a NUL, and the call only answers.
    let refused = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) != 0 };
    refused.then(|| std::io::Error::last_os_error().raw_os_error().map(SystemFailure::from_errno))?
}

/// Why this process may not write the file at `path`, or `None` where that cannot be asked.
#[must_use]
#[cfg(not(unix))]
pub fn why_not_writable(_: &Path) -> Option<SystemFailure> {
    None
}

/// The number the kernel knows the file system of `path` by
/// (<https://man7.org/linux/man-pages/man2/statfs.2.html>), or `None` where that cannot be asked.
#[must_use]
#[cfg(target_os = "linux")]
pub fn filesystem_magic(path: &Path) -> Option<u32> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut answer = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends with a NUL and the answer has room; it is read only if the call says that it was written.
    let answer = unsafe { (libc::statfs(path.as_ptr(), answer.as_mut_ptr()) == 0).then(|| answer.assume_init()) }?;
    // The field is signed and of a different width on different targets; the numbers are of 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some(answer.f_type as u32)
}

/// The number the kernel knows the file system of `path` by, or `None` where that cannot be asked.
#[must_use]
#[cfg(not(target_os = "linux"))]
pub fn filesystem_magic(_: &Path) -> Option<u32> {
    None
}
