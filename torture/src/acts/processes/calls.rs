//! The calls of one task of the Flatwater part, and the conditions on each result.
//!
//! Some calls have a deadline. Each poll is measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flatwater::calls::TimeoutEffect;
use flatwater::{Call, Database, Error, ErrorKind, params};
use futures_util::future::join_all;
use rand::RngExt;
use rand::rngs::StdRng;

use super::books::{self, ACCOUNTS, Sight};
use super::ledger::Line;
use super::witness::{Cell, Witness};
use crate::finding::Finding;
use crate::gauge::Gauge;

/// How much later than its deadline a call may return: the machine is busy, and a part may be stopped repeatedly.
const LATE: Duration = Duration::from_secs(20);

/// The number of steps after which inline runs and turns are counted.
const STEPS: u64 = 50;

/// What an error says about the write that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Denied,
    Unknown,
}

/// Returns a finding if a lock of another process cannot cause the error. `CommitUnknown` is a finding, because a lock
/// held by another process only prevents a commit from beginning.
pub(super) fn outcome(what: &str, error: &Error) -> Result<Outcome, Finding> {
    match (error.kind(), error.applied()) {
        (ErrorKind::Busy | ErrorKind::Expired, _) | (ErrorKind::Timeout, Some(TimeoutEffect::No)) => {
            Ok(Outcome::Denied)
        }
        (ErrorKind::Timeout, _) => Ok(Outcome::Unknown),
        _ => Err(Finding::new(format!("{what} fails: {error}")).with_history(format!("{error:?}"))),
    }
}

/// Why the body of a transaction ended it.
enum Ended {
    OnPurpose,
    Failed(Error),
    Wrong(Finding),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The inline runs and the turns of a database that have been counted.
#[derive(Default)]
pub(super) struct Counted {
    inline: AtomicU64,
    turns: AtomicU64,
}

pub(super) struct Task<'a> {
    number: usize,
    db: &'a Database,
    witness: &'a Witness,
    gauge: &'a Gauge,
    counted: &'a Counted,
    rng: StdRng,
}

impl<'a> Task<'a> {
    pub(super) fn new(
        number: usize,
        db: &'a Database,
        witness: &'a Witness,
        gauge: &'a Gauge,
        counted: &'a Counted,
    ) -> Self {
        // Another row and another stream of random numbers each time.
        let rng = witness.rng(witness.new_row().unsigned_abs());
        Self { number, db, witness, gauge, counted, rng }
    }

    pub(super) async fn run(mut self, until: Instant) -> Result<(), Finding> {
        for step in 0.. {
            if !self.witness.goes_on() || Instant::now() >= until {
                break;
            }
            self.step().await?;
            self.witness.does(self.number, None);
            if step % STEPS == 0 {
                self.count_stats()?;
            }
        }
        self.count_stats()
    }

    /// Adds the inline runs and the turns of all tasks since the last count.
    fn count_stats(&self) -> Result<(), Finding> {
        let stats = self.db.stats();
        let inline = stats.inline.reads + stats.inline.writes;
        let counts =
            [(Cell::Inline, inline, &self.counted.inline), (Cell::Turns, stats.turns.taken, &self.counted.turns)];
        for (cell, now, counted) in counts {
            let more = now.saturating_sub(counted.fetch_max(now, Ordering::Relaxed));
            self.witness.count(cell, more)?;
        }
        Ok(())
    }

    async fn step(&mut self) -> Result<(), Finding> {
        match self.rng.random_range(0..100) {
            0..25 => self.enter().await,
            25..40 => self.count().await,
            40..60 => self.read_value().await,
            60..72 => self.find_entry().await,
            72..76 => self.look().await,
            76..80 => self.look_twice().await,
            80..90 => self.give().await,
            90..94 => self.mark().await,
            94..97 => self.enter_many().await,
            _ => self.enter_together().await,
        }
    }

    /// Returns the database, sometimes with a deadline.
    fn hurried(&mut self) -> (Database, Option<Duration>) {
        if self.rng.random_ratio(2, 3) {
            return (self.db.clone(), None);
        }
        let deadline = Duration::from_millis(self.rng.random_range(0..200));
        (self.db.with_timeout(deadline), Some(deadline))
    }

    /// Returns the result of a call. It must arrive soon after the deadline, if there is one.
    async fn answer<T>(
        &self,
        what: &'static str,
        deadline: Option<Duration>,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<Result<T, Error>, Finding> {
        let began = Instant::now();
        self.witness.does(self.number, Some(what));
        let answer = self.gauge.watch(call).await;
        let took = began.elapsed();
        match deadline {
            Some(deadline) if took > deadline + LATE => {
                Err(Finding::new(format!("{what} with a deadline of {deadline:?} was answered after {took:?}")))
            }
            _ => Ok(answer),
        }
    }

    /// Records the results of writes of these rows.
    fn wrote<T>(&self, what: &str, rows: &[i64], answer: Result<T, Error>) -> Result<Outcome, Finding> {
        let outcome = match answer {
            Ok(_) => Outcome::Done,
            Err(error) => outcome(what, &error)?,
        };
        for &row in rows {
            self.witness.note(match outcome {
                Outcome::Done => Line::Acknowledged(row),
                Outcome::Denied => Line::Denied(row),
                Outcome::Unknown => Line::Unknown(row),
            })?;
        }
        Ok(outcome)
    }

    /// Returns the result of a read; `None` if a lock of another process prevented it.
    fn read<T>(&self, what: &str, answer: Result<T, Error>) -> Result<Option<T>, Finding> {
        match answer {
            Ok(value) => Ok(Some(value)),
            Err(error) => outcome(what, &error).map(|_| None),
        }
    }

    async fn enter(&mut self) -> Result<(), Finding> {
        let (id, (db, deadline)) = (self.witness.new_row(), self.hurried());
        let answer = self.answer("an insert", deadline, db.execute(books::ENTER, (id,))).await?;
        self.entered(id, answer)
    }

    fn entered<T>(&self, id: i64, answer: Result<T, Error>) -> Result<(), Finding> {
        if self.wrote("an insert", &[id], answer)? == Outcome::Done {
            self.witness.shows(id)?;
        }
        Ok(())
    }

    async fn count(&mut self) -> Result<(), Finding> {
        let (db, deadline) = self.hurried();
        let floor = self.witness.floor()?;
        let raised = self.answer("a count", deadline, db.query_optional_value::<i64>(books::COUNT, ())).await?;
        let Some(raised) = self.read("a count", raised)? else { return Ok(()) };
        let value = raised.ok_or_else(|| Finding::new("the counter is gone"))?;
        books::check_raised(value, floor)?;
        self.witness.note(Line::Counted(value))?;
        Ok(self.witness.saw(value)?)
    }

    async fn read_value(&mut self) -> Result<(), Finding> {
        let (db, deadline) = self.hurried();
        let floor = self.witness.floor()?;
        let value = self.answer("a read", deadline, db.query_optional_value::<i64>(books::VALUE, ())).await?;
        let Some(value) = self.read("a read", value)? else { return Ok(()) };
        let value = value.ok_or_else(|| Finding::new("the counter is gone"))?;
        books::check_value(value, floor)?;
        self.witness.saw(value)?;
        Ok(self.witness.was_read()?)
    }

    async fn find_entry(&mut self) -> Result<(), Finding> {
        let id = self.witness.some_entry(&mut self.rng)?;
        if id == 0 {
            return Ok(());
        }
        let (db, deadline) = self.hurried();
        let found = self.answer("a lookup", deadline, db.query_optional_value::<i64>(books::ENTRY, (id,))).await?;
        let Some(found) = self.read("a lookup", found)? else { return Ok(()) };
        books::check_entry(id, found.unwrap_or(0))?;
        Ok(self.witness.was_read()?)
    }

    /// Reads all invariants in one snapshot.
    async fn look(&mut self) -> Result<(), Finding> {
        let (db, deadline) = self.hurried();
        let floor = self.witness.floor()?;
        let sights = self.answer("a look", deadline, db.query_as::<Sight>(books::SIGHT, ())).await?;
        let Some(sights) = self.read("a look", sights)? else { return Ok(()) };
        self.sighted(sights.first().copied(), floor)
    }

    fn sighted(&self, sight: Option<Sight>, floor: i64) -> Result<(), Finding> {
        let sight = sight.ok_or_else(|| Finding::new("a look finds nothing"))?;
        books::check(sight, floor)?;
        self.witness.saw(sight.3)?;
        Ok(self.witness.was_read()?)
    }

    /// Reads twice in a transaction, during which no other process may write.
    async fn look_twice(&mut self) -> Result<(), Finding> {
        let (db, deadline) = self.hurried();
        let floor = self.witness.floor()?;
        let twice = db.transaction(async |tx| {
            let first: Vec<Sight> = tx.query_as(books::SIGHT, ()).await?;
            let second: Vec<Sight> = tx.query_as(books::SIGHT, ()).await?;
            Ok::<_, Error>((first, second))
        });
        // The transaction consists of three calls and a commit, each with the deadline.
        let twice = self.answer("a transaction", deadline.map(|deadline| deadline * 4), twice).await?;
        let Some((first, second)) = self.read("a transaction", twice)? else { return Ok(()) };
        if first != second {
            return Err(Finding::new(format!("a transaction sees {first:?} and then {second:?}")));
        }
        self.sighted(first.first().copied(), floor)
    }

    /// Transfers from one account to another, and sometimes rolls the transfer back.
    async fn give(&mut self) -> Result<(), Finding> {
        let (id, (db, deadline)) = (self.witness.new_row(), self.hurried());
        let (giver, taker) = (self.rng.random_range(1..=ACCOUNTS), self.rng.random_range(1..=ACCOUNTS));
        let (amount, stays) = (self.rng.random_range(1..100_i64), self.rng.random_ratio(4, 5));
        let given = db.try_transaction(async |tx| {
            tx.execute(books::GIVE, (amount, giver)).await?;
            tx.execute(books::TAKE, (amount, taker)).await?;
            tx.execute(books::MOVED, (id, amount, giver, taker)).await?;
            let sights: Vec<Sight> = tx.query_as(books::SIGHT, ()).await?;
            sights.iter().try_for_each(|sight| books::check(*sight, 0)).map_err(Ended::Wrong)?;
            if stays { Ok(()) } else { Err(Ended::OnPurpose) }
        });
        // The result type of a transaction is the task's own; the gauge accepts any type.
        let given = async { Ok::<_, Error>(given.await) };
        let given = self.answer("a transfer", deadline.map(|deadline| deadline * 6), given).await?;
        match given.expect("its own answer is inside") {
            Ok(()) => self.wrote("a transfer", &[id], Ok(())).map(drop),
            Err(Ended::Failed(error)) => self.wrote::<()>("a transfer", &[id], Err(error)).map(drop),
            Err(Ended::OnPurpose) => Ok(self.witness.note(Line::Denied(id))?),
            Err(Ended::Wrong(finding)) => Err(finding),
        }
    }

    /// Writes marks and the second counter in one batch.
    async fn mark(&mut self) -> Result<(), Finding> {
        let (db, deadline) = self.hurried();
        let rows: Vec<_> = (0..self.rng.random_range(1..4)).map(|_| self.witness.new_row()).collect();
        let raise = std::iter::once((books::RAISE_MARKED, params![rows.len()]));
        let batch = db.batch(rows.iter().map(|row| (books::MARK, params![*row])).chain(raise));
        let answer = self.answer("a batch", deadline, batch).await?;
        self.wrote("a batch", &rows, answer).map(drop)
    }

    async fn enter_many(&mut self) -> Result<(), Finding> {
        let (db, deadline) = self.hurried();
        let rows: Vec<_> = (0..self.rng.random_range(2..60)).map(|_| self.witness.new_row()).collect();
        let many = db.execute_many(books::ENTER, rows.iter().map(|row| (*row,)));
        let answer = self.answer("many inserts", deadline, many).await?;
        self.wrote("many inserts", &rows, answer).map(drop)
    }

    /// Makes several calls at once, so that they share a commit.
    async fn enter_together(&mut self) -> Result<(), Finding> {
        let (db, deadline) = self.hurried();
        let rows: Vec<_> = (0..self.rng.random_range(2..16)).map(|_| self.witness.new_row()).collect();
        let calls = rows.iter().map(|row| db.execute(books::ENTER, (*row,)));
        let all = async { Ok(join_all(calls.map(Call::into_future)).await) };
        let answers = self.answer("inserts together", deadline, all).await?;
        for (row, answer) in rows.iter().zip(answers.expect("their own answers are inside")) {
            self.entered(*row, answer)?;
        }
        Ok(())
    }
}
