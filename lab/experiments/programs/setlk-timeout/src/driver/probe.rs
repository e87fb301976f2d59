//! Whether the file layer waits: calls under strace, one at a time beside a process that holds a lock, and a whole
//! load.
//!
//! Counts of calls are facts and no timings: they do not depend on how quiet the machine is. The times are only shown
//! because a wait of 50 ms cannot be mistaken for none.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use setlk_timeout::{Call, Held, Job, MARKS, Mixed, Probed, Setlk, Task};

use crate::process::{Load, Sides};
use crate::{Nth, PROCESSES, SIDES};

/// The byte of the -shm file that the writer locks.
const WRITE_LOCK: &str = "l_start=120,";

/// What strace counted. `setlkw` is the only command that waits.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Calls {
    /// Attempts that answer at once, and unlocks.
    setlk: u64,
    refused: u64,
    setlkw: u64,
    getlk: u64,
    /// Attempts to lock the writers' byte, a part of `setlk`.
    write_lock: u64,
}

/// One call beside a holder.
#[derive(Serialize)]
struct One {
    call: String,
    held: String,
    side: String,
    answer: String,
    took_us: f64,
    calls: Calls,
}

/// A whole load.
#[derive(Serialize)]
struct Whole {
    side: String,
    writes: usize,
    reads: usize,
    calls: Calls,
}

/// Everything that strace saw.
#[derive(Serialize)]
pub(crate) struct Seen {
    one: Vec<One>,
    whole: Vec<Whole>,
}

pub(crate) fn probe(sides: &Sides) -> Result<Seen> {
    let found = Command::new("strace").arg("--version").output();
    found.context("the probe needs strace; install it with your system's packages")?;
    let off = |(name, flagged, ms)| (name, flagged, Setlk { ms, on_connect: false });
    let more = [
        ("setlk_endless", true, Setlk { ms: -1, on_connect: false }),
        ("setlk_100, on connect", true, Setlk { ms: 100, on_connect: true }),
    ];
    let cases = [
        (Call::First, Held::Nothing),
        (Call::Read, Held::Nothing),
        (Call::Write, Held::Nothing),
        (Call::Write, Held::Write),
        (Call::Checkpoint, Held::Write),
        (Call::Checkpoint, Held::Read),
    ];
    let mut one = Vec::new();
    for (call, held) in cases {
        for (side, flagged, setlk) in SIDES.into_iter().map(off).chain(more) {
            let (probed, calls) = alone(sides, (flagged, setlk), call, held)?;
            let (call, held) = (format!("{call:?}"), format!("{held:?}"));
            one.push(One { call, held, side: side.to_owned(), answer: probed.answer, took_us: probed.took_us, calls });
        }
    }
    let whole = SIDES.into_iter().map(|side| load(sides, side)).collect::<Result<_>>()?;
    Ok(Seen { one, whole })
}

fn alone(sides: &Sides, (flagged, setlk): (bool, Setlk), call: Call, held: Held) -> Result<(Probed, Calls)> {
    let trial = sides.trial()?;
    sides.prepare(flagged, &trial)?;
    let mut holder = Load::start(&[trial.job(setlk, Task::Hold(held))], |job| sides.call(flagged, job))?;
    let log = trial.path().join("strace");
    let output = traced(sides, flagged, &log, &trial.job(setlk, Task::Probe(call)))?.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    holder.end()?;
    let text = std::fs::read_to_string(&log)?;
    let (_, after) = text.split_once(MARKS[0]).context("strace saw no begin of the probe")?;
    let (between, _) = after.split_once(MARKS[1]).context("strace saw no end of the probe")?;
    Ok((serde_json::from_slice(&output.stdout)?, Calls::of(between)))
}

fn load(sides: &Sides, (side, flagged, ms): (&str, bool, i32)) -> Result<Whole> {
    let trial = sides.trial()?;
    sides.prepare(flagged, &trial)?;
    let task = Task::Mixed(Mixed { seconds: 1.0, readers: 1, checkpoints: true, hold_us: 200, think_us: 1000 });
    let jobs: Vec<Job> = (0..PROCESSES).map(|at| trial.job(Setlk { ms, on_connect: false }, task.nth(at))).collect();
    let logs: Vec<_> = (0..PROCESSES).map(|at| trial.path().join(format!("strace-{at}"))).collect();
    let mut next = logs.iter();
    let counted = Load::start(&jobs, |job| traced(sides, flagged, next.next().context("a log for each")?, job))?;
    let counted = counted.finish()?;
    let mut calls = Calls::default();
    for log in &logs {
        calls.add(Calls::of(&std::fs::read_to_string(log)?));
    }
    Ok(Whole { side: side.to_owned(), writes: counted.writes.len(), reads: counted.reads.len(), calls })
}

/// The load's own call under strace, which writes to `log`.
fn traced(sides: &Sides, flagged: bool, log: &Path, job: &Job) -> Result<Command> {
    let mut command = Command::new("strace");
    command.args(["--follow-forks", "--trace=fcntl,write", "--string-limit=64", "--output"]).arg(log);
    command.arg(sides.program(flagged)).arg(serde_json::to_string(job)?);
    Ok(command)
}

impl Calls {
    /// Counts in lines of strace. A call that another thread interrupts is written in two lines, of which the first has
    /// the command and the second the answer.
    fn of(text: &str) -> Self {
        let mut calls = Self::default();
        for line in text.lines() {
            calls.refused += u64::from(line.contains("fcntl") && line.contains(" EAGAIN "));
            if !line.contains("fcntl(") {
                continue;
            }
            calls.setlk += u64::from(line.contains(" F_SETLK,"));
            calls.setlkw += u64::from(line.contains(" F_SETLKW,"));
            calls.getlk += u64::from(line.contains(" F_GETLK,"));
            calls.write_lock += u64::from(line.contains("F_WRLCK") && line.contains(WRITE_LOCK));
        }
        calls
    }

    fn add(&mut self, other: Self) {
        self.setlk += other.setlk;
        self.refused += other.refused;
        self.setlkw += other.setlkw;
        self.getlk += other.getlk;
        self.write_lock += other.write_lock;
    }
}

impl Seen {
    pub(crate) fn print(&self) {
        println!("\n| call | held | side | answer | took us | F_SETLK | refused | F_SETLKW | F_GETLK | write lock |");
        println!("|---|---|---|---|---|---|---|---|---|---|");
        for One { call, held, side, answer, took_us, calls } in &self.one {
            let Calls { setlk, refused, setlkw, getlk, write_lock } = calls;
            print!("| {call} | {held} | {side} | {answer} | {took_us:.0} ");
            println!("| {setlk} | {refused} | {setlkw} | {getlk} | {write_lock} |");
        }
        println!(
            "\n| load of {PROCESSES} processes | writes | reads | F_SETLK | refused | F_SETLKW | write lock, a write |"
        );
        println!("|---|---|---|---|---|---|---|");
        for Whole { side, writes, reads, calls } in &self.whole {
            let Calls { setlk, refused, setlkw, write_lock, .. } = calls;
            let each = *write_lock as f64 / *writes as f64;
            println!("| {side} | {writes} | {reads} | {setlk} | {refused} | {setlkw} | {each:.2} |");
        }
        println!();
    }
}
