//! The driver of the conformance scenarios for Rust (docs/design/conformance.md).
//!
//! Owns: running one scenario in one place, and the plain check. A scenario runs on one thread, on a runtime of its own.
//! Leaves out: finding the files, and what holds for all of them together, which the tests do.

mod check;
mod fields;
pub mod format;
mod opened;
mod outcome;
mod plain;
mod program;
mod step;
mod value;

use std::path::Path;
use std::time::Duration;

use crate::format::Scenario;
use crate::program::Program;

/// The time after which a scenario counts as hung. It only detects hangs.
const HANGS: Duration = Duration::from_secs(120);

/// Where the database of a scenario is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file in an empty directory.
    File,
    /// Memory.
    Memory,
    /// A server with an empty database, by its address.
    Server(String),
}

/// Runs a scenario on Flatwater.
///
/// # Errors
/// The number of the step, and what was otherwise than expected.
pub fn run(scenario: &Scenario, place: &Place) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = directory.path().join("scenario.db");
    let path = match place {
        Place::File => file.display().to_string(),
        Place::Memory => ":memory:".to_owned(),
        Place::Server(address) => address.clone(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let run = Program::new(path, matches!(place, Place::Server(_)), directory.path()).run(scenario);
    let ended = runtime.block_on(async { tokio::time::timeout(HANGS, run).await });
    ended.map_err(|_| "it hangs".to_owned())??;
    if scenario.writes_file() || !file.exists() { Ok(()) } else { is_whole(&file) }
}

/// Runs a scenario that consists of plain SQL without Flatwater. Returns `None` for any other.
pub fn run_plain(scenario: &Scenario) -> Option<Result<(), String>> {
    plain::is_plain(scenario).then(|| plain::run(scenario))
}

fn is_whole(file: &Path) -> Result<(), String> {
    let plain = rusqlite::Connection::open(file).map_err(|error| error.to_string())?;
    let said: String =
        plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap_or_else(|e| e.to_string());
    if said == "ok" { Ok(()) } else { Err(format!("the file is damaged afterwards: {said}")) }
}
