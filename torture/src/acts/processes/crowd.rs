//! The processes of a round as the round has them: started, stopped, let go on, killed, started again, and ended.
//!
//! One that ends by itself, or does not end when it is told to, is a finding. Dropping the crowd kills all of it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::board::{Board, Cell};
use super::holder::{HELD, Hold};
use super::witness::{Orders, finding_of};
use crate::parts::{self, part};
use crate::round::Finding;

/// All of them work, or end, before so long.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(2);

/// One place in the crowd, which one process after the other has.
struct Member {
    name: &'static str,
    orders: Orders,
    child: Child,
    /// When it may go on, if it is stopped.
    stopped_until: Option<Instant>,
}

pub(super) struct Crowd {
    directory: PathBuf,
    members: Vec<Member>,
    /// Those that hold a lock, and when they end.
    holders: Vec<(Child, Instant)>,
    /// How many processes there ever were that write.
    pub(super) incarnations: u32,
}

impl Crowd {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, members: Vec::new(), holders: Vec::new(), incarnations: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// One more member.
    pub(super) fn joins(&mut self, name: &'static str, seed: u64) -> Result<(), Finding> {
        let orders = Orders { directory: self.directory.clone(), slot: self.members.len(), incarnation: 0, seed };
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

    /// Until everybody has read or written something.
    pub(super) fn all_work(&mut self, board: &Board) -> Result<(), Finding> {
        let until = Instant::now() + PATIENCE;
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

    /// Lets those go on whose time has come; a finding if one ended.
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

    /// Stops a member, wherever it is. False if it is stopped already.
    pub(super) fn stops(&mut self, at: usize, time: Duration) -> Result<bool, Finding> {
        let member = &mut self.members[at];
        if member.stopped_until.is_some() {
            return Ok(false);
        }
        send(&member.child, Signal::SIGSTOP)?;
        member.stopped_until = Some(Instant::now() + time);
        Ok(true)
    }

    /// Kills a member, wherever it is, and waits for its end.
    pub(super) fn kills(&mut self, at: usize) -> Result<(), Finding> {
        // One that ended by itself is not killed.
        self.look()?;
        let member = &mut self.members[at];
        member.child.kill()?;
        member.child.wait()?;
        member.stopped_until = None;
        Ok(())
    }

    /// Another process in the place of one that was killed.
    pub(super) fn starts_again(&mut self, at: usize, seed: u64) -> Result<(), Finding> {
        let name = self.members[at].name;
        let orders = Orders { seed, ..self.members[at].orders.clone() };
        let (orders, child) = self.start(name, orders)?;
        let member = &mut self.members[at];
        (member.orders, member.child) = (orders, child);
        Ok(())
    }

    /// A process that takes a lock and is stopped with it. False if it does not get it.
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

    /// Tells everybody to end, and waits for it.
    pub(super) fn finish(mut self) -> Result<(), Finding> {
        for (holder, _) in self.holders.drain(..) {
            ends(holder)?;
        }
        self.look()?;
        for member in &mut self.members {
            send(&member.child, Signal::SIGCONT)?;
            drop(member.child.stdin.take());
        }
        let until = Instant::now() + PATIENCE;
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

    /// Kills everybody; who joins then has the cells of those who had them.
    pub(super) fn disperse(&mut self) {
        let holders = self.holders.drain(..).map(|(child, _)| child);
        for mut child in holders.chain(self.members.drain(..).map(|member| member.child)) {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// What a member says of its own end, or what is known of it.
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

/// Stopped as it is, it is killed: its locks end with it.
fn ends(mut holder: Child) -> Result<(), Finding> {
    holder.kill()?;
    holder.wait()?;
    Ok(())
}

fn send(child: &Child, signal: Signal) -> Result<(), Finding> {
    Ok(kill(Pid::from_raw(i32::try_from(child.id()).expect("a process's number")), signal)?)
}
