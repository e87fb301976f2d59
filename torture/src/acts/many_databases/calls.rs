//! What one task does: calls of every kind on databases that it picks at random. No call may fail.

use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use flatwater::calls::CheckpointMode;
use flatwater::{Database, Error};
use futures_util::future::try_join_all;
use futures_util::poll;
use rand::RngExt;
use rand::rngs::StdRng;

use super::bases::{Base, Bases};
use crate::finding::Finding;
use crate::writes::{self, COUNT, INSERT, WAYS, is_pair};

/// A call that takes longer counts as hung.
const HANGS: Duration = Duration::from_secs(60);
/// Each task makes so many calls, however slow the machine is.
const LEAST: u32 = 8;
/// How long a transaction pauses at most.
const PAUSE_MS: u64 = 3;

pub(super) struct Task {
    pub(super) bases: Arc<Bases>,
    pub(super) rng: StdRng,
}

type Answer = Result<Result<&'static str, Finding>, Error>;

impl Task {
    pub(super) async fn run(&mut self, until: Instant) -> Result<(), Finding> {
        let bases = self.bases.clone();
        let mut calls = 0;
        while calls < LEAST || Instant::now() < until {
            calls += 1;
            let base = bases.some(&mut self.rng);
            let kind = self.rng.random_range(0..100);
            let call = tokio::time::timeout(HANGS, self.call(base, kind)).await;
            let hangs = |_| Finding::new(format!("call {kind} of database {} does not end", base.number));
            match call.map_err(hangs)? {
                Ok(done) => bases.count(done?, 1),
                Err(error) => {
                    let what = format!("call {kind} of database {} fails: {error}", base.number);
                    return Err(Finding::new(what).with_history(format!("{error:?}\n{:?}", bases.setting)));
                }
            }
        }
        Ok(())
    }

    async fn call(&mut self, base: &Base, kind: u32) -> Answer {
        if (90..95).contains(&kind) && base.number >= self.bases.setting.watched {
            return Ok(Ok(if base.close().await? { "closes" } else { "closes of databases that were not open" }));
        }
        let handle = base.open().await?;
        let db = handle.as_ref().expect("it was opened");
        match kind {
            0..30 => self.write(base, db).await,
            30..36 => self.dropped(base, db).await,
            36..44 => self.transaction(base, db).await,
            44..70 => self.reads(base, db).await,
            70..75 => self.closure(base, db).await,
            75..80 => self.snapshot(db).await,
            80..85 => self.stream(db).await,
            85..90 => self.live(base, db).await,
            _ => db.checkpoint(CheckpointMode::Passive).await.map(|_| Ok("checkpoints")),
        }
    }

    async fn write(&mut self, base: &Base, db: &Database) -> Answer {
        let way = self.rng.random_range(0..WAYS);
        let number = base.ledger.begin(is_pair(way));
        let answer = writes::write(db, way, number).await;
        wrote(base, number, answer)
    }

    /// A write that its caller drops after a poll.
    async fn dropped(&mut self, base: &Base, db: &Database) -> Answer {
        let way = self.rng.random_range(0..WAYS);
        let number = base.ledger.begin(is_pair(way));
        let mut op = writes::write(db, way, number);
        match poll!(&mut op) {
            Poll::Ready(answer) => wrote(base, number, answer),
            Poll::Pending => Ok(Ok("dropped calls")),
        }
    }

    /// A transaction that pauses, so that its database is in use while others need room.
    async fn transaction(&mut self, base: &Base, db: &Database) -> Answer {
        let number = base.ledger.begin(true);
        let pause = Duration::from_millis(self.rng.random_range(0..=PAUSE_MS));
        let written = db.transaction(async |tx| {
            tx.execute(INSERT, (number,)).await?;
            tokio::time::sleep(pause).await;
            let seen = tx.query_optional_value::<i64>(COUNT, (number,)).await?;
            tx.execute(INSERT, (-number,)).await?;
            Ok::<_, Error>(seen)
        });
        let written = written.await;
        if let Ok(seen) = &written
            && *seen != Some(1)
        {
            return Ok(Err(Finding::new(format!("a transaction sees its own row {seen:?} times"))));
        }
        wrote(base, number, written.map(drop))
    }

    /// One read, or several at once.
    async fn reads(&mut self, base: &Base, db: &Database) -> Answer {
        let Some(number) = base.some_acknowledged(&mut self.rng) else { return self.write(base, db).await };
        let times = if self.rng.random_bool(0.1) { 8 } else { 1 };
        let found =
            try_join_all((0..times).map(|_| async { db.query_optional_value::<i64>(COUNT, (number,)).await })).await?;
        Ok(found.into_iter().try_for_each(|found| is_once(number, found)).map(|()| "reads"))
    }

    async fn closure(&mut self, base: &Base, db: &Database) -> Answer {
        let Some(number) = base.some_acknowledged(&mut self.rng) else { return self.write(base, db).await };
        let read = db.read_with(move |plain| plain.query_row(COUNT, [number], |row| row.get(0)).map_err(Error::from));
        Ok(is_once(number, Some(read.await?)).map(|()| "reads"))
    }

    async fn snapshot(&self, db: &Database) -> Answer {
        const ALL: &str = "SELECT count(*), total(n) FROM t";
        let snapshot = db.snapshot().await?;
        let first: Vec<(i64, f64)> = snapshot.query_as(ALL, ()).await?;
        let second: Vec<(i64, f64)> = snapshot.query_as(ALL, ()).await?;
        if first == second {
            return Ok(Ok("snapshots"));
        }
        Ok(Err(Finding::new(format!("a snapshot sees {first:?} and then {second:?}"))))
    }

    /// A result of several batches.
    async fn stream(&self, db: &Database) -> Answer {
        let sql =
            "WITH RECURSIVE more (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more LIMIT 1500) SELECT n FROM more";
        let mut stream = db.stream_as::<(i64,)>(sql, ());
        let mut rows = 0;
        while let Some(row) = stream.next().await {
            row?;
            rows += 1;
        }
        if rows == 1500 {
            return Ok(Ok("streams"));
        }
        Ok(Err(Finding::new(format!("a stream of 1500 rows has {rows}"))))
    }

    /// A live query that begins now, up to the result that has the row that is written then.
    async fn live(&self, base: &Base, db: &Database) -> Answer {
        let number = base.ledger.begin(false);
        let mut live = db.live(COUNT, (number,));
        let Some(first) = live.next().await else { return Ok(Err(Finding::new("a live query is over"))) };
        first?;
        if let Err(error) = wrote(base, number, db.execute(INSERT, (number,)).await.map(drop))? {
            return Ok(Err(error));
        }
        while let Some(rows) = live.next().await {
            if rows?.read::<(i64,)>()? == [(1,)] {
                return Ok(Ok("live results"));
            }
        }
        Ok(Err(Finding::new("a live query is over")))
    }
}

fn wrote(base: &Base, number: i64, answer: Result<(), Error>) -> Answer {
    base.ledger.answered(number, &answer);
    answer?;
    base.acknowledged(number);
    Ok(Ok("acknowledged writes"))
}

fn is_once(number: i64, found: Option<i64>) -> Result<(), Finding> {
    if found == Some(1) {
        return Ok(());
    }
    Err(Finding::new(format!("write {number} was acknowledged, and a read finds it {found:?} times")))
}
