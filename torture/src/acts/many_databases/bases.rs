//! The databases of a round: their files, their handles, and what they must contain.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flatwater::options::Inline;
use flatwater::rusqlite::Connection;
use flatwater::{Database, Error, Options};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use tokio::sync::{RwLock, RwLockReadGuard};

use crate::finding::Finding;
use crate::ledger::Ledger;
use crate::round::Counts;
use crate::{checks, writes};

/// `f` is the other process's table. Small pages, since there are thousands of files.
const SCHEMA: &str = "PRAGMA page_size = 1024; PRAGMA journal_mode = wal; CREATE TABLE f (n INTEGER NOT NULL)";

/// How many descriptors a database may have on average, and how many times as many databases as `max_open` may have connections: the
/// ones that are used, and those that are being parked.
const EACH: usize = 8;
const TIMES: usize = 2;
/// Descriptors that are not bounded by `max_open`: of the runtime and this act, and released ones on files that the other
/// process uses, which Flatwater has to keep (docs/design/files.md).
const OTHERS: usize = 64 + FOREIGN * 4;
/// How many databases the other process writes to.
const FOREIGN: usize = 16;

/// How long a close, of one database or of all, waits for what runs.
const CLOSE_WAIT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    pub(super) databases: usize,
    pub(super) max_open: usize,
    /// How many databases have a live query all the time: the first ones.
    pub(super) watched: usize,
    pub(super) tasks: usize,
    pub(super) never_inline: bool,
}

impl Setting {
    pub(super) fn most_descriptors(&self) -> usize {
        TIMES * self.max_open * EACH + OTHERS
    }
}

pub(super) struct Bases {
    pub(super) setting: Setting,
    pub(super) all: Vec<Base>,
    counts: Mutex<Counts>,
}

/// A database, whose handle is closed and opened again now and then.
pub(super) struct Base {
    pub(super) number: usize,
    path: PathBuf,
    options: Options,
    pub(super) ledger: Ledger,
    acknowledged: Mutex<Vec<i64>>,
    was_used: AtomicBool,
    /// Locked for a close, and while it is opened, so that no call meets a close.
    handle: RwLock<Option<Database>>,
}

impl Bases {
    /// Creates the files: copies of one.
    pub(super) fn make(directory: &Path, setting: Setting) -> Result<Self, Finding> {
        let first = directory.join("first");
        let plain = Connection::open(&first)?;
        plain.execute_batch(SCHEMA)?;
        plain.execute_batch(writes::SCHEMA)?;
        drop(plain);
        flatwater::process::set_max_open(setting.max_open);
        let mut all = Vec::new();
        for number in 0..setting.databases {
            let path = directory.join(format!("{number}.db"));
            std::fs::copy(&first, &path)?;
            let inline = if setting.never_inline { Inline::Never } else { Inline::default() };
            all.push(Base {
                number,
                options: Options::new(&path)
                    .readers(1)
                    .tuning(|t| t.close_wait(CLOSE_WAIT))
                    .tuning(|t| t.extra_readers(2).inline(inline)),
                path,
                ledger: Ledger::default(),
                acknowledged: Mutex::default(),
                was_used: AtomicBool::new(false),
                handle: RwLock::default(),
            });
        }
        Ok(Self { setting, all, counts: Mutex::default() })
    }

    /// Returns a random database, every other time one of a few.
    pub(super) fn some(&self, rng: &mut StdRng) -> &Base {
        let few = self.all.len().min(self.setting.max_open);
        let among = if rng.random() { &self.all[self.all.len() - few..] } else { &self.all[..] };
        among.choose(rng).expect("there are databases")
    }

    /// The files that the other process uses: some that are watched, and some that may be closed.
    pub(super) fn foreign(&self) -> Vec<(usize, PathBuf)> {
        let some = self.all.iter().take(FOREIGN / 4).chain(self.all.iter().rev().take(FOREIGN - FOREIGN / 4));
        some.map(|base| (base.number, base.path.clone())).collect()
    }

    pub(super) fn count(&self, what: &str, count: u64) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).add(what, count);
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts how often the open databases were parked.
    pub(super) async fn note_parked(&self) {
        for base in &self.all {
            let parked = base.handle.read().await.as_ref().map_or(0, |db| db.stats().parked);
            self.count("parked", parked);
        }
    }

    /// Checks all closed files that were used: they have what was acknowledged, here and to the other process. A WAL may be
    /// left where its copy got no turn in the time of the close, or was too slow when the database was parked.
    pub(super) fn audit(&self, foreign: &[(usize, i64)]) -> Result<(), Finding> {
        let was_used = |base: &&Base| base.was_used.load(Ordering::Relaxed);
        for base in self.all.iter().filter(was_used) {
            let wal = PathBuf::from(format!("{}-wal", base.path.display()));
            if std::fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0) {
                self.count("WALs left", 1);
            }
            base.ledger.agrees_with(&writes::rows(&base.path)?)?;
            checks::is_sound(&base.path)?;
        }
        for (number, n) in foreign {
            let plain = Connection::open(&self.all[*number].path)?;
            let found: i64 = plain.query_row("SELECT count(*) FROM f WHERE n = ?", [n], |row| row.get(0))?;
            if found != 1 {
                return Err(Finding::new(format!("a row of the other process is there {found} times: {number} {n}")));
            }
        }
        Ok(())
    }
}

impl Base {
    /// Returns the open database.
    pub(super) async fn open(&self) -> Result<RwLockReadGuard<'_, Option<Database>>, Error> {
        self.was_used.store(true, Ordering::Relaxed);
        loop {
            let handle = self.handle.read().await;
            if handle.is_some() {
                return Ok(handle);
            }
            drop(handle);
            let mut handle = self.handle.write().await;
            if handle.is_none() {
                *handle = Some(self.options.clone().open().await?);
            }
        }
    }

    /// Closes the database. Returns false if it is not open.
    pub(super) async fn close(&self) -> Result<bool, Error> {
        let Some(db) = self.handle.write().await.take() else { return Ok(false) };
        // Another task may open the file while it is being closed.
        db.close().await?;
        Ok(true)
    }

    /// Returns what is known of the open database, for a finding.
    pub(super) async fn stats(&self) -> String {
        let stats = self.handle.read().await.as_ref().map(|db| db.stats());
        format!("{stats:?}")
    }

    /// Returns how many rows there are of this process, and of the other one, read with plain SQLite.
    pub(super) fn written(&self) -> Result<(i64, i64), Finding> {
        let plain = Connection::open(&self.path)?;
        let both = "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM f)";
        Ok(plain.query_row(both, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    pub(super) fn acknowledged(&self, number: i64) {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    pub(super) fn some_acknowledged(&self, rng: &mut StdRng) -> Option<i64> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).choose(rng).copied()
    }
}
