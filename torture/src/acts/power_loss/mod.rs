//! Power loss: the act records what a load wrote and synced, and builds the files as they could be if the power had
//! failed at some point. Plain SQLite and Flatwater open each image.
//!
//! Owns: one round. The load is a separate process ([`load`]) under the recorder, a library that is preloaded into it
//! (package `flatwater-torture-recorder`). The [`disk`] knows what is certainly on the disk, an [`image`] chooses among
//! what may be, the [`judge`] knows what an image must contain.

mod content;
mod disk;
mod image;
mod images;
mod judge;
mod load;
mod log;
mod plan;
mod said;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::acts::Act;
use crate::finding::Finding;
use crate::parts;
use crate::plain;
use crate::round::Round;

use self::disk::Disk;
use self::image::Choice;
use self::images::Images;
use self::log::{Entry, Log};
use self::plan::{MAIN, MAIN_SCHEMA, Plan, SIDE, SIDE_SCHEMA};
use self::said::Floor;

pub(crate) const ACT: Act = Act {
    name: "power-loss",
    about: "builds the files as they could be after a power failure, and opens them",
    round,
    parts: &[("power-loss-load", load::part)],
};

/// The divisor of the round's time that gives the load's time. The images take the rest.
const LOAD: u32 = 8;
/// A load that has not ended after this time counts as hung.
const HANGS: Duration = Duration::from_secs(90);

/// The content of files, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// What is on the disk when a load begins.
#[derive(Default)]
struct Base {
    files: Files,
    /// What must remain on the disk.
    floor: Floor,
}

fn round(round: &mut Round) -> Result<(), Finding> {
    let plan = Plan::of(round.seed);
    let directory = round.path("load");
    fs::create_dir(&directory)?;
    let directory = fs::canonicalize(directory)?;
    let mut base = Base { files: made_before(&plan, &directory)?, ..Base::default() };
    base.floor.is_made = plan.is_made_before;
    let until = round.until;
    for life in 0..plan.lives {
        let left = until.saturating_duration_since(Instant::now()) / (plan.lives - life);
        round.until = Instant::now() + left;
        images::put(&directory, &base.files)?;
        base = one_life(round, &plan, &directory, base)?;
    }
    round.counts.add("rounds with encrypted files", plan.is_encrypted.into());
    for what in ["acknowledged writes", "syncs", "crash images checked", "unsynced writes dropped"] {
        if round.counts.0.get(what).is_none_or(|count| *count == 0) {
            return Err(Finding::new(format!("no {what}")).with_history(format!("{plan:?}")));
        }
    }
    Ok(())
}

/// Runs a load, and checks what may be left of it. Returns one image, from which the next load continues.
fn one_life(round: &mut Round, plan: &Plan, directory: &Path, base: Base) -> Result<Base, Finding> {
    let log = recorded(round, directory)?;
    let all = log.entries.len();
    let ever = base.floor.clone().and_until(plan, &log, all);
    let syncs = log.entries.iter().filter(|entry| matches!(entry, Entry::SyncEnd { .. })).count();
    round.counts.add("acknowledged writes", (ever.main.len() - base.floor.main.len()) as u64);
    round.counts.add("syncs", syncs as u64);
    round.counts.add("failed writes", ever.refused.len() as u64);
    nothing_was_missed(&log, &base.files, directory)?;
    let images = Images { plan, log: &log, base: &base, ever };
    images.a_lie_is_found(round)?;
    images.look(round)
}

/// Creates the files that exist before the load, with plain SQLite.
fn made_before(plan: &Plan, directory: &Path) -> Result<Files, Finding> {
    if plan.is_made_before {
        let main = plain::open(&directory.join(MAIN), plan.is_encrypted)?;
        main.execute_batch(&format!("PRAGMA journal_mode = wal; {MAIN_SCHEMA}"))?;
    }
    if plan.has_side {
        let mode = if plan.side_has_journal { "delete" } else { "wal" };
        plain::open(&directory.join(SIDE), plan.is_encrypted)?
            .execute_batch(&format!("PRAGMA journal_mode = {mode}; {SIDE_SCHEMA}"))?;
    }
    files(directory)
}

/// Returns the files of a directory that survive a power failure.
fn files(directory: &Path) -> Result<Files, Finding> {
    let mut files = Files::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with("-shm") {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(files)
}

/// Runs the load under the recorder.
fn recorded(round: &Round, directory: &Path) -> Result<Log, Finding> {
    let (log, errors) = (round.path("log"), round.path("errors"));
    if log.exists() {
        fs::remove_file(&log)?;
    }
    let length = round.until.saturating_duration_since(Instant::now()) / LOAD;
    let mut load = parts::part("power-loss-load")
        .arg(directory)
        .args([round.seed.to_string(), length.as_millis().to_string()])
        .env("LD_PRELOAD", parts::library("libflatwater_torture_recorder.so")?)
        .env("FLATWATER_RECORDED_DIRECTORY", directory)
        .env("FLATWATER_RECORDED_LOG", &log)
        .stderr(Stdio::from(fs::File::create(&errors)?))
        .spawn()?;
    let Some(status) = parts::ended_or_killed(&mut load, HANGS)? else {
        return Err(Finding::new("the load did not end"));
    };
    let errors = fs::read_to_string(errors)?;
    if !status.success() || !errors.is_empty() {
        return Err(Finding::new(format!("the load ended with {status}")).with_history(errors));
    }
    Log::read(&log)
}

/// Checks that the log alone reproduces the existing files, so that the recorder missed nothing.
fn nothing_was_missed(log: &Log, base: &Files, directory: &Path) -> Result<(), Finding> {
    let mut disk = Disk::new(log, base);
    disk.go_to(log.entries.len());
    let (built, there) = (Choice::default().build(&disk), files(directory)?);
    if built == there {
        return Ok(());
    }
    let lengths = |files: &Files| files.iter().map(|(name, content)| (name.clone(), content.len())).collect::<Vec<_>>();
    Err(Finding::new("the recorder missed something").with_history(format!(
        "by the log: {:?}\nthere: {:?}",
        lengths(&built),
        lengths(&there)
    )))
}
