//! The process that uses Flatwater: one that only reads the files, or one that writes too. It has live queries on all
//! files, and makes calls of every kind.
//!
//! Its work and its arrivals run on one thread, on which the live queries are polled too. Leaves out: the calls (`reads`)
//! and the live queries (`watch`).

use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use flatwater::bindings::Internals as _;
use flatwater::options::Inline;
use flatwater::{Database, Options};
use futures_util::future::try_join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::LocalSet;

use super::asks::{self, Expected, Step, differs, text_of};
use super::crew::{Order, Role, obeying};
use super::reads::{Task, rng_of};
use super::setup::{Setup, schema};
use super::watch::Watch;
use crate::board::Board;
use crate::finding::Finding;
use crate::leftovers::Belongings;
use crate::round::Counts;

/// A call that takes longer counts as hung.
const HANGS: Duration = Duration::from_secs(60);

pub(super) fn part(args: &[String]) -> ExitCode {
    obeying(args, Ours::begin, Ours::obey, Ours::end)
}

struct Ours {
    before: Belongings,
    runtime: tokio::runtime::Runtime,
    local: LocalSet,
    role: Role,
    board: Board,
    rng: StdRng,
    db: Database,
    watch: Rc<Watch>,
    /// The live results that were counted.
    counted: u64,
}

impl Ours {
    fn begin(role: Role) -> Result<Self, Finding> {
        let (mut rng, board) = (StdRng::seed_from_u64(role.seed), Board::open(&role.setup.directory)?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let (before, local) = (Belongings::now(), LocalSet::new());
        let options = options(&role, &mut rng);
        // Connections on which no live query runs notice by themselves what others do.
        let watched: Vec<_> = (0..role.setup.files).filter(|file| *file == 1 || rng.random_bool(0.5)).collect();
        let (db, watch) = local.block_on(&runtime, async {
            let db = options.open().await?;
            let watch = Rc::new(Watch::begin(&db, &role.setup, &watched));
            Ok::<_, Finding>((db, watch))
        })?;
        Ok(Self { before, runtime, local, role, board, rng, db, watch, counted: 0 })
    }

    fn obey(&mut self, order: Order, counts: &mut Counts) -> Result<(), Finding> {
        match order {
            Order::Work { millis, file, writer, rests } => {
                let writes = !self.role.is_read_only && writer.is_none_or(|slot| slot == self.role.slot);
                if writes || !rests {
                    self.works(Duration::from_millis(millis), file, writes, counts)?;
                }
            }
            Order::Arrive(expected) => self.arrives(&expected, counts)?,
        }
        let results = self.watch.results();
        counts.add("live results", results - self.counted);
        self.counted = results;
        Ok(())
    }

    fn works(&mut self, time: Duration, file: Option<usize>, writes: bool, counts: &mut Counts) -> Result<(), Finding> {
        let until = Instant::now() + time;
        let (db, role, board) = (&self.db, &self.role, &self.board);
        let tasks = (0..self.rng.random_range(1..=4)).map(|_| {
            let rng = rng_of(&mut self.rng);
            Task { db, role, board, rng, file, writes, counts: Counts::default() }
        });
        let run = async |mut task: Task<'_>| {
            // Each kind of read at least once in a while, however slow the machine is.
            let mut steps = 0;
            while steps < 8 || Instant::now() < until {
                let limited = tokio::time::timeout(HANGS, task.step()).await;
                limited.map_err(|_| Finding::new(format!("a call does not end for {} s", HANGS.as_secs())))??;
                // The live queries run on this thread too.
                tokio::task::yield_now().await;
                steps += 1;
            }
            Ok::<_, Finding>(task.counts)
        };
        let done = self.local.block_on(&self.runtime, try_join_all(tasks.map(run)))?;
        done.iter().for_each(|more| counts.merge(more));
        self.watch.found()
    }

    /// Compares everything with what plain SQLite reads now.
    fn arrives(&mut self, expected: &Expected, counts: &mut Counts) -> Result<(), Finding> {
        let (db, watch, setup) = (&self.db, self.watch.clone(), &self.role.setup);
        self.local.block_on(&self.runtime, async {
            for step in &expected.order {
                match step {
                    Step::Reads => reads(db, setup, expected).await?,
                    Step::Live => watch.arrives(&expected.answers).await?,
                    Step::Pragmas => pragmas(db, expected).await?,
                }
            }
            Ok::<_, Finding>(())
        })?;
        counts.add("PRAGMAs compared", expected.pragmas.len() as u64);
        counts.add("live queries checked", expected.answers.len() as u64);
        Ok(())
    }

    /// Closes the database, and checks that nothing is left.
    fn end(self) -> Result<(), Finding> {
        let Self { before, runtime, local, db, watch, .. } = self;
        local.block_on(&runtime, async {
            if let Ok(watch) = Rc::try_unwrap(watch) {
                watch.end();
            }
            db.close().await
        })?;
        drop((local, runtime, db));
        before.are_back()
    }
}

/// Runs each query: all commits were answered before.
async fn reads(db: &Database, setup: &Setup, expected: &Expected) -> Result<(), Finding> {
    for ((_, sql), answer) in asks::queries(setup).iter().zip(&expected.answers) {
        let found = text_of(sql, &db.query(sql, ()).await?);
        if found != *answer {
            return Err(differs("a read does not see what was committed before it", sql, &found, answer));
        }
    }
    Ok(())
}

/// Runs the PRAGMAs, many at once, so that each reader gets some.
async fn pragmas(db: &Database, expected: &Expected) -> Result<(), Finding> {
    let run = async |(sql, answer): &(String, String)| {
        let found = text_of(sql, &db.query(sql, ()).await?);
        if found == *answer || std::env::var("TMP_NO_PRAGMA").is_ok() {
            return Ok(());
        }
        Err(differs("a PRAGMA does not answer as plain SQLite does", sql, &found, answer))
    };
    try_join_all(expected.pragmas.iter().map(run)).await.map(drop)
}

fn options(role: &Role, rng: &mut StdRng) -> Options {
    let options = Options::new(role.setup.path(0))
        .read_only(role.is_read_only)
        .readers(rng.random_range(1..=3))
        .tuning(|t| t.leases(rng.random_bool(0.7)))
        .busy_timeout(Duration::from_secs(10));
    let options = if rng.random_bool(0.3) { options.tuning(|t| t.inline(Inline::Never)) } else { options };
    (1..role.setup.files)
        .fold(options, |options, file| options.tuning(|t| t.attach(schema(file), role.setup.path(file))))
}
