//! What is written by hand against Python's C API, because it is in the path of every call: the type of calls, objects that the
//! garbage collector does not know, context variables, and long strings; because it is C: Arrow's streams and tables; and because PyO3
//! lacks it: the hook for audited events, attributes as `object` sets them, threads that end within a call, and states of threads.
//!
//! Owns: all unsafe code of the package. Invariant: no panic crosses into C.

pub(crate) mod arrow;
mod arrow_structs;
pub(crate) mod arrow_tables;
pub(crate) mod attributes;
pub(crate) mod audit;
pub(crate) mod call_type;
pub(crate) mod context_variable;
pub(crate) mod texts;
pub(crate) mod thread_end;
pub(crate) mod thread_state;
pub(crate) mod untracked;
