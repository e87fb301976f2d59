//! How a process waits for the lock, and one turn of it.
//!
//! Owns: the modes, which are the peers of this program, and a process's way to the file in each. A turn is one
//! committed write transaction, and is the same in all modes. Usable on any thread. Leaves out: how many turns there
//! are, and who takes them.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use flatwater::options::Fairness;
use flatwater::rusqlite::Connection;
use flatwater::{Database, Options};
use serde::{Deserialize, Serialize};

use crate::clock::spin;

/// Every peer of this program.
pub const PEERS: [&str; 7] = [
    "busy-default",
    "busy-backoff",
    "busy-constant-1ms",
    "busy-constant-100us",
    "busy-ring",
    "busy-handler",
    "busy-turnstile",
];

const TURNS: &str = "CREATE TABLE turns (id INTEGER PRIMARY KEY, process INTEGER NOT NULL)";
const TURN: &str = "INSERT INTO turns (process) VALUES (?)";

/// How a process waits for the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// SQLite's busy timeout, as rusqlite sets it: its steps grow to 100 ms.
    Default,
    /// The n-th time n ms, as in the published study.
    Backoff,
    /// Always 1 ms.
    #[serde(rename = "constant_1ms")]
    Constant1Ms,
    /// Always 100 us.
    #[serde(rename = "constant_100us")]
    Constant100Us,
    /// SQLite's busy timeout in processes that take turns in a ring (`ring`).
    Ring,
    /// Flatwater, which only polls.
    BusyHandler,
    /// Flatwater, which takes turns.
    Turnstile,
}

impl Mode {
    pub const ALL: [Self; 7] = [
        Self::Default,
        Self::Backoff,
        Self::Constant1Ms,
        Self::Constant100Us,
        Self::Ring,
        Self::BusyHandler,
        Self::Turnstile,
    ];

    /// The mode of the peer of this name.
    pub fn of(peer: &str) -> Result<Self> {
        match PEERS.iter().position(|known| *known == peer) {
            Some(at) => Ok(Self::ALL[at]),
            None => bail!("this program has no peer {peer:?}; it has {}", PEERS.join(", ")),
        }
    }

    pub fn is_flatwater(self) -> bool {
        matches!(self, Self::BusyHandler | Self::Turnstile)
    }

    /// What SQLite calls when the lock is taken, where it is not SQLite's own.
    fn handler(self) -> Option<fn(i32) -> bool> {
        match self {
            Self::Backoff => Some(|count| slept(Duration::from_millis(u64::try_from(count).unwrap_or(0)))),
            Self::Constant1Ms => Some(|_| slept(Duration::from_millis(1))),
            Self::Constant100Us => Some(|_| slept(Duration::from_micros(100))),
            Self::Default | Self::Ring | Self::BusyHandler | Self::Turnstile => None,
        }
    }
}

fn slept(lasts: Duration) -> bool {
    thread::sleep(lasts);
    true
}

/// A process's way to the file.
pub enum Writer {
    Plain(Connection),
    Flatwater(Database),
}

impl Writer {
    pub fn open(mode: Mode, path: &Path) -> Result<Self> {
        if mode.is_flatwater() {
            return Ok(Self::Flatwater(database(mode, path)?));
        }
        let mut connection = Connection::open(path)?;
        connection.pragma_update(None, "synchronous", "normal")?;
        if let Some(handler) = mode.handler() {
            connection.busy_handler(Some(handler))?;
        }
        Ok(Self::Plain(connection))
    }

    /// One turn, in which the lock is held for `hold` between the insert and the commit, and the processor with it.
    /// Answers how long the lock was waited for.
    /// Without a hold, a turn is one INSERT for Flatwater, which needs no closure then; the answer is how long the
    /// whole call took, which is more than its wait.
    pub fn turn(&mut self, process: usize, hold: Duration) -> Result<Duration> {
        if hold.is_zero() && matches!(self, Self::Flatwater(_)) {
            let asked = Instant::now();
            self.execute(TURN, i64::try_from(process)?)?;
            return Ok(asked.elapsed());
        }
        self.once(process, move || spin(hold))
    }

    /// Runs one statement with one number, in a commit of its own.
    pub fn execute(&mut self, sql: &str, number: i64) -> Result<()> {
        match self {
            Self::Plain(connection) => drop(connection.prepare_cached(sql)?.execute([number])?),
            Self::Flatwater(db) => drop(db.execute(sql, (number,)).wait()?),
        }
        Ok(())
    }

    /// One turn, in which the lock is held asleep for `hold`.
    pub fn held(&mut self, process: usize, hold: Duration) -> Result<Duration> {
        self.once(process, move || thread::sleep(hold))
    }

    fn once(&mut self, process: usize, hold: impl FnOnce() + Send + 'static) -> Result<Duration> {
        let asked = Instant::now();
        match self {
            Self::Plain(connection) => {
                connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
                let waited = asked.elapsed();
                write(connection, process, hold)?;
                connection.prepare_cached("COMMIT")?.execute([])?;
                Ok(waited)
            }
            Self::Flatwater(db) => db
                .write_with(move |transaction| {
                    let waited = asked.elapsed();
                    write(transaction, process, hold)?;
                    anyhow::Ok(waited)
                })
                .wait(),
        }
    }

    pub fn close(self) -> Result<()> {
        match self {
            Self::Plain(connection) => connection.close().map_err(|(_, error)| error.into()),
            Self::Flatwater(db) => Ok(db.close().wait()?),
        }
    }
}

/// Opens the file with Flatwater, with its defaults but for how it waits.
pub fn database(mode: Mode, path: &Path) -> Result<Database> {
    let fairness = if mode == Mode::Turnstile { Fairness::Auto } else { Fairness::Off };
    Ok(Options::new(path).tuning(|t| t.fairness(fairness)).open().wait()?)
}

fn write(connection: &Connection, process: usize, hold: impl FnOnce()) -> Result<()> {
    connection.prepare_cached(TURN)?.execute([process])?;
    hold();
    Ok(())
}

/// Creates the file, in WAL mode, with its table.
pub fn create(path: &Path) -> Result<()> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.execute(TURNS, [])?;
    connection.close().map_err(|(_, error)| error.into())
}

/// Checks the file: it is whole, and has as many rows of each process as that process committed.
pub fn check(path: &Path, rows: &[u64]) -> Result<()> {
    let connection = Connection::open(path)?;
    let integrity: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if integrity != "ok" {
        bail!("the file is damaged: {integrity}");
    }
    for (process, committed) in rows.iter().enumerate() {
        let sql = "SELECT count(*) FROM turns WHERE process = ?";
        let found: u64 = connection.query_row(sql, [process], |row| row.get(0)).context("the turns are counted")?;
        if found != *committed {
            bail!("process {process} committed {committed} turns, and the file has {found}");
        }
    }
    let all: u64 = connection.query_row("SELECT count(*) FROM turns", [], |row| row.get(0))?;
    if all != rows.iter().sum::<u64>() {
        bail!("the file has {all} turns, of which some are nobody's");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_has_the_name_of_the_results_and_a_peer() {
        let names: Vec<String> = Mode::ALL.iter().map(|mode| serde_json::to_string(mode).unwrap()).collect();
        let expected = ["default", "backoff", "constant_1ms", "constant_100us", "ring", "busy_handler", "turnstile"];
        assert_eq!(names, expected.map(|name| format!("{name:?}")));
        assert!(PEERS.iter().zip(Mode::ALL).all(|(peer, mode)| Mode::of(peer).unwrap() == mode));
        assert!(Mode::of("raw").unwrap_err().to_string().contains("busy-turnstile"));
    }

    #[test]
    fn a_turn_is_one_row_in_every_mode_and_a_lost_one_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        create(&path).unwrap();
        for (at, mode) in Mode::ALL.into_iter().enumerate() {
            let mut writer = Writer::open(mode, &path).unwrap();
            assert!(writer.turn(at, Duration::ZERO).unwrap() < Duration::from_secs(60));
            writer.close().unwrap();
        }
        check(&path, &[1; 7]).unwrap();
        assert!(check(&path, &[1, 1, 1, 1, 1, 1, 2]).unwrap_err().to_string().contains("process 6 committed 2"));
        assert!(check(&path, &[1; 6]).unwrap_err().to_string().contains("nobody's"));
    }
}
