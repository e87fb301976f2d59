//! One database file and the files beside it, as the operating system sees them.

pub(crate) mod disk;
pub(crate) mod drain;
pub(crate) mod guard;
pub(crate) mod identity;
pub(crate) mod mount;
#[cfg(not(flatwater_kernel))]
pub(crate) mod observed;
pub(crate) mod second_library;
pub(crate) mod watch;
