//! Measures SQLite without and with SQLITE_ENABLE_SETLK_TIMEOUT in turns, and shows with strace what the flag changes.
//!
//! Owns: the plan, the result in the lab's form, the printed tables. Leaves out: the load (`load`, built twice by
//! `run.sh`), how its processes are started (`process`), and what strace says (`probe`).

mod figures;
mod probe;
mod process;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use flatwater_lab::figures::machine::Machine;
use flatwater_lab::figures::result::{
    FORMAT, Figures, Flags, Kind, Lane, Measured, Outcome, Row, Version, write_atomically,
};
use flatwater_lab::measuring::repository::Repository;
use flatwater_lab::verdicts::compare::{Comparison, Request};
use setlk_timeout::{Build, Job, Mixed, Setlk, Task};

use crate::process::{Load, Sides, answer};

/// A side: the build, and what `sqlite3_setlk_timeout` gets. The first is the base.
const SIDES: [(&str, bool, i32); 4] =
    [("plain", false, 0), ("setlk_off", true, 0), ("setlk_50", true, 50), ("setlk_100", true, 100)];
/// The option that the two builds must differ in, and in no other.
const OPTION: &str = "ENABLE_SETLK_TIMEOUT";
/// The lane that no lock is taken in.
const GUARD: &str = "noop_select_1";
const PROCESSES: usize = 4;

/// The experiment on SQLITE_ENABLE_SETLK_TIMEOUT
#[derive(Parser)]
struct Args {
    /// The load without the flag
    #[arg(long)]
    plain: PathBuf,
    /// The load with the flag
    #[arg(long)]
    flagged: PathBuf,
    /// Where the result goes; the medians and what strace saw go beside it
    #[arg(long, default_value = "target/setlk.json")]
    json: PathBuf,
    /// Where the databases are
    #[arg(long, default_value = "target/trials")]
    trials: PathBuf,
    /// Runs a side
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// Short trials and one run: no evidence
    #[arg(long)]
    quick: bool,
    /// Only what strace sees
    #[arg(long)]
    probe: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    std::fs::create_dir_all(&args.trials)?;
    let sides = Sides { plain: args.plain.clone(), flagged: args.flagged.clone(), trials: args.trials.clone() };
    let builds = builds(&sides)?;
    let seen = probe::probe(&sides)?;
    seen.print();
    if args.probe {
        return write_json(&args.json.with_extension("probe.json"), &seen);
    }
    let measured = measure(&args, &sides, &builds)?;
    measured.write(&args.json)?;
    let medians = figures::medians(&measured);
    figures::print(&medians);
    write_json(&args.json.with_extension("probe.json"), &seen)?;
    write_json(&args.json.with_extension("medians.json"), &medians)?;
    for (side, ..) in &SIDES[1..] {
        let request = Request { controls: vec![GUARD.to_owned()], anyway: true, ..Request::default() };
        let comparison = Comparison::within(&measured, SIDES[0].0, side, &request);
        println!("\n{side} against {}", SIDES[0].0);
        for lane in &comparison.lanes {
            println!("  {:<24} {}: {}", lane.lane, lane.verdict, lane.reason);
        }
    }
    println!("\n{}", args.json.display());
    Ok(())
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    write_atomically(path, &text)
}

/// Returns what the two programs were built with, if it differs in the flag alone.
fn builds(sides: &Sides) -> Result<[Build; 2]> {
    let describe = |flagged: bool| -> Result<Build> {
        let trial = sides.trial()?;
        answer(sides.call(flagged, &trial.job(Setlk::default(), Task::Prepare))?)
    };
    let (plain, flagged) = (describe(false)?, describe(true)?);
    let added: Vec<_> = flagged.options.iter().filter(|option| !plain.options.contains(option)).collect();
    let gone: Vec<_> = plain.options.iter().filter(|option| !flagged.options.contains(option)).collect();
    ensure!(
        added == [OPTION] && gone.is_empty(),
        "the builds differ in more than the flag: {added:?} against {gone:?}"
    );
    println!("SQLite {}: the builds differ in {OPTION} alone", plain.sqlite);
    Ok([plain, flagged])
}

/// What a trial does, and of which lanes its figures are.
struct Trials {
    name: &'static str,
    processes: usize,
    task: Task,
    writes: Option<&'static str>,
    reads: Option<&'static str>,
}

fn loads(quick: bool) -> [Trials; 4] {
    let (long, short) = if quick { (0.5, 0.2) } else { (5.0, 1.0) };
    let mixed = Mixed { seconds: long, readers: 3, checkpoints: true, hold_us: 0, think_us: 250 };
    let apart = Mixed { readers: 1, hold_us: 200, think_us: 1000, ..mixed };
    [
        Trials {
            name: "one process: a writer, three readers, a checkpointer",
            processes: 1,
            task: Task::Mixed(mixed),
            writes: Some("setlk_threads_writes"),
            reads: Some("setlk_threads_reads"),
        },
        Trials {
            name: "four processes, each with a writer that holds the lock for 200 us and a reader; one checkpointer",
            processes: PROCESSES,
            task: Task::Mixed(apart),
            writes: Some("setlk_processes_writes"),
            reads: Some("setlk_processes_reads"),
        },
        Trials {
            name: "one connection that writes, and nobody beside it",
            processes: 1,
            task: Task::Alone { seconds: short },
            writes: Some("setlk_alone"),
            reads: None,
        },
        Trials {
            name: "one connection that takes no lock: SELECT 1, mean of 100",
            processes: 1,
            task: Task::Noop { seconds: short },
            writes: None,
            reads: Some(GUARD),
        },
    ]
}

fn measure(args: &Args, sides: &Sides, builds: &[Build; 2]) -> Result<Measured> {
    let loads = loads(args.quick);
    let mut measured = empty(args, builds, &loads)?;
    let began = Instant::now();
    for run in 0..if args.quick { 1 } else { args.runs } {
        for load in &loads {
            // Every second run has the sides the other way round.
            let order: Vec<usize> = if run % 2 == 0 { (0..4).collect() } else { (0..4).rev().collect() };
            for (order, side) in (0..).zip(order) {
                let rows = trial(sides, load, side);
                for (lane, outcome) in rows {
                    let (lane, peer) = (lane.to_owned(), SIDES[side].0.to_owned());
                    measured.results.push(Row { lane, peer, run, order, rev: None, outcome });
                }
            }
        }
        println!("run {} after {:.0} s", run + 1, began.elapsed().as_secs_f64());
    }
    measured.partial = measured.results.iter().any(|row| row.error().is_some());
    for row in measured.results.iter().filter(|row| row.error().is_some()) {
        println!("{} {} run {}: {}", row.lane, row.peer, row.run, row.error().unwrap_or_default());
    }
    Ok(measured)
}

/// Runs one side of a load once, and returns a row's content for each of its lanes.
fn trial(sides: &Sides, load: &Trials, side: usize) -> Vec<(&'static str, Outcome)> {
    let (_, flagged, ms) = SIDES[side];
    let counted = sides.trial().and_then(|trial| {
        let setlk = Setlk { ms, on_connect: false };
        sides.prepare(flagged, &trial)?;
        let jobs: Vec<Job> = (0..load.processes).map(|at| trial.job(setlk, load.task.nth(at))).collect();
        Load::start(&jobs, |job| sides.call(flagged, job))?.finish()
    });
    let figures = |lane, pick: fn(&setlk_timeout::Counted) -> &Vec<u64>| -> (&'static str, Outcome) {
        let figures: Result<Figures> = match &counted {
            Ok(counted) => figures::figures(counted, pick),
            Err(error) => Err(anyhow::anyhow!("{error:#}")),
        };
        match figures {
            Ok(figures) => (lane, Outcome::Measured(Box::new(figures))),
            Err(error) => (lane, Outcome::Failed { error: format!("{error:#}") }),
        }
    };
    let writes = load.writes.map(|lane| figures(lane, |counted| &counted.writes));
    let reads = load.reads.map(|lane| figures(lane, |counted| &counted.reads));
    writes.into_iter().chain(reads).collect()
}

/// Only the first process of a load has a checkpointer.
trait Nth {
    fn nth(&self, at: usize) -> Task;
}

impl Nth for Task {
    fn nth(&self, at: usize) -> Task {
        match self {
            Task::Mixed(how) => Task::Mixed(Mixed { checkpoints: how.checkpoints && at == 0, ..*how }),
            other => other.clone(),
        }
    }
}

/// The result without its rows.
fn empty(args: &Args, builds: &[Build; 2], loads: &[Trials]) -> Result<Measured> {
    let repository = Repository::here()?;
    let state = repository.state();
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let rustc = Command::new("rustc").arg("--version").output().context("cannot start rustc")?;
    let versions = SIDES.iter().map(|&(side, flagged, _)| {
        let build = &builds[usize::from(flagged)];
        let version = Version {
            version: format!("rusqlite, {side}"),
            sqlite: build.sqlite.clone(),
            compile_options: build.options.clone(),
            language: "rust".to_owned(),
            rev: None,
        };
        (side.to_owned(), version)
    });
    let lane = |load: &Trials, name: &str, what: &str| {
        let about = format!("{}: {what}", load.name);
        let (tag, group, ops_unit) = ("focused".to_owned(), "locks".to_owned(), "ops".to_owned());
        (name.to_owned(), Lane { about, tag, group, ops_unit })
    };
    let lanes = loads.iter().flat_map(|load| {
        let writes =
            if load.processes == 1 && load.reads.is_none() { "a write" } else { "the wait for the write lock" };
        let writes = load.writes.map(|name| lane(load, name, writes));
        writes.into_iter().chain(load.reads.map(|name| lane(load, name, "a read")))
    });
    Ok(Measured {
        format: FORMAT,
        id: format!("{started}-{}", std::process::id()),
        started,
        kind: Kind::Run,
        machine: Machine::here(&args.trials),
        versions: versions.collect(),
        flags: Flags {
            rustc: String::from_utf8_lossy(&rustc.stdout).trim().to_owned(),
            sqlite_flags: std::env::var("LIBSQLITE3_FLAGS").unwrap_or_default(),
        },
        commit: state.commit,
        dirty: state.dirty,
        partial: true,
        quick: args.quick,
        runs: if args.quick { 1 } else { args.runs },
        controls: vec![GUARD.to_owned()],
        notes: Vec::new(),
        paces: Default::default(),
        lanes: lanes.collect(),
        results: Vec::new(),
    })
}
