//! The kind of file system that contains a path, its free space, and whether a file may be written.
//!
//! Owns: asking the kernel. Runs on any thread, and blocks on the file system. Invariant: it opens nothing. Leaves out:
//! which kinds are fit for a database.

use std::path::Path;

use crate::error::system_failure::SystemFailure;

/// Returns why this process may not write the file or the directory at `path`, as the system reports without opening it;
/// `None` if it may, or where the system cannot be asked.
#[must_use]
pub fn why_not_writable(path: &Path) -> Option<SystemFailure> {
    #[cfg(unix)]
    return why_not(path, libc::W_OK);
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// The same for reading.
#[must_use]
pub fn why_not_readable(path: &Path) -> Option<SystemFailure> {
    #[cfg(unix)]
    return why_not(path, libc::R_OK);
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

#[cfg(unix)]
fn why_not(path: &Path, right: libc::c_int) -> Option<SystemFailure> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the path ends with a NUL, and the call only reads it.
    let refused = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), right, libc::AT_EACCESS) != 0 };
    refused.then(|| std::io::Error::last_os_error().raw_os_error().map(SystemFailure::from_errno))?
}

/// The bytes that this process may still write to the file system that contains `path`, or `None` where the system
/// cannot be asked. A quota is not part of them.
#[must_use]
#[cfg(unix)]
pub fn free_bytes(path: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut answer = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a NUL and the buffer is large enough; it is read only if the call reports success.
    let answer = unsafe { (libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) == 0).then(|| answer.assume_init()) }?;
    // The fields have different widths on different targets.
    #[allow(clippy::useless_conversion)]
    Some(u64::from(answer.f_bavail).saturating_mul(u64::from(answer.f_frsize)))
}

/// The bytes that this process may still write to the file system that contains `path`, or `None` where the system
/// cannot be asked.
#[must_use]
#[cfg(not(unix))]
pub fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// The kernel's magic number of the file system that contains `path`
/// (<https://man7.org/linux/man-pages/man2/statfs.2.html>), or `None` where the kernel cannot be asked.
#[must_use]
#[cfg(target_os = "linux")]
pub fn filesystem_magic(path: &Path) -> Option<u32> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut answer = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends with a NUL and the buffer is large enough; it is read only if the call reports success.
    let answer = unsafe { (libc::statfs(path.as_ptr(), answer.as_mut_ptr()) == 0).then(|| answer.assume_init()) }?;
    // The field is signed and of a different width on different targets; the numbers have 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Some(answer.f_type as u32)
}

/// The kernel's magic number of the file system that contains `path`, or `None` where the kernel cannot be asked.
#[must_use]
#[cfg(not(target_os = "linux"))]
pub fn filesystem_magic(_: &Path) -> Option<u32> {
    None
}
