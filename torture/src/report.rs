//! The report of a run: one line per act, and a file.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::gauge::Hold;
use crate::round::Counts;

/// All rounds of one act.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ActReport {
    pub(crate) act: String,
    pub(crate) rounds: u64,
    pub(crate) seconds: f64,
    pub(crate) counts: Counts,
    pub(crate) hold: Hold,
    pub(crate) findings: Vec<Finding>,
}

impl ActReport {
    pub(crate) fn new(act: &str) -> Self {
        Self {
            act: act.to_owned(),
            rounds: 0,
            seconds: 0.0,
            counts: Counts::default(),
            hold: Hold::default(),
            findings: Vec::new(),
        }
    }
}

/// One run of the program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) seconds: u64,
    pub(crate) cores: usize,
    pub(crate) date: String,
    /// The commit of the sources, with a `+` if there were uncommitted changes.
    pub(crate) commit: String,
    pub(crate) acts: Vec<ActReport>,
}

impl Report {
    pub(crate) fn new(seed: u64, took: Duration, acts: Vec<ActReport>) -> Self {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let date = said_by("date", &["-u", "+%Y-%m-%d"]);
        let commit = said_by("git", &["describe", "--always", "--dirty=+", "--abbrev=10"]);
        Self { seed, seconds: took.as_secs(), cores, date, commit, acts }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.acts.iter().all(|act| act.findings.is_empty())
    }

    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        fs::write(file, serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns a summary of the rounds and findings so far.
    pub(crate) fn in_short(acts: &[ActReport]) -> String {
        let rounds: u64 = acts.iter().map(|act| act.rounds).sum();
        let findings: usize = acts.iter().map(|act| act.findings.len()).sum();
        format!("{rounds} rounds, {findings} findings")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for act in &self.acts {
            write!(f, "{:14} {:5} rounds", act.act, act.rounds)?;
            for (what, count) in &act.counts.0 {
                write!(f, ", {} {what}", thousands(*count))?;
            }
            if act.hold.polls > 0 {
                let Hold { polls, wall_us, cpu_us, idle_us, disk_us } = act.hold;
                write!(
                    f,
                    "; {} polls measured, longest {wall_us} us ({cpu_us} us of CPU; an idle thread {idle_us} us, a write of a page {disk_us} us)",
                    thousands(polls)
                )?;
            }
            writeln!(f, "; found {}", act.findings.len())?;
        }
        Ok(())
    }
}

/// Returns the output of a program; an empty text if it cannot run.
fn said_by(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

/// Formats a number with a comma between thousands.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let grouped: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|chunk| String::from_utf8_lossy(chunk)).collect();
    grouped.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_comma_at_each_thousand() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(thousands(number), text);
        }
    }
}
