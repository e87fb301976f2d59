//! The load of a case while starts of threads fail, and the checks after it, when they do not fail any more.

use std::pin::pin;
use std::time::{Duration, Instant};

use flatwater::{Database, Options};
use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::calls::{KINDS, Kind};
use super::case::Case;
use super::watch::Watch;
use super::work::{Work, within};
use crate::faults;
use crate::finding::Finding;
use crate::writes::{INSERT, SCHEMA};

/// The planned duration of the load.
const LENGTH: Duration = Duration::from_millis(600);
/// A call that takes longer while starts fail is one that waits for a thread.
const PATIENCE: Duration = Duration::from_secs(2);
/// The number of attempts to open a database while starts fail.
const TRIES: u32 = 5;

/// An open database, and its live queries.
pub(super) struct Open {
    pub(super) db: Database,
    pub(super) watch: Watch,
}

impl Work {
    /// Opens the database, in several attempts while starts fail.
    async fn open(&self, options: &Options) -> Result<Option<Open>, Finding> {
        for _ in 0..TRIES {
            match within("open", options.clone().open()).await? {
                Ok(db) => {
                    let watch = Watch::begin(&db);
                    return Ok(Some(Open { db, watch }));
                }
                Err(error) => self.may_fail("open", &error)?,
            }
        }
        Ok(None)
    }

    async fn close(&self, open: Open) -> Result<(), Finding> {
        open.watch.found()?;
        let (results, errors) = open.watch.counts();
        self.count("live results", results);
        self.count("live errors", errors);
        open.watch.closes();
        match within("close", open.db.close()).await? {
            Ok(()) => Ok(()),
            Err(error) => self.may_fail("close", &error),
        }
    }

    /// Runs the load. Returns the database if it is open at the end.
    pub(super) async fn load(
        &self,
        case: &Case,
        options: &Options,
        mut open: Option<Open>,
    ) -> Result<Option<Open>, Finding> {
        let mut rng = StdRng::seed_from_u64(case.seed);
        let until = Instant::now() + LENGTH;
        for _ in 0..case.steps {
            if Instant::now() >= until {
                break;
            }
            open = if open.is_none() { self.open(options).await? } else { open };
            let Some(Open { db, watch }) = &open else { break };
            watch.found()?;
            let kinds: Vec<_> = (0..rng.random_range(1..=4)).map(|_| *KINDS.choose(&mut rng).expect("kinds")).collect();
            if kinds.contains(&Kind::Reopen) && !case.in_memory {
                self.close(open.take().expect("it is open")).await?;
                continue;
            }
            let calls = kinds.into_iter().map(|kind| {
                let mut rng = StdRng::seed_from_u64(rng.random());
                async move { within(&format!("{kind:?}"), self.call(db, kind, &mut rng)).await? }
            });
            let calls = calls.collect::<Vec<_>>();
            self.count("calls", calls.len() as u64);
            let mut calls = pin!(join_all(calls));
            let Ok(ended) = tokio::time::timeout(PATIENCE, &mut calls).await else {
                // They wait for a thread, and have it as soon as one can be started.
                self.count("calls that waited for a thread", 1);
                faults::disarm()?;
                calls.await.into_iter().collect::<Result<(), _>>()?;
                break;
            };
            ended.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(open)
    }

    /// Checks that every kind of call works at the first try, that the live queries have the newest result after one
    /// commit, and that the database has what was answered.
    pub(super) async fn goes_on(&self, options: &Options, open: Option<Open>) -> Result<(), Finding> {
        let open = match open {
            Some(open) => open,
            None => self.open(options).await?.ok_or_else(|| Finding::new("the database does not open"))?,
        };
        self.everything(&open.db).await?;
        let number = self.ledger.begin(false);
        let answer = within("a write", open.db.execute(INSERT, (number,))).await?;
        self.wrote("a write", number, answer)?;
        within("what the live queries have to deliver", open.watch.arrives(&open.db)).await??;
        let rows = within("a read of all", open.db.query_as::<(i64,)>("SELECT n FROM t", ())).await??;
        self.ledger.agrees_with(&rows.into_iter().map(|(n,)| n).collect::<Vec<_>>())?;
        self.close(open).await
    }

    /// As `goes_on`, for the database that is opened once more.
    pub(super) async fn opens_again(&self, options: &Options) -> Result<(), Finding> {
        let open = self.open(options).await?.ok_or_else(|| Finding::new("the database does not open"))?;
        self.everything(&open.db).await?;
        within("what the live queries have to deliver", open.watch.arrives(&open.db)).await??;
        self.close(open).await
    }

    async fn everything(&self, db: &Database) -> Result<(), Finding> {
        for (seed, kind) in (1..).zip(KINDS) {
            within(&format!("{kind:?}"), self.call(db, kind, &mut StdRng::seed_from_u64(seed))).await??;
            self.count("calls afterwards", 1);
        }
        Ok(())
    }

    /// Creates the table.
    pub(super) async fn schema(&self, db: &Database) -> Result<(), Finding> {
        Ok(within("the schema", db.execute_script(SCHEMA)).await??)
    }
}
