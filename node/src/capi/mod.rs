//! The border to Node-API (<https://nodejs.org/api/n-api.html>): all unsafe code of the package.
//!
//! Owns: values, functions, the memory that both sides use, and waking the loop. Invariants: a value is used in the call that it
//! belongs to and on no other thread, which its lifetime says; a panic becomes an exception. Leaves out: what the functions do.

pub(crate) mod cells;
#[cfg(debug_assertions)]
pub(crate) mod counted;
pub(crate) mod function;
pub(crate) mod objects;
pub(crate) mod value;
pub(crate) mod wake;
