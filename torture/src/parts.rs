//! Parts: the processes that a round starts, or the run for a round. Starting one, under a preloaded library where that is
//! wanted; waiting for its end; and what it says.
//!
//! Leaves out what a part does, and what its end means.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::round::Finding;

/// Between two looks at whether a process has ended.
const POLL: Duration = Duration::from_millis(2);

/// This program again.
pub(crate) fn again() -> Command {
    Command::new(std::env::current_exe().expect("this program has a path"))
}

/// This program again, as the part of that name.
pub(crate) fn part(name: &str) -> Command {
    let mut command = again();
    command.args(["part", name]);
    command
}

/// Where a library that is preloaded into a part lies: beside this program.
pub(crate) fn library(file_name: &str) -> Result<PathBuf, Finding> {
    let path = std::env::current_exe()?.with_file_name(file_name);
    if path.exists() {
        Ok(path)
    } else {
        Err(Finding::new(format!("{} is missing: build with `make torture`", path.display())))
    }
}

/// Waits for the end of a process. `None` if it runs on after so long.
pub(crate) fn ended(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + limit;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() >= until => return Ok(None),
            None => std::thread::sleep(POLL),
        }
    }
}

/// The same, and a process that runs on is killed.
pub(crate) fn ended_or_killed(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let status = ended(child, limit)?;
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(status)
}

/// All that a process says, read beside it so that it never waits for a reader.
pub(crate) fn gathered(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = from.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    })
}

/// What was gathered until the process ended; nothing where there was nothing to read.
pub(crate) fn said(gathered: Option<JoinHandle<String>>) -> String {
    gathered.and_then(|thread| thread.join().ok()).unwrap_or_default()
}

/// The last lines, as many as that.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
