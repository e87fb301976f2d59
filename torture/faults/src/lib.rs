//! Functions of the C library in whose place this library stands when it is preloaded: open, read, write, sync, truncate,
//! map, lock, close, unlink. A call that the plan means fails, is cut short, or waits; every other one is made.
//!
//! Only calls on a database's files in one directory count, which `FLATWATER_TORTURE_FAULTS` names: `main.db` and
//! `other.db`, what lies beside them, and the directory itself (`files`). The program says which calls are meant by
//! opening a path that does not exist (`control`), so that it needs no `unsafe` and is not linked to this library.
//!
//! Invariants: nothing here allocates, takes a lock or unwinds, and the system is called directly, so that nothing here
//! meets itself. Linux with 64 bits only.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod calls;
mod control;
mod files;
mod plan;
mod system;
