//! The calls of a front end that care for a database, and those on a blob. Part of the interface that `bindings` is.
//!
//! Owns: making them. Runs on the caller's thread. Leaves out: what they do (`api`).

use std::path::Path;

use flatwater_sqlite::CheckpointMode;

use super::front_call::{FrontCall, Output};
use super::{BackupTarget, Copy, Target};
use crate::api::blob::Blob;
use crate::api::maintenance::{self, incremental_vacuum as work_of, pages_freed};
use crate::options::key::Key;
use crate::workers::work::Work;

/// As [`Database::vacuum`](crate::Database::vacuum).
#[must_use]
pub fn vacuum(on: &Target) -> FrontCall {
    let work = on.0.text("VACUUM").map(Work::Vacuum);
    on.call("vacuum", work, |answer, _| answer.done().map(|()| Output::Done))
}

/// As [`Database::vacuum_into`](crate::Database::vacuum_into).
#[must_use]
pub fn vacuum_into(on: &Target, path: &Path) -> FrontCall {
    let work = BackupTarget::new(path).map(|target| Work::Copy(Box::new(Copy::Compact(target))));
    on.call("vacuum_into", work, |answer, _| answer.done().map(|()| Output::Done))
}

/// As [`Database::incremental_vacuum`](crate::Database::incremental_vacuum).
#[must_use]
pub fn incremental_vacuum(on: &Target, pages: u32) -> FrontCall {
    on.call("incremental_vacuum", work_of(&on.0, pages), |answer, _| pages_freed(answer).map(Output::Changes))
}

/// As [`Database::serialize`](crate::Database::serialize).
#[must_use]
pub fn serialize(on: &Target) -> FrontCall {
    on.call("serialize", Ok(Work::Copy(Box::new(Copy::Bytes))), |answer, _| answer.bytes().map(Output::Bytes))
}

/// Copies the database into a file that is encrypted with `key`, or is plain.
#[must_use]
pub fn export(on: &Target, path: &Path, key: Option<Key>) -> FrontCall {
    let work = BackupTarget::with_key(path, key).map(|target| Work::Copy(Box::new(Copy::Pages(target))));
    on.call("export", work, |answer, _| answer.done().map(|()| Output::Done))
}

/// As [`Database::rekey`](crate::Database::rekey).
#[must_use]
pub fn rekey(on: &Target, key: Key) -> FrontCall {
    let work = key.check().map(|()| Work::Rekey(key));
    on.call("rekey", work, |answer, _| answer.done().map(|()| Output::Done))
}

/// As [`Database::has_key`](crate::Database::has_key).
#[must_use]
pub fn has_key(on: &Target, key: Key) -> FrontCall {
    let work = key.check().map(|()| Work::HasKey(key));
    on.call("has_key", work, |answer, _| answer.flag().map(Output::Flag))
}

/// As [`Database::checkpoint`](crate::Database::checkpoint).
#[must_use]
pub fn checkpoint(on: &Target, mode: CheckpointMode) -> FrontCall {
    on.call("checkpoint", Ok(Work::Checkpoint(mode)), |answer, _| answer.checkpointed().map(Output::Checkpointed))
}

/// The SQL of a check of a database, or of one of its tables, as [`Database::integrity_check`](crate::Database::integrity_check)
/// runs it.
#[must_use]
pub fn check_sql(database: &str, table: Option<&str>, quick: bool) -> String {
    maintenance::check_sql(database, table, quick)
}

/// The SQL that tells which pages of an encrypted database cannot be decrypted, a problem in each row; `None` if it is not
/// encrypted. To be asked when a check found a problem, or failed, and its connection was given back: if there are such pages,
/// they are the problems.
#[must_use]
pub fn pages_sql(on: &Target, database: &str) -> Option<String> {
    maintenance::is_encrypted(&on.0).then(|| maintenance::pages_sql(database))
}

/// The problems that a row of it names.
pub fn problems(row: &str) -> impl Iterator<Item = String> {
    maintenance::problems(row)
}

/// Reads bytes of a blob, as [`Blob::read_at`] does.
#[must_use]
pub fn read_blob(blob: &Blob, position: usize, bytes: usize) -> FrontCall {
    let work = blob.to_read(position, bytes);
    Target::of(blob.session())
        .call("read_blob", Ok(work), |answer, _| answer.blob().map(|used| Output::Bytes(used.bytes)))
}

/// Writes bytes of a blob, as [`Blob::write_at`] does.
#[must_use]
pub fn write_blob(blob: &Blob, position: usize, bytes: Vec<u8>) -> FrontCall {
    let work = blob.to_write(position, bytes);
    Target::of(blob.session()).call("write_blob", Ok(work), |answer, _| answer.blob().map(|_| Output::Done))
}
