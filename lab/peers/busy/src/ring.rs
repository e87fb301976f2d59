//! The floor of taking turns: plain rusqlite processes in a ring, each of which passes the turn to the next one.
//!
//! Owns: a pipe with a name for each process, in which the turn is one byte. A turn lasts as long as Flatwater's. Nobody
//! looks whether the next one is there, wants to write or has died: so it shows what the hand-overs themselves cost on a machine.
//! Invariant: a process that has ended has passed the turn on, and one that has passed it on without an end takes it once more.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

/// How long a turn lasts.
const QUANTUM: Duration = Duration::from_millis(1);

pub struct Ring {
    mine: File,
    next: File,
    /// Since when it has the turn.
    since: Option<Instant>,
}

impl Ring {
    /// Takes the place of a process in a ring of so many. The first one has the first turn.
    pub fn join(path: &Path, process: usize, of: usize) -> Result<Self> {
        let (mut mine, next) = (pipe(path, process)?, pipe(path, (process + 1) % of)?);
        if process == 0 {
            mine.write_all(&[0])?;
        }
        Ok(Self { mine, next, since: None })
    }

    /// Waits for the turn.
    pub fn enter(&mut self) -> Result<()> {
        if self.since.is_none() {
            self.mine.read_exact(&mut [0])?;
            self.since = Some(Instant::now());
        }
        Ok(())
    }

    /// Ends a turn that has lasted long enough.
    pub fn leave(&mut self) -> Result<()> {
        if self.since.is_some_and(|since| since.elapsed() >= QUANTUM) { self.pass() } else { Ok(()) }
    }

    /// Ends the turn.
    pub fn pass(&mut self) -> Result<()> {
        if self.since.take().is_some() { Ok(self.next.write_all(&[0])?) } else { Ok(()) }
    }
}

/// Opens the pipe of a process, for both ends, so that a byte stays in it whoever has opened it by then.
fn pipe(path: &Path, process: usize) -> Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-ring-{process}"));
    let name = PathBuf::from(name);
    match mkfifo(&name, Mode::S_IRUSR | Mode::S_IWUSR) {
        Ok(()) | Err(Errno::EEXIST) => {}
        Err(error) => return Err(std::io::Error::from(error)).context("a pipe cannot be made"),
    }
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(&name)
        .with_context(|| format!("{} cannot be opened", name.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_goes_round_and_waits_for_who_comes_late() {
        let folder = tempfile::tempdir().unwrap();
        let join = |process| Ring::join(&folder.path().join("x.db"), process, 3).unwrap();
        let mut first = join(0);
        first.enter().unwrap();
        first.pass().unwrap();
        let mut third = join(2);
        let mut second = join(1);
        for ring in [&mut second, &mut third, &mut first] {
            ring.enter().unwrap();
            ring.enter().unwrap();
            ring.pass().unwrap();
            ring.pass().unwrap();
        }
        second.enter().unwrap();
    }
}
