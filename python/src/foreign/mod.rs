//! Code of the program that the engine calls.

pub(crate) mod aggregates;
pub(crate) mod callbacks;
pub(crate) mod calls_python;
pub(crate) mod functions;
pub(crate) mod own_exceptions;
