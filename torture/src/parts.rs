//! Parts: the processes that a round starts, or that the run starts for a round. This file starts a part, with a
//! preloaded library if necessary, waits for its end, and collects its output.
//!
//! Leaves out: what a part does, and what its end means.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::finding::Finding;

/// The time between two checks of whether a process has ended.
const POLL: Duration = Duration::from_millis(2);

/// Returns a command that runs this program again.
pub(crate) fn again() -> Command {
    Command::new(std::env::current_exe().expect("this program has a path"))
}

/// Returns a command that runs this program as the part `name`.
pub(crate) fn part(name: &str) -> Command {
    let mut command = again();
    command.args(["part", name]);
    command
}

/// Returns the path of a library to preload into a part: it is beside this program.
pub(crate) fn library(file_name: &str) -> Result<PathBuf, Finding> {
    let path = std::env::current_exe()?.with_file_name(file_name);
    if path.exists() {
        Ok(path)
    } else {
        Err(Finding::new(format!("{} is missing: build with `make torture`", path.display())))
    }
}

/// Waits for the end of a process. Returns `None` if it still runs after `limit`.
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

/// As `ended`, but kills a process that still runs after `limit`.
pub(crate) fn ended_or_killed(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let status = ended(child, limit)?;
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(status)
}

/// Collects the output of a process on a separate thread, so that the process never blocks on a full pipe.
pub(crate) fn gathered(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = from.read_to_end(&mut all);
        String::from_utf8_lossy(&all).into_owned()
    })
}

/// Returns what was collected until the process ended; an empty text if there was nothing to collect.
pub(crate) fn said(gathered: Option<JoinHandle<String>>) -> String {
    gathered.and_then(|thread| thread.join().ok()).unwrap_or_default()
}

/// Returns the last `count` lines.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
