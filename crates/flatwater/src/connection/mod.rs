//! Floor 2: one connection. The order of opening it, what a text may do on it, its prepared statements, running them.

mod asks;
mod bytecode;
mod cannot_open;
pub(crate) mod catalogue;
pub(crate) mod class;
#[cfg(test)]
mod gaps;
pub(crate) mod judge;
pub(crate) mod learnt;
mod opcodes;
pub(crate) mod open;
pub(crate) mod pragma;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod seen;
mod settings;
#[cfg(test)]
mod shapes;
pub(crate) mod statements;
pub(crate) mod stay;
pub(crate) mod words;
pub(crate) mod writable;
