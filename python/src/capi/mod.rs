//! What is written by hand against Python's C API, because it is in the path of every call: the type of calls, and
//! tuples.
//!
//! Owns: all unsafe code of the package. Invariant: no panic crosses into C.

pub(crate) mod call_type;
pub(crate) mod tuples;
