//! The processes of a round: starts, stops, continues, kills, restarts and ends them.
//!
//! A process that ends by itself, or does not end on request, is a finding. Dropping the crowd kills all processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::holder::{HELD, Hold};
use super::witness::{Cell, Orders, finding_of};
use crate::board::Board;
use crate::finding::Finding;
use crate::parts::{self, part};

/// Within this time all processes must be working, or taking turns, or must have ended.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(2);

/// Returns until when that must be so.
pub(super) fn patience() -> Instant {
    Instant::now() + PATIENCE
}

/// One place in the crowd, used by one process after another.
struct Member {
    name: &'static str,
    orders: Orders,
    child: Child,
    /// When a stopped process may continue.
    stopped_until: Option<Instant>,
}

pub(super) struct Crowd {
    directory: PathBuf,
    members: Vec<Member>,
    /// The processes that hold a lock, and when they end.
    holders: Vec<(Child, Instant)>,
    /// The number of writing processes so far.
    pub(super) incarnations: u32,
    /// Whether Flatwater processes take turns.
    pub(super) is_fair: bool,
}

impl Crowd {
    pub(super) fn new(directory: PathBuf, is_fair: bool) -> Self {
        Self { directory, members: Vec::new(), holders: Vec::new(), incarnations: 0, is_fair }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Adds a member.
    pub(super) fn joins(&mut self, name: &'static str, seed: u64) -> Result<(), Finding> {
        let (directory, slot, is_fair) = (self.directory.clone(), self.members.len(), self.is_fair);
        let orders = Orders { directory, slot, incarnation: 0, seed, is_fair };
        let (orders, child) = self.start(name, orders)?;
        self.members.push(Member { name, orders, child, stopped_until: None });
        Ok(())
    }

    fn start(&mut self, name: &str, orders: Orders) -> Result<(Orders, Child), Finding> {
        let orders = Orders { incarnation: self.incarnations, ..orders };
        self.incarnations += 1;
        let complaints = fs::File::create(self.complaints(orders.incarnation))?;
        let child = part(name)
            .arg(serde_json::to_string(&orders)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(complaints)
            .spawn()?;
        Ok((orders, child))
    }

    fn complaints(&self, incarnation: u32) -> PathBuf {
        self.directory.join(format!("complaints-{incarnation}"))
    }

    /// Waits until each member has read or written something.
    pub(super) fn all_work(&mut self, board: &Board) -> Result<(), Finding> {
        let until = patience();
        for at in 0..self.len() {
            let slot = self.members[at].orders.slot;
            while board.get(slot, Cell::Reads)? + board.get(slot, Cell::Works)? == 0 {
                self.look()?;
                if Instant::now() > until {
                    return Err(Finding::new(format!(
                        "{} does nothing, beside nobody in its way",
                        self.members[at].name
                    )));
                }
                std::thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// Continues the processes whose time has come. Returns a finding if a process has ended.
    pub(super) fn look(&mut self) -> Result<(), Finding> {
        let now = Instant::now();
        for (holder, _) in self.holders.extract_if(.., |(_, until)| *until <= now) {
            ends(holder)?;
        }
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            if member.stopped_until.is_some_and(|until| until <= now) {
                send(&member.child, Signal::SIGCONT)?;
                member.stopped_until = None;
            }
            if let Some(status) = member.child.try_wait()? {
                return Err(self.finding(at, status));
            }
        }
        Ok(())
    }

    /// Stops a member at an arbitrary point. Returns false if it is already stopped.
    pub(super) fn stops(&mut self, at: usize, time: Duration) -> Result<bool, Finding> {
        let member = &mut self.members[at];
        if member.stopped_until.is_some() {
            return Ok(false);
        }
        send(&member.child, Signal::SIGSTOP)?;
        member.stopped_until = Some(Instant::now() + time);
        Ok(true)
    }

    /// Kills a member at an arbitrary point, and waits for its end.
    pub(super) fn kills(&mut self, at: usize) -> Result<(), Finding> {
        // A process that ended by itself is a finding, and is not killed.
        self.look()?;
        let member = &mut self.members[at];
        member.child.kill()?;
        member.child.wait()?;
        member.stopped_until = None;
        Ok(())
    }

    /// Starts another process in the place of one that was killed.
    pub(super) fn starts_again(&mut self, at: usize, seed: u64) -> Result<(), Finding> {
        let name = self.members[at].name;
        let orders = Orders { seed, ..self.members[at].orders.clone() };
        let (orders, child) = self.start(name, orders)?;
        let member = &mut self.members[at];
        (member.orders, member.child) = (orders, child);
        Ok(())
    }

    /// Starts a process that takes a lock, and stops it while it holds the lock. Returns false if it does not get the
    /// lock.
    pub(super) fn holds(&mut self, hold: &Hold, time: Duration) -> Result<bool, Finding> {
        let mut child = part("processes-holder")
            .arg(serde_json::to_string(hold)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut said)?;
        if said.trim() != HELD {
            child.wait()?;
            return Ok(false);
        }
        send(&child, Signal::SIGSTOP)?;
        self.holders.push((child, Instant::now() + time));
        Ok(true)
    }

    /// Asks all members to end, and waits for them.
    pub(super) fn finish(mut self) -> Result<(), Finding> {
        for (holder, _) in self.holders.drain(..) {
            ends(holder)?;
        }
        self.look()?;
        for member in &mut self.members {
            send(&member.child, Signal::SIGCONT)?;
            drop(member.child.stdin.take());
        }
        let until = patience();
        for at in 0..self.members.len() {
            let member = &mut self.members[at];
            let left = until.saturating_duration_since(Instant::now());
            let Some(status) = parts::ended(&mut member.child, left)? else {
                return Err(Finding::new(format!("{} does not end when it is told to", member.name)));
            };
            if !status.success() {
                return Err(self.finding(at, status));
            }
        }
        Ok(())
    }

    /// Kills all processes. Processes that join later reuse their cells.
    pub(super) fn disperse(&mut self) {
        let holders = self.holders.drain(..).map(|(child, _)| child);
        for mut child in holders.chain(self.members.drain(..).map(|member| member.child)) {
            // The process may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Returns a member's own finding, or what is known about its end.
    fn finding(&self, at: usize, status: ExitStatus) -> Finding {
        let Member { name, orders, .. } = &self.members[at];
        let told = fs::read_to_string(finding_of(&self.directory, orders.incarnation)).ok();
        match told.and_then(|text| serde_json::from_str::<Finding>(&text).ok()) {
            Some(finding) => Finding { what: format!("{name}: {}", finding.what), ..finding },
            None => {
                let complaints = fs::read_to_string(self.complaints(orders.incarnation)).unwrap_or_default();
                Finding::new(format!("{name} ended by itself: {status}")).with_history(complaints)
            }
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.disperse();
    }
}

/// Kills a stopped process, which releases its locks.
fn ends(mut holder: Child) -> Result<(), Finding> {
    holder.kill()?;
    holder.wait()?;
    Ok(())
}

fn send(child: &Child, signal: Signal) -> Result<(), Finding> {
    Ok(kill(Pid::from_raw(i32::try_from(child.id()).expect("a process's number")), signal)?)
}
