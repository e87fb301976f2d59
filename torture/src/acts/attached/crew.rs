//! The processes of a round. Each obeys one order after another, and answers each with what it did and found.
//!
//! Leaves out: what they do.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::asks::Expected;
use super::setup::Setup;
use crate::finding::Finding;
use crate::parts;
use crate::round::{Counts, Told};

/// A process that has not answered an order after this time hangs. Its own limit for one call is shorter.
const HANGS: Duration = Duration::from_secs(90);
/// The number of lines of a process's stderr to keep.
const LINES: usize = 30;

/// What a process is told when it starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Role {
    pub(super) setup: Setup,
    /// Unique among the processes, and the number of its cells on the board.
    pub(super) slot: usize,
    pub(super) is_read_only: bool,
    pub(super) seed: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Use the files for so long. Only one process writes if it says so, and only to one file if it says so. Flatwater
    /// makes no calls that read if `rests`, so that its connections know only what was before.
    Work { millis: u64, file: Option<usize>, writer: Option<usize>, rests: bool },
    /// Nothing is written now: answer as plain SQLite does.
    Arrive(Expected),
}

pub(super) struct Crew {
    setup: Setup,
    members: Vec<Member>,
}

struct Member {
    name: &'static str,
    is_read_only: bool,
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    complaints: Option<JoinHandle<String>>,
}

impl Crew {
    pub(super) fn new(setup: &Setup) -> Self {
        Self { setup: setup.clone(), members: Vec::new() }
    }

    /// Starts a process.
    pub(super) fn joins(&mut self, name: &'static str, is_read_only: bool, seed: u64) -> Result<(), Finding> {
        let role = Role { setup: self.setup.clone(), slot: self.members.len(), is_read_only, seed };
        let mut child = parts::part(name)
            .arg(serde_json::to_string(&role)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (sender, answers) = channel();
        let stdout = child.stdout.take();
        std::thread::spawn(move || {
            let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
            lines.map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        let (stdin, complaints) = (child.stdin.take(), child.stderr.take().map(parts::gathered));
        self.members.push(Member { name, is_read_only, child, stdin, answers, complaints });
        Ok(())
    }

    /// Returns the number of a process that may write.
    pub(super) fn some_writer(&self, rng: &mut StdRng) -> usize {
        loop {
            let at = rng.random_range(0..self.members.len());
            if !self.members[at].is_read_only {
                return at;
            }
        }
    }

    /// Gives all processes an order, and waits for their answers.
    pub(super) fn obeys(&mut self, order: &Order) -> Result<Counts, Finding> {
        let line = serde_json::to_string(order)? + "\n";
        for member in &mut self.members {
            // A process that has ended is found when it does not answer.
            let _ = member.stdin.as_mut().map(|stdin| stdin.write_all(line.as_bytes()));
        }
        self.answered()
    }

    /// Ends all processes.
    pub(super) fn ends(mut self) -> Result<Counts, Finding> {
        self.members.iter_mut().for_each(|member| drop(member.stdin.take()));
        self.answered()
    }

    fn answered(&mut self) -> Result<Counts, Finding> {
        let (until, mut counts) = (Instant::now() + HANGS, Counts::default());
        for member in &mut self.members {
            let told = member.answer(until.saturating_duration_since(Instant::now()))?;
            counts.merge(&told.counts);
        }
        Ok(counts)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.members {
            // The process may have ended by itself.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

impl Member {
    fn answer(&mut self, limit: Duration) -> Result<Told, Finding> {
        let what = match self.answers.recv_timeout(limit) {
            Ok(line) => match serde_json::from_str::<Told>(&line)? {
                Told { finding: Some(finding), .. } => finding,
                told => return Ok(told),
            },
            Err(RecvTimeoutError::Timeout) => Finding::new(format!("no answer within {} s", HANGS.as_secs())),
            Err(RecvTimeoutError::Disconnected) => Finding::new("it ended by itself"),
        };
        // Its output is complete when it has ended.
        let _ = self.child.kill();
        let complaints = parts::said(self.complaints.take());
        let name = if self.is_read_only { "attached-ours, which only reads" } else { self.name };
        let history = format!("{}\n{}", what.history, parts::last_lines(&complaints, LINES));
        Err(Finding { what: format!("{name}: {}", what.what), history: history.trim().to_owned() })
    }
}

/// Runs a process: takes orders from its standard input until that ends, and lets `part` obey them.
pub(super) fn obeying<P>(
    args: &[String],
    begin: impl FnOnce(Role) -> Result<P, Finding>,
    obey: impl Fn(&mut P, Order, &mut Counts) -> Result<(), Finding>,
    end: impl FnOnce(P) -> Result<(), Finding>,
) -> ExitCode {
    let Some(role) = args.first().and_then(|text| serde_json::from_str(text).ok()) else {
        eprintln!("the role is missing");
        return ExitCode::from(2);
    };
    let ended = begin(role).and_then(|mut part| {
        for line in std::io::stdin().lines() {
            let (order, mut counts) = (serde_json::from_str(&line?)?, Counts::default());
            obey(&mut part, order, &mut counts)?;
            Told { counts, ..Told::default() }.tell();
        }
        end(part)
    });
    Told { finding: ended.err(), ..Told::default() }.tell();
    ExitCode::SUCCESS
}
