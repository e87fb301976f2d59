//! Children, as their parent has them.
//!
//! Owns: starting them, the pipes to them, and their end. Invariant: a child does not outlive its handle. Leaves out:
//! what they do (`child`).

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::child::{CHILD, Order, Report, Window};
use crate::clock::Moment;

/// How long after the last child is ready the window begins: until each of them was told.
const AHEAD: Duration = Duration::from_millis(20);

/// One child.
pub struct Process {
    child: Child,
    /// Closed when the child is to end.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(order: &Order) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(CHILD).arg(serde_json::to_string(order)?).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("a child cannot be started")?;
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().context("the child has no output")?);
        Ok(Self { child, orders, answers })
    }

    pub fn tell(&mut self, value: &impl Serialize) -> Result<()> {
        let orders = self.orders.as_mut().context("the child was told to end")?;
        Ok(writeln!(orders, "{}", serde_json::to_string(value)?)?)
    }

    pub fn hear<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("a child ended without an answer: {}", self.child.wait()?);
        }
        serde_json::from_str(&line).with_context(|| format!("a child said {line}"))
    }

    pub fn is_ready(&mut self) -> Result<()> {
        if self.hear::<bool>()? { Ok(()) } else { bail!("a child is not ready") }
    }

    /// Waits for its end.
    pub fn end(mut self) -> Result<()> {
        self.orders = None;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { bail!("a child failed: {status}") }
    }
}

/// A child that has ended by itself is not concerned.
impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Children that begin at one moment.
pub struct Family(Vec<Process>);

impl Family {
    /// Starts a child for each order, and waits until all of them are ready.
    pub fn start(orders: &[Order]) -> Result<Self> {
        let mut processes = orders.iter().map(Process::start).collect::<Result<Vec<_>>>()?;
        processes.iter_mut().try_for_each(Process::is_ready)?;
        Ok(Self(processes))
    }

    /// Tells all of them when to begin and end: after `delay`, for as long as `lasts`. Answers the window without the
    /// delay.
    pub fn begin(&mut self, delay: Duration, lasts: Duration) -> Result<Window> {
        let starts = Moment::now().after(AHEAD);
        let ends = starts.after(delay + lasts);
        let theirs = Window { starts: starts.after(delay), ends };
        self.0.iter_mut().try_for_each(|process| process.tell(&theirs))?;
        Ok(Window { starts, ends })
    }

    /// Waits for all of them.
    pub fn reports(mut self) -> Result<Vec<Report>> {
        let reports = self.0.iter_mut().map(Process::hear).collect::<Result<Vec<_>>>()?;
        self.0.into_iter().try_for_each(Process::end)?;
        Ok(reports)
    }
}
