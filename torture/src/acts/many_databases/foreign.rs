//! The other process: plain SQLite, which writes to some of the databases, in its own table.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rusqlite::{Connection, ErrorCode};
use serde::{Deserialize, Serialize};

use super::FOREIGN;
use super::bases::Bases;
use crate::finding::Finding;
use crate::parts;

const BUSY: Duration = Duration::from_secs(10);
/// It ends within this time when it is told to.
const ENDS: Duration = Duration::from_secs(60);
/// How many connections it keeps open.
const KEPT: usize = 4;

/// The databases by number, and the seed.
#[derive(Serialize, Deserialize)]
struct Role {
    files: Vec<(usize, PathBuf)>,
    seed: u64,
}

/// What it was answered: databases and numbers.
#[derive(Default, Serialize, Deserialize)]
struct Told {
    wrote: Vec<(usize, i64)>,
    finding: Option<Finding>,
}

pub(super) struct Foreign {
    child: Child,
    said: Option<JoinHandle<String>>,
}

impl Foreign {
    pub(super) fn start(bases: &Bases, seed: u64) -> Result<Self, Finding> {
        let role = Role { files: bases.foreign(), seed };
        let mut child = parts::part(FOREIGN)
            .arg(serde_json::to_string(&role)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let said = child.stdout.take().map(parts::gathered);
        Ok(Self { child, said })
    }

    /// Ends the process, and returns what it wrote.
    pub(super) async fn stop(mut self) -> Result<Vec<(usize, i64)>, Finding> {
        drop(self.child.stdin.take());
        let ended = tokio::task::block_in_place(|| parts::ended_or_killed(&mut self.child, ENDS))?;
        let said = parts::said(self.said.take());
        if ended.is_none() {
            return Err(Finding::new("plain SQLite in another process does not end"));
        }
        let told: Told = serde_json::from_str(said.trim())?;
        told.finding.map_or(Ok(told.wrote), Err)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // It has ended, unless there was a finding.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process.
pub(super) fn part(args: &[String]) -> ExitCode {
    let Some(role) = args.first().and_then(|json| serde_json::from_str::<Role>(json).ok()) else {
        eprintln!("the role is missing");
        return ExitCode::from(2);
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let over = is_over.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        over.store(true, Ordering::Relaxed);
    });
    let mut told = Told::default();
    if let Err(error) = writes(&role, &is_over, &mut told.wrote) {
        told.finding = Some(Finding::new(format!("plain SQLite fails: {error}")).with_history(format!("{error:?}")));
    }
    println!("{}", serde_json::to_string(&told).expect("numbers and texts are JSON"));
    ExitCode::SUCCESS
}

fn writes(role: &Role, is_over: &AtomicBool, wrote: &mut Vec<(usize, i64)>) -> rusqlite::Result<()> {
    let (mut rng, mut open) = (StdRng::seed_from_u64(role.seed), Vec::<(usize, Connection)>::new());
    let mut next = 0;
    while !is_over.load(Ordering::Relaxed) {
        let (number, path) = role.files.choose(&mut rng).expect("there are files");
        if open.iter().all(|(known, _)| known != number) {
            let plain = Connection::open(path)?;
            plain.busy_timeout(BUSY)?;
            open.insert(0, (*number, plain));
            open.truncate(KEPT);
        }
        let (_, plain) = open.iter().find(|(known, _)| known == number).expect("it was opened");
        next += 1;
        match plain.execute("INSERT INTO f VALUES (?)", [next]) {
            Ok(_) => wrote.push((*number, next)),
            Err(error) if is_busy(&error) => {}
            Err(error) => return Err(error),
        }
        if rng.random_ratio(1, 50) {
            // Its row says whether it was done.
            let checkpointed = plain.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
            checkpointed.or_else(|error| if is_busy(&error) { Ok(()) } else { Err(error) })?;
        }
        std::thread::sleep(Duration::from_micros(rng.random_range(0..3000)));
    }
    Ok(())
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
