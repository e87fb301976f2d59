//! A round in a separate process, which also forks and forgets statements.
//!
//! After a fork, the database keeps the descriptors of its locks on every file that was open then, because a close in
//! the parent would leave the lock with the child (docs/design/files.md). A connection with a forgotten statement is
//! never closed. So there is no check for leftovers in such a process; it ends with its round.

use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{FORKING_PIECES, campaign};
use crate::finding::Finding;
use crate::parts;
use crate::round::{Counts, Round, Told};

/// Starts the process and waits for it.
pub(super) fn round(round: &mut Round) -> Result<(), Finding> {
    let left = round.until.saturating_duration_since(Instant::now());
    let out = parts::part("odd-forking")
        .arg(round.directory())
        .args([round.rng.random::<u64>().to_string(), left.as_millis().to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let Some(told) = Told::heard(&String::from_utf8_lossy(&out.stdout)) else {
        return Err(Finding::new(format!("a process that forks ended with {}", out.status)));
    };
    round.counts.merge(&told.counts);
    told.finding.map_or(Ok(()), Err)
}

/// The process.
pub(super) fn part(args: &[String]) -> ExitCode {
    let [directory, seed, millis] = args else { return ExitCode::from(2) };
    let (Ok(seed), Ok(millis)) = (seed.parse(), millis.parse()) else { return ExitCode::from(2) };
    let (mut rng, mut counts) = (StdRng::seed_from_u64(seed), Counts::default());
    let until = Instant::now() + Duration::from_millis(millis);
    let ended = campaign(Path::new(directory), until, &mut rng, FORKING_PIECES, &mut counts);
    Told { counts, finding: ended.err(), ..Told::default() }.tell();
    // A thread that hangs must not keep the process alive.
    std::process::exit(0)
}
