//! Executes a plan: one process and one new folder per trial, one row for each, and a result file that grows with them.
//!
//! A trial that fails is a row with an error. Leaves out: the choice of sides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;

use crate::figures::floor::{PacedBy, Rates};
use crate::figures::result::{Figures, Measured, Outcome, Row, Version};
use crate::measuring::peer::{Listing, Peer};
use crate::measuring::plan::{Trial, plan};
use crate::measuring::process::{self, Interrupt};

/// The minimum time between two writes of the file, because writing uses the disk that is being measured.
const BETWEEN_WRITES: Duration = Duration::from_secs(1);

/// One side of the measurement: a peer that was built, or one that could not be built.
pub struct Side {
    /// The side's name in the rows.
    pub name: String,
    /// The peer of this side.
    pub peer: Peer,
    /// The folder of its programs.
    pub target: PathBuf,
    /// The commit it was built from, in an `ab`.
    pub rev: Option<String>,
    /// Its versions and lanes, or why it cannot be measured.
    pub listing: std::result::Result<Listing, String>,
}

impl Side {
    /// Builds a peer and asks it for its lanes. Only an interrupt is an error: a broken peer is still a side.
    pub fn prepare(name: &str, peer: Peer, target: &Path, rev: Option<String>, interrupt: &Interrupt) -> Result<Self> {
        let progress = spinner(format!("building {name}"));
        let listing = peer
            .build(target, interrupt)
            .context("it does not build")
            .and_then(|()| peer.list(target, interrupt).context("it does not list its lanes"));
        progress.finish_and_clear();
        if interrupt.pressed() {
            bail!("interrupted before the first trial");
        }
        let listing = listing.map_err(|error| format!("{error:#}"));
        if let Err(error) = &listing {
            eprintln!("{name}: {error}");
        }
        Ok(Self { name: name.to_owned(), peer, target: target.to_owned(), rev, listing })
    }

    /// Returns whether the side has that lane. A broken side has every lane, and fails in it.
    fn takes_part(&self, lane: &str) -> bool {
        self.listing.as_ref().map_or(true, |listing| listing.lanes().contains_key(lane))
    }

    /// Returns what paces a lane of this side, if it is paced.
    pub fn paced_by(&self, lane: &str) -> Option<PacedBy> {
        self.listing.as_ref().ok()?.paced_by(lane)
    }

    fn version(&self) -> Version {
        let listing = self.listing.as_ref().cloned().unwrap_or_default();
        listing.version(&self.peer.language, self.rev.clone())
    }
}

/// The settings of a session.
pub struct Settings<'a> {
    /// The lanes, in order.
    pub lanes: &'a [String],
    /// The number of runs per side.
    pub runs: u32,
    /// Whether to run the small form of every lane.
    pub quick: bool,
    /// The folder in which the trials' folders are created.
    pub trials_dir: &'a Path,
    /// The time limit of one trial.
    pub limit: Duration,
    /// The path of the result; `None` means standard output.
    pub json: Option<&'a Path>,
    /// What the floor reaches flat out, for paced lanes.
    pub rates: Rates,
}

/// Executes the plan and fills `measured`. Returns whether every trial ran.
pub fn carry_out(sides: &[Side], settings: &Settings, measured: &mut Measured, interrupt: &Interrupt) -> Result<bool> {
    measured.versions = sides.iter().map(|side| (side.name.clone(), side.version())).collect();
    measured.lanes = lanes_of(sides, settings.lanes);
    measured.partial = true;
    let trials = plan(settings.lanes, sides.len(), settings.runs, |side, lane| {
        sides[side].takes_part(lane) && sides[side].listing.is_ok()
    });
    announce(measured, settings);
    broken_rows(sides, settings, measured);
    let progress = bar(trials.len());
    let mut written = None;
    for trial in &trials {
        let side = &sides[trial.side];
        progress.set_message(format!("{} {}", trial.lane, side.name));
        let outcome = one(side, trial, settings, interrupt);
        if interrupt.pressed() {
            break;
        }
        measured.results.push(row(side, trial, outcome));
        progress.inc(1);
        progress.suspend(|| say(measured, settings));
        if written.is_none_or(|at: Instant| at.elapsed() >= BETWEEN_WRITES) {
            save(measured, settings)?;
            written = Some(Instant::now());
        }
    }
    progress.finish_and_clear();
    measured.partial = interrupt.pressed();
    save(measured, settings)?;
    if settings.json.is_none() {
        println!("{}", serde_json::to_string(measured)?);
    }
    let failed: Vec<_> = measured.results.iter().filter(|row| row.error().is_some()).collect();
    // Once more at the end, where they are seen. They have no figures, so they need no unit.
    failed.iter().for_each(|row| eprintln!("{}", line(row, "")));
    Ok(!measured.partial && failed.is_empty())
}

fn save(measured: &Measured, settings: &Settings) -> Result<()> {
    settings.json.map_or(Ok(()), |path| measured.write(path))
}

fn lanes_of(sides: &[Side], wanted: &[String]) -> BTreeMap<String, crate::figures::result::Lane> {
    let listed = sides.iter().rev().filter_map(|side| side.listing.as_ref().ok()).flat_map(Listing::lanes);
    listed.filter(|(name, _)| wanted.contains(name)).collect()
}

/// Prints the paces.
fn announce(measured: &Measured, settings: &Settings) {
    for (lane, pace) in &measured.paces {
        put(&format!("{lane:<26} {pace}"), settings);
    }
}

/// Adds one row per lane for a peer that cannot be measured.
fn broken_rows(sides: &[Side], settings: &Settings, measured: &mut Measured) {
    for side in sides {
        let Err(error) = &side.listing else { continue };
        for lane in settings.lanes {
            let (lane, peer, rev) = (lane.clone(), side.name.clone(), side.rev.clone());
            let outcome = Outcome::Failed { error: error.clone() };
            measured.results.push(Row { lane, peer, run: 0, order: 0, rev, outcome });
            say(measured, settings);
        }
    }
}

fn row(side: &Side, trial: &Trial, outcome: Result<Figures>) -> Row {
    Row {
        lane: trial.lane.to_owned(),
        peer: side.name.clone(),
        run: trial.run,
        order: trial.order,
        rev: side.rev.clone(),
        outcome: match outcome {
            Ok(figures) => Outcome::Measured(Box::new(figures)),
            Err(error) => Outcome::Failed { error: format!("{error:#}") },
        },
    }
}

/// The part of a trial's output that is kept.
#[derive(Deserialize)]
struct Printed {
    lane: String,
    #[serde(flatten)]
    figures: Figures,
}

/// Runs one trial in a new folder.
pub fn one(side: &Side, trial: &Trial, settings: &Settings, interrupt: &Interrupt) -> Result<Figures> {
    let folder = tempfile::Builder::new().prefix("trial-").tempdir_in(settings.trials_dir)?;
    let mut command = side.peer.call_in(trial.run, &side.target)?;
    command.args(["--lane", trial.lane, "--dir"]).arg(folder.path());
    if settings.quick {
        command.arg("--quick");
    }
    if let Some(by) = side.paced_by(trial.lane) {
        command.arg("--per-second").arg(by.pace(&settings.rates)?.per_second().to_string());
    }
    let text = process::run(&mut command, settings.limit, interrupt)?.success()?;
    let printed: Printed = serde_json::from_str(&text).context("what it printed is not a result")?;
    if printed.lane != trial.lane {
        bail!("it measured lane {} when asked for {}", printed.lane, trial.lane);
    }
    match printed.figures.contradiction() {
        Some(contradiction) => bail!("its figures cannot be true: {contradiction}"),
        None => Ok(printed.figures),
    }
}

/// Prints one line for the newest row.
fn say(measured: &Measured, settings: &Settings) {
    let Some(row) = measured.results.last() else {
        return;
    };
    let unit = measured.lanes.get(&row.lane).map_or("ops", |lane| lane.ops_unit.as_str());
    put(&line(row, unit), settings);
}

/// Prints a line, on standard error if standard output is for the JSON.
fn put(line: &str, settings: &Settings) {
    if settings.json.is_some() { println!("{line}") } else { eprintln!("{line}") }
}

fn line(row: &Row, unit: &str) -> String {
    let Row { lane, peer, run, .. } = row;
    match &row.outcome {
        Outcome::Failed { error } => format!("{lane:<26} {peer:<20} run {run}  error: {}", error.replace('\n', " ")),
        Outcome::Measured(figures) => format!(
            "{lane:<26} {peer:<20} run {run}  p50 {:>10.2} us  p99 {:>10.2} us  {:>10.0} {unit}/s",
            figures.p50_us,
            figures.p99_us,
            figures.ops as f64 / figures.seconds
        ),
    }
}

fn bar(trials: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} trials, {eta} left  {wide_msg}");
    ProgressBar::new(trials as u64).with_style(style.expect("the template is valid"))
}

fn spinner(message: String) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(message);
    spinner.enable_steady_tick(Duration::from_millis(200));
    spinner
}
