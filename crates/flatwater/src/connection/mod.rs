//! Floor 2: one connection. The order of opening it, its prepared statements, and running them.

pub(crate) mod analyse;
mod asks;
mod cannot_open;
pub(crate) mod execute;
pub(crate) mod inline;
pub(crate) mod open;
mod prepare;
pub(crate) mod schema;
mod settings;
pub(crate) mod statements;
pub(crate) mod whole;
pub(crate) mod writable;
