//! One connection. The order of opening it, its prepared statements, and running them.

pub(crate) mod analyse;
mod asks;
pub(crate) mod backup;
mod cannot_open;
pub(crate) mod cursors;
mod drops;
pub(crate) mod dump;
pub(crate) mod execute;
mod failed_writes;
pub(crate) mod hidden;
mod history;
mod in_force;
pub(crate) mod inline;
pub(crate) mod nearest;
pub(crate) mod open;
pub(crate) mod parts;
pub(crate) mod prepare;
pub(crate) mod reads;
mod recording;
pub(crate) mod schema;
pub(crate) mod script;
mod settings;
pub(crate) mod statements;
pub(crate) mod tables;
pub(crate) mod violations;
pub(crate) mod whole;
pub(crate) mod writable;
