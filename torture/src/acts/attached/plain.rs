//! The process that uses plain SQLite: it opens one of the files, by itself or as the main file with the others attached,
//! and commits to it, changes its definitions, checkpoints, vacuums.
//!
//! Leaves out: the checks of what Flatwater answers.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rusqlite::{Connection, ErrorCode};

use super::crew::{Order, Role, obeying};
use super::setup::{Setup, schema};
use super::writes::{self, definitions};
use crate::board::Board;
use crate::finding::Finding;
use crate::round::Counts;

/// How long it waits for a lock.
const BUSY: Duration = Duration::from_secs(5);

pub(super) fn part(args: &[String]) -> ExitCode {
    obeying(args, Plain::begin, Plain::obey, |_| Ok(()))
}

struct Plain {
    setup: Setup,
    slot: usize,
    board: Board,
    rng: StdRng,
    /// The connection with the number and the schema of the file that it writes. It stays open between two orders.
    open: Option<(Connection, usize, String)>,
}

impl Plain {
    fn begin(role: Role) -> Result<Self, Finding> {
        let board = Board::open(&role.setup.directory)?;
        Ok(Self { setup: role.setup, slot: role.slot, board, rng: StdRng::seed_from_u64(role.seed), open: None })
    }

    fn obey(&mut self, order: Order, counts: &mut Counts) -> Result<(), Finding> {
        let Order::Work { millis, file, writer, .. } = order else { return Ok(()) };
        if writer.is_some_and(|slot| slot != self.slot) {
            return Ok(());
        }
        let until = Instant::now() + Duration::from_millis(millis);
        self.define(file, counts)?;
        while Instant::now() < until {
            self.step(file, counts)?;
            std::thread::sleep(Duration::from_micros(self.rng.random_range(0..4000)));
        }
        // The last commit is one to a file alone.
        if self.rng.random() { self.define(file, counts) } else { self.change(file, counts) }
    }

    /// Opens another file, if another one is meant, and sometimes the same anew.
    fn open(&mut self, file: Option<usize>) -> Result<(&Connection, usize, &str), Finding> {
        let is_meant = |open: &(Connection, usize, String)| file.is_none_or(|file| file == open.1);
        let kept = self.open.take().filter(is_meant).filter(|_| self.rng.random_bool(0.97));
        let (plain, file, schema) = match kept {
            Some(open) => self.open.insert(open),
            None => {
                let file = file.unwrap_or_else(|| self.rng.random_range(0..self.setup.files));
                let (plain, schema) = if self.rng.random_bool(0.7) {
                    (Connection::open(self.setup.path(file))?, schema(0))
                } else {
                    (self.setup.plain()?, schema(file))
                };
                plain.busy_timeout(BUSY)?;
                self.open.insert((plain, file, schema))
            }
        };
        Ok((plain, *file, schema))
    }

    fn step(&mut self, file: Option<usize>, counts: &mut Counts) -> Result<(), Finding> {
        match self.rng.random_range(0..100) {
            0..70 => self.change(file, counts),
            70..85 => self.raise(file, counts),
            85..94 => self.define(file, counts),
            94..98 => self.run(file, "PRAGMA wal_checkpoint(TRUNCATE)", counts, "checkpoints"),
            _ => self.run(file, "VACUUM", counts, "vacuums"),
        }
    }

    fn change(&mut self, file: Option<usize>, counts: &mut Counts) -> Result<(), Finding> {
        let mut rng = StdRng::seed_from_u64(self.rng.random());
        let (plain, _, schema) = self.open(file)?;
        let sql = writes::change(schema, &mut rng);
        done(plain.execute_batch(&sql), counts, "commits")
    }

    /// Raises the counter, and notes the value on the board: each read that begins now has to see it.
    fn raise(&mut self, file: Option<usize>, counts: &mut Counts) -> Result<(), Finding> {
        let (plain, file, schema) = self.open(file)?;
        // Read all rows: the statement commits only at its end.
        let raised = plain
            .prepare(&writes::raise(schema))
            .and_then(|mut raise| raise.query_map([], |row| row.get::<_, i64>(0))?.last().transpose());
        if let Ok(Some(value)) = raised {
            self.board.put(self.slot, file, value)?;
        }
        done(raised.map(drop), counts, "commits")
    }

    fn define(&mut self, file: Option<usize>, counts: &mut Counts) -> Result<(), Finding> {
        let mut rng = StdRng::seed_from_u64(self.rng.random());
        let (plain, _, schema) = self.open(file)?;
        let all = definitions(schema);
        let sql = all.choose(&mut rng).expect("there are definitions");
        done(plain.execute_batch(sql), counts, "schema changes")
    }

    fn run(&mut self, file: Option<usize>, sql: &str, counts: &mut Counts, what: &str) -> Result<(), Finding> {
        let (plain, _, schema) = self.open(file)?;
        let sql = match sql.strip_prefix("PRAGMA ") {
            Some(pragma) => format!("PRAGMA {schema}.{pragma}"),
            None => format!("{sql} {schema}"),
        };
        // A checkpoint says in its row whether it was done.
        let ran = plain.prepare(&sql).and_then(|mut sql| sql.query([])?.next().map(drop));
        done(ran, counts, what)
    }
}

/// Counts what was done. A lock of another process is the only error that is allowed.
fn done(answer: rusqlite::Result<()>, counts: &mut Counts, what: &str) -> Result<(), Finding> {
    match answer {
        Ok(()) => counts.add(what, 1),
        Err(error) if is_busy(&error) => counts.add("refusals by a lock", 1),
        Err(error) => return Err(Finding::new(format!("plain SQLite fails ({what}): {error}"))),
    }
    Ok(())
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
