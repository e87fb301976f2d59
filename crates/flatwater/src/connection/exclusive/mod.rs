//! What has a connection to itself: closures of the user, migrations, dumps and backups.

pub(crate) mod dump_statements;
pub(crate) mod history;
pub(crate) mod lend;
pub(crate) mod migration_statements;
pub(crate) mod page_copy;
pub(crate) mod restore;
pub(crate) mod violations;
