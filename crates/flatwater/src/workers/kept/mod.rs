//! What a transaction, a read session and a connection of a caller have in common: a connection that is kept for one caller.

pub(crate) mod connection;
pub(crate) mod inbox;
pub(crate) mod transaction;
