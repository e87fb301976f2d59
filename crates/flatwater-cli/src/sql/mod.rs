//! The SQL of the user: its statements, their parameters, and running them.

pub(crate) mod dump;
pub(crate) mod parameters;
pub(crate) mod runner;
pub(crate) mod statements;
