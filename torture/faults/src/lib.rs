//! A library to preload, which replaces functions of the C library: open, read, write, sync, truncate, map, lock,
//! close, unlink, start of a thread. A call that the plan selects fails, is cut short, or waits; every other call is made.
//!
//! Of the calls on files only those on a database's files in one directory count, which `FLATWATER_TORTURE_FAULTS` names:
//! `main.db` and `other.db`, the files beside them, and the directory itself (`files`). Starts of threads count as calls on
//! the process. The program selects calls by opening a path that does not exist (`control`), so it needs no `unsafe` and is
//! not linked to this library.
//!
//! Runs on the thread of each call. Invariants: this library does not allocate, take a lock or unwind, and it makes
//! system calls directly, so it never calls its own functions. The one exception is the start of a thread, for which it
//! calls the C library's function (`threads`). 64-bit Linux only.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

mod calls;
mod control;
mod files;
mod plan;
mod system;
mod threads;
