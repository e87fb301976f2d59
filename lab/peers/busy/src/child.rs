//! A child: one process that writes to the file as it is told, and reports.
//!
//! Owns: what a child is told, what it reports, and its work. It is this program again, with an order as its argument;
//! each line of its standard input and output is a JSON value. Invariant: a child says that it is ready when its
//! connections are open and have written once, so that no first use is measured. Leaves out: starting it (`family`).

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use lab_kit::measure::Latencies;
use lab_kit::traffic::Traffic;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::Moment;
use crate::live;
use crate::mode::{Mode, Writer};
use crate::ring::Ring;

/// The first argument of a child.
pub const CHILD: &str = "child";

/// The longest pause before a change that another process watches, in microseconds.
const PAUSE_US: usize = 50_000;

/// What a child does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    pub mode: Mode,
    pub path: PathBuf,
    /// Its number, which is in its rows.
    pub process: usize,
    pub work: Work,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Work {
    /// One turn after another until the end of the window, each followed by a pause, beside others: so many with this one.
    Loop { hold: Duration, think: Duration, of: usize },
    /// One turn of each of so many threads, at the beginning of the window.
    Once { threads: usize },
    /// A change of the row that another process watches, for each line.
    Change,
}

/// From when until when turns are begun.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Window {
    pub starts: Moment,
    pub ends: Moment,
}

/// What a child did.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// The rows that it committed, its first one included.
    pub rows: u64,
    /// The turns that ended within the window, and the first one in any case.
    pub turns: u64,
    /// Each time in nanoseconds, with how often: in a loop the waits for the lock, and otherwise whole turns.
    pub times: Vec<(u64, u64)>,
    /// When its last turn ended.
    pub ended: Moment,
    /// The CPU time from the beginning of the window until then.
    pub cpu: Duration,
}

/// Obeys an order.
pub fn run(order: &str) -> Result<()> {
    let order: Order = serde_json::from_str(order).context("a child's argument is an order")?;
    match order.work {
        Work::Loop { hold, think, of } => take_turns(&order, hold, think, of),
        Work::Once { threads } => one_each(&order, threads),
        Work::Change => change(&order),
    }
}

/// Takes turns until the end. The turn that is begun then is finished, so each process has one at least.
fn take_turns(order: &Order, hold: Duration, think: Duration, of: usize) -> Result<()> {
    let mut writer = ready_writer(order)?;
    let mut ring = (order.mode == Mode::Ring).then(|| Ring::join(&order.path, order.process, of)).transpose()?;
    let window = begin()?;
    let before = cpu()?;
    let (mut rows, mut turns, mut waits) = (1, 0, Latencies::default());
    let ended = loop {
        let asked = Moment::now();
        ring.iter_mut().try_for_each(Ring::enter)?;
        let in_ring = Moment::now().since(asked);
        waits.record(in_ring + writer.turn(order.process, hold)?);
        rows += 1;
        let now = Moment::now();
        turns += u64::from(turns == 0 || now <= window.ends);
        // Whether it ends is decided before the turn is passed on: after that the turn may have come round again.
        if now >= window.ends {
            ring.iter_mut().try_for_each(Ring::pass)?;
            break now;
        }
        ring.iter_mut().try_for_each(Ring::leave)?;
        if !think.is_zero() {
            thread::sleep(think);
        }
    };
    let cpu = cpu()?.saturating_sub(before);
    say(&Report { rows, turns, times: waits.counts(), ended, cpu })?;
    writer.close()
}

/// Takes one turn on each of several threads.
fn one_each(order: &Order, threads: usize) -> Result<()> {
    let mut writers = (0..threads).map(|_| ready_writer(order)).collect::<Result<Vec<_>>>()?;
    begin()?;
    let before = cpu()?;
    let one = |writer: &mut Writer| {
        let began = Moment::now();
        writer.turn(order.process, Duration::ZERO)?;
        Ok(Moment::now().since(began))
    };
    let turns: Vec<Result<Duration>> = thread::scope(|scope| {
        let running: Vec<_> = writers.iter_mut().map(|writer| scope.spawn(|| one(writer))).collect();
        running.into_iter().map(|one| one.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))).collect()
    });
    let ended = Moment::now();
    let cpu = cpu()?.saturating_sub(before);
    let mut times = Latencies::default();
    for turn in turns {
        times.record(turn?);
    }
    let rows = 2 * threads as u64;
    say(&Report { rows, turns: threads as u64, times: times.counts(), ended, cpu })?;
    writers.into_iter().try_for_each(Writer::close)
}

/// Changes the row, at moments that have nothing to do with when another process looks, and says when that was
/// committed.
fn change(order: &Order) -> Result<()> {
    let mut pauses = Traffic::default();
    let mut writer = Writer::open(order.mode, &order.path)?;
    say(&true)?;
    while let Some(value) = hear::<i64>()? {
        thread::sleep(Duration::from_micros(pauses.below(PAUSE_US) as u64));
        writer.execute(live::CHANGE, value)?;
        say(&Moment::now())?;
    }
    writer.close()
}

fn ready_writer(order: &Order) -> Result<Writer> {
    let mut writer = Writer::open(order.mode, &order.path)?;
    writer.turn(order.process, Duration::ZERO)?;
    Ok(writer)
}

/// Says that it is ready, and sleeps until the window begins.
fn begin() -> Result<Window> {
    say(&true)?;
    let window: Window = hear()?.context("the parent went away before the window began")?;
    window.starts.wait();
    Ok(window)
}

fn say(value: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(value)?)?;
    Ok(out.flush()?)
}

/// The next line, or nothing if the parent closed the pipe.
fn hear<T: DeserializeOwned>() -> Result<Option<T>> {
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

/// User and system time of all threads so far.
pub fn cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(micros)?))
}
