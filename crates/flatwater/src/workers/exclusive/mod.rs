//! What needs the writer's connection for itself: closures of the program, migrations, dumps, VACUUM, another key.

pub(crate) mod connection;
pub(crate) mod import_script;
pub(crate) mod memory_backup;
pub(crate) mod migration;
pub(crate) mod rekey;
pub(crate) mod vacuum;
