//! Starts a part with the preloaded library, copies the files when it asks, and checks them when it has ended.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::answers;
use super::case::Case;
use super::part::{COPY, Told};
use crate::finding::Finding;
use crate::{checks, faults, parts};

/// The number of lines of the part's stderr to keep.
const LINES: usize = 25;

/// Runs a case in an empty directory. A part that has not ended within the limit counts as hung.
pub(super) fn run(case: &Case, directory: &Path, limit: Duration) -> Result<Told, Finding> {
    let other = directory.join("other.db");
    Connection::open(&other)?.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE o (op, part, pad)")?;
    let mut child = parts::part("failing-calls")
        .arg(serde_json::to_string(case)?)
        .arg(directory)
        .env("LD_PRELOAD", faults::library()?)
        .env("FLATWATER_TORTURE_FAULTS", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let lines = lines(&mut child);
    let complaints = child.stderr.take().map(parts::gathered);
    let ended = attended(&mut child, &lines, directory, limit);
    let _ = child.kill();
    let status = child.wait()?;
    let complaints = parts::said(complaints);
    let with = |finding: Finding| {
        let history = format!("{}\n{}", finding.history, parts::last_lines(&complaints, LINES));
        finding.with_history(history.trim().to_owned())
    };
    let Some(mut told) = ended.map_err(with)? else {
        return Err(with(Finding::new(format!("the part ended with {status} and told nothing"))));
    };
    if let Some(finding) = told.finding.take() {
        return Err(with(finding));
    }
    checked(&told, directory).map_err(with)?;
    Ok(told)
}

/// Waits until the part has reported its results, or has ended.
fn attended(
    child: &mut Child,
    lines: &Receiver<String>,
    directory: &Path,
    limit: Duration,
) -> Result<Option<Told>, Finding> {
    let until = Instant::now() + limit;
    loop {
        match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) if line == COPY => {
                copied(directory)?;
                if let Some(stdin) = &mut child.stdin {
                    stdin.write_all(b"\n")?;
                }
            }
            Ok(line) => return Ok(Some(serde_json::from_str(&line)?)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                return Err(Finding::new(format!("the part did not end within {} s", limit.as_secs())));
            }
        }
    }
}

/// Copies the files as they would be if the process were killed now. A checkpoint may run meanwhile, but no write: so
/// the WAL is copied first, and the database contains all that the WAL no longer has.
fn copied(directory: &Path) -> Result<(), Finding> {
    std::fs::create_dir(restart(directory))?;
    for name in ["main.db-wal", "other.db-wal", "main.db", "other.db"] {
        let from = directory.join(name);
        if from.exists() {
            std::fs::copy(from, restart(directory).join(name))?;
        }
    }
    Ok(())
}

fn restart(directory: &Path) -> PathBuf {
    directory.join("restart")
}

/// Checks that both databases are sound and agree with the results: now, and in the copy made at the end of the load.
fn checked(told: &Told, directory: &Path) -> Result<(), Finding> {
    for database in ["main.db", "other.db"] {
        checks::is_sound(&directory.join(database))?;
        checks::is_sound(&restart(directory).join(database))?;
        let wal = directory.join(format!("{database}-wal"));
        if database == "main.db" && wal.exists() {
            return Err(Finding::new("the last close left a WAL"));
        }
    }
    answers::agree(&told.answers, &directory.join("main.db"), &directory.join("other.db"))?;
    let killed = restart(directory);
    answers::agree(&told.answers[..told.copied_after], &killed.join("main.db"), &killed.join("other.db"))
        .map_err(|finding| Finding { what: format!("after a kill: {}", finding.what), ..finding })
}

fn lines(child: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}
