//! The subcommands, a file each.

pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod check_sql;
pub(crate) mod checkpoint;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod live;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod query;
pub(crate) mod types;
