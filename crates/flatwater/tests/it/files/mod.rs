//! The database file: how it is opened, what is in it and beside it, and copies of it.

mod backup_progress;
mod backups;
mod earlier_versions;
mod how_to_open;
mod integrity;
mod migrating_processes;
mod migrations;
mod new_files;
mod observe;
mod one_engine;
mod read_only_directory;
mod rebuilds;
mod serialized;
mod settings;
#[cfg(feature = "testing")]
mod test_databases;
#[cfg(not(feature = "sqlcipher"))]
mod unencrypted;
mod untrusted;
mod vacuums;
