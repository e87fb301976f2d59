//! What a part of a round has in addition to its database: its orders, its ledger, the board, and a watchdog.
//!
//! A part runs until its standard input ends. It writes a finding into a file, which the round reads.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::ledger::{Ledger, Line};
use crate::board::{Board, SLOTS};
use crate::finding::Finding;
use crate::gauge::Hold;

/// A call that takes longer counts as hung. No lock is held, and no process is stopped, for more than half a second.
const HANGS: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);
/// The number of row numbers of one incarnation, more than it can use.
const ROWS: i64 = 1_000_000_000;

/// The numbers of each part.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell {
    /// The highest value of the counter that the part received.
    Value,
    /// The last entry that was acknowledged to the part.
    Entry,
    /// The number of reads whose result was correct.
    Reads,
    /// The number of inline runs.
    Inline,
    /// The number of maintenance operations.
    Works,
    /// How often the journal mode was switched away from WAL.
    Switches,
    /// The number of turns that a Flatwater process took among those that write.
    Turns,
}

impl From<Cell> for usize {
    fn from(cell: Cell) -> Self {
        cell as Self
    }
}

/// What a round tells a part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Orders {
    pub(super) directory: PathBuf,
    pub(super) slot: usize,
    /// Unique among the processes of a round.
    pub(super) incarnation: u32,
    pub(super) seed: u64,
    /// Whether Flatwater processes take turns.
    pub(super) is_fair: bool,
}

impl Orders {
    pub(super) fn database(&self) -> PathBuf {
        database(&self.directory)
    }
}

pub(super) fn database(directory: &Path) -> PathBuf {
    directory.join("shared.db")
}

pub(super) fn finding_of(directory: &Path, incarnation: u32) -> PathBuf {
    directory.join(format!("finding-{incarnation}"))
}

fn hold_of(directory: &Path, incarnation: u32) -> PathBuf {
    directory.join(format!("hold-{incarnation}"))
}

/// Returns the longest times that polls blocked their threads, over all parts.
pub(super) fn holds(directory: &Path, incarnations: u32) -> io::Result<Hold> {
    let mut all = Hold::default();
    for incarnation in 0..incarnations {
        if let Ok(text) = fs::read_to_string(hold_of(directory, incarnation)) {
            all.merge(&serde_json::from_str(&text)?);
        }
    }
    Ok(all)
}

pub(super) struct Witness {
    pub(super) orders: Orders,
    board: Board,
    ledger: Ledger,
    is_over: AtomicBool,
    next_row: AtomicI64,
    /// The highest value of the counter that this part stored on the board.
    highest: Mutex<i64>,
    counting: Mutex<()>,
    /// What each task is doing, and since when.
    doing: Mutex<Vec<Option<(&'static str, Instant)>>>,
}

impl Witness {
    fn new(orders: Orders) -> io::Result<Self> {
        let board = Board::open(&orders.directory)?;
        Ok(Self {
            ledger: Ledger::create(&orders.directory, orders.incarnation)?,
            is_over: AtomicBool::new(false),
            next_row: AtomicI64::new(i64::from(orders.incarnation) * ROWS + 1),
            // The values that a killed predecessor stored.
            highest: Mutex::new(board.get(orders.slot, Cell::Value)?),
            counting: Mutex::default(),
            doing: Mutex::default(),
            board,
            orders,
        })
    }

    pub(super) fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    pub(super) fn rng(&self, task: u64) -> StdRng {
        StdRng::seed_from_u64(self.orders.seed ^ (task << 32))
    }

    /// Returns an unused row number.
    pub(super) fn new_row(&self) -> i64 {
        self.next_row.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn note(&self, line: Line) -> io::Result<()> {
        self.ledger.note(line)
    }

    /// Records an acknowledged entry: from now on every process must see it.
    pub(super) fn shows(&self, id: i64) -> io::Result<()> {
        self.board.put(self.orders.slot, Cell::Entry, id)
    }

    /// Records that the counter has at least this value, which every process must see from now on.
    pub(super) fn saw(&self, value: i64) -> io::Result<()> {
        let mut highest = self.highest.lock().unwrap_or_else(PoisonError::into_inner);
        if value > *highest {
            *highest = value;
            self.board.put(self.orders.slot, Cell::Value, value)?;
        }
        Ok(())
    }

    /// Returns the minimum value of the counter for a read that begins now.
    pub(super) fn floor(&self) -> io::Result<i64> {
        self.board.highest(Cell::Value)
    }

    /// Returns an entry that a read that begins now must see; 0 if there is none yet.
    pub(super) fn some_entry(&self, rng: &mut StdRng) -> io::Result<i64> {
        self.board.get(rng.random_range(0..SLOTS), Cell::Entry)
    }

    /// Adds to a count that must survive this process.
    pub(super) fn count(&self, cell: Cell, more: u64) -> io::Result<()> {
        let _alone = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        let so_far = self.board.get(self.orders.slot, cell)?;
        self.board.put(self.orders.slot, cell, so_far.saturating_add_unsigned(more))
    }

    /// Counts a read whose result was correct.
    pub(super) fn was_read(&self) -> io::Result<()> {
        self.count(Cell::Reads, 1)
    }

    /// Records the longest times that polls blocked their threads so far. The record survives this process.
    pub(super) fn held(&self, hold: &Hold) -> io::Result<()> {
        let file = hold_of(&self.orders.directory, self.orders.incarnation);
        let whole = file.with_extension("new");
        fs::write(&whole, serde_json::to_string(hold)?)?;
        fs::rename(whole, file)
    }

    /// Records what a task begins now; `None` if it waits for nothing.
    pub(super) fn does(&self, task: usize, what: Option<&'static str>) {
        let mut doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        if doing.len() <= task {
            doing.resize(task + 1, None);
        }
        doing[task] = what.map(|what| (what, Instant::now()));
    }

    /// Watches for a call that does not end, and writes the finding, which a hung process could not do.
    fn watch(&self) {
        loop {
            std::thread::sleep(LOOK);
            let doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((what, since)) = doing.iter().flatten().find(|(_, since)| since.elapsed() > HANGS) {
                let finding = Finding::new(format!("{what} does not end for {} s", since.elapsed().as_secs()));
                self.tell(&finding.with_history(format!("{doing:?}")));
                std::process::exit(1);
            }
        }
    }

    fn tell(&self, finding: &Finding) {
        let text = serde_json::to_string(finding).expect("texts are JSON");
        fs::write(finding_of(&self.orders.directory, self.orders.incarnation), text).expect("the directory is there");
    }
}

/// Runs a part until its standard input ends.
pub(super) fn runs(args: &[String], part: fn(&Arc<Witness>) -> Result<(), Finding>) -> ExitCode {
    let orders = args.first().and_then(|text| serde_json::from_str(text).ok());
    let Some(orders) = orders else {
        eprintln!("orders are missing");
        return ExitCode::from(2);
    };
    let witness = Arc::new(Witness::new(orders).expect("the round made the directory"));
    let (listener, watcher) = (witness.clone(), witness.clone());
    std::thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        listener.is_over.store(true, Ordering::Relaxed);
    });
    std::thread::spawn(move || watcher.watch());
    match part(&witness) {
        Ok(()) => ExitCode::SUCCESS,
        Err(finding) => {
            witness.tell(&finding);
            ExitCode::FAILURE
        }
    }
}
