//! What needs a connection for itself: closures of the user, migrations, dumps and backups.
//!
//! Owns: what they do on the connection, and making it usable again. Runs on the thread that has the connection, and blocks it.
//! Leaves out: their transactions, and who has the connection (`workers`).

pub(crate) mod change_key;
pub(crate) mod copy;
mod copy_with_key;
pub(crate) mod history;
pub(crate) mod import_statements;
pub(crate) mod lend;
pub(crate) mod migration_statements;
pub(crate) mod page_copy;
pub(crate) mod reset;
pub(crate) mod violations;
