//! The peers `busy-*`: several processes on one file, each peer with another way to wait for the lock.
//!
//! Owns: the command line, the list of lanes, and the JSON on standard output. All peers use one SQLite, and each
//! process is this program again. Leaves out: the lanes, which are a file for each kind; fresh directories and
//! repetition, which are the tool's work.

mod child;
mod clock;
mod family;
mod figures;
mod hot;
mod live;
mod mode;
mod ring;
mod study;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use flatwater::rusqlite::Connection;
use lab_kit::lane::Info;
use lab_kit::{Asked, exit, say, version_in};
use serde_json::{Value, json};

use crate::figures::Figures;
use crate::hot::Hot;
use crate::mode::Mode;
use crate::study::Study;

/// Measures processes that write to one file
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    asked: Asked,
}

/// Which of this program's peers it is, if none is named.
const USUAL: &str = "busy-turnstile";

/// What a lane is of.
enum Kind {
    Hot(Hot),
    Study(Study),
    Live,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    exit(match &arguments[1..] {
        [word, order] if word == child::CHILD => child::run(order),
        _ => answer(&Arguments::parse().asked).and_then(|answer| say(&answer)),
    })
}

fn answer(asked: &Asked) -> Result<Value> {
    let name = asked.name.as_deref().unwrap_or(USUAL);
    let mode = Mode::of(name)?;
    let mut answer = match (&asked.lane, &asked.dir) {
        (Some(lane), Some(dir)) => trial(mode, name, lane, dir, asked.quick)?,
        _ => json!({ "lanes": lanes(mode).into_iter().map(|(info, _)| info).collect::<Vec<_>>() }),
    };
    let (sqlite, compile_options) = sqlite()?;
    let own = if mode.is_flatwater() { "flatwater" } else { "rusqlite" };
    let version = version_in(include_str!("../Cargo.lock"), own);
    // The list says `version`, and a trial `peer_version`.
    let about = json!({ "peer": name, "sqlite": sqlite, "compile_options": compile_options });
    answer.as_object_mut().context("an answer is an object")?.extend(about.as_object().cloned().unwrap_or_default());
    answer[if asked.lane.is_some() { "peer_version" } else { "version" }] = version.into();
    Ok(answer)
}

/// The lanes of a mode.
fn lanes(mode: Mode) -> Vec<(Info, Kind)> {
    // A plain program that polls is beside Flatwater's in the lanes that are not mixed.
    let is_offered = |hot: &Hot| match mode {
        // Who thinks has the turn meanwhile.
        Mode::Ring => !hot.mixed && hot.think_us == 0,
        _ => !hot.mixed || mode.is_flatwater() || mode == Mode::Default,
    };
    let hot = hot::all().into_iter().filter(is_offered);
    let mut lanes: Vec<_> =
        hot.map(|hot| (Info::focused("busy", hot.name(), hot.about(), "turns"), Kind::Hot(hot))).collect();
    let study = |study: Study| (Info::focused("busy", study.name(), study.about(), "transactions"), Kind::Study(study));
    if mode != Mode::Ring {
        lanes.extend(study::all().into_iter().map(study));
    }
    if live::offered(mode) {
        lanes.push((Info::focused("live", live::NAME, live::ABOUT, "commits"), Kind::Live));
    }
    lanes
}

fn trial(mode: Mode, peer: &str, lane: &str, dir: &Path, quick: bool) -> Result<Value> {
    let path = dir.join("lab.db");
    let found = lanes(mode).into_iter().find(|(info, _)| info.name == lane);
    let Some((_, kind)) = found else { bail!("{peer} has no lane {lane:?}") };
    if !dir.is_dir() || path.exists() {
        bail!("{} is not a directory without a database of an earlier trial", dir.display());
    }
    let figures: Figures = match kind {
        Kind::Hot(hot) => hot.run(mode, &path, quick)?,
        Kind::Study(study) => study.run(mode, &path, quick)?,
        Kind::Live => live::run(mode, &path, quick)?,
    };
    let mut report = figures.report();
    report.insert("lane".into(), lane.into());
    Ok(report.into())
}

/// SQLite's version and compile options.
fn sqlite() -> Result<(String, Vec<String>)> {
    let connection = Connection::open_in_memory()?;
    let version = connection.query_row("SELECT sqlite_version()", [], |row| row.get(0))?;
    let mut statement = connection.prepare("PRAGMA compile_options")?;
    let options = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok((version, options))
}
