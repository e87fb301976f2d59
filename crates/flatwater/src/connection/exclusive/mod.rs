//! What needs a connection for itself: closures of the user, migrations, dumps and backups.
//!
//! Owns: what they do on the connection, and making it usable again. Runs on the thread that has the connection, and blocks it.
//! Leaves out: their transactions, and who has the connection (`workers`).

pub(crate) mod another_key;
pub(crate) mod copy;
pub(crate) mod copy_target;
pub(crate) mod import_statements;
pub(crate) mod lend;
pub(crate) mod migration;
