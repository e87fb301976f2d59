//! The writes of a load. Each has a unique number, which is in each of its rows, and its result is recorded.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use flatwater::{Database, Error, ErrorKind, params};
use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::answers::{Answer, Outcome};
use super::case::Load;
use super::plan::Plan;
use super::transactions::{self, INSERT};
use crate::finding::Finding;
use crate::round::Counts;

pub(super) const SCHEMA: &str = "CREATE TABLE t (op INTEGER, part INTEGER, pad BLOB);
    CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER);
    INSERT INTO counter VALUES (1, 0)";
const INSERT_OTHER: &str = "INSERT INTO o VALUES (?, ?, zeroblob(?))";
const COUNT: &str = "UPDATE counter SET n = n + 1 WHERE id = 1";

/// An open database under a load, and the results of its writes.
pub(super) struct Work {
    pub(super) plan: Plan,
    pub(super) is_attached: bool,
    pub(super) directory: PathBuf,
    pub(super) answers: RefCell<Vec<Answer>>,
    pub(super) counts: RefCell<Counts>,
    /// No system call fails now, so no call of Flatwater may fail.
    pub(super) is_calm: Cell<bool>,
    next: Cell<i64>,
}

/// The rows that a write changes.
#[derive(Clone, Copy)]
struct Change {
    number: i64,
    load: Load,
    rows: u64,
    bytes: i64,
}

impl Work {
    pub(super) fn new(plan: Plan, is_attached: bool, directory: &Path) -> Self {
        Self {
            plan,
            is_attached,
            directory: directory.to_owned(),
            answers: RefCell::default(),
            counts: RefCell::default(),
            is_calm: Cell::new(true),
            next: Cell::new(1),
        }
    }

    pub(super) fn count(&self, what: &str) {
        self.counts.borrow_mut().add(what, 1);
    }

    fn change(&self, load: Load, rows: u64, rng: &mut StdRng) -> Change {
        let number = self.next.replace(self.next.get() + 1);
        let longest = if rng.random_ratio(1, 8) { 9000 } else { 600 };
        Change { number, load, rows, bytes: rng.random_range(0..longest) }
    }

    /// Records the result. Returns a finding if no failing call explains the kind of an error.
    fn keep(&self, change: Change, is_counted: bool, answer: Result<(), &Error>) -> Result<(), Finding> {
        let outcome = answer.map_or_else(Outcome::of, |()| Outcome::There);
        self.count(match outcome {
            Outcome::There => "acknowledged writes",
            Outcome::NotThere => "failed writes",
            Outcome::Unknown => "writes of unknown outcome",
        });
        self.answers.borrow_mut().push(Answer {
            number: change.number,
            load: change.load,
            main: change.rows,
            other: if change.load == Load::Both { change.rows } else { 0 },
            is_counted,
            outcome,
            said: answer.err().map(Error::to_string).unwrap_or_default(),
        });
        answer.err().map_or(Ok(()), |error| self.may_fail(error, change.load))
    }

    /// Returns a finding if no failing call explains the error.
    pub(super) fn may_fail(&self, error: &Error, load: Load) -> Result<(), Finding> {
        let wrong = |why: &str| Err(Finding::new(format!("{why}: {load:?} was answered {error}")));
        let is_timeout = error.kind() == ErrorKind::Timeout && load == Load::Deadline;
        if is_timeout {
            return Ok(());
        }
        if self.is_calm.get() {
            return wrong("no call fails any more");
        }
        if self.plan.is_unnoticed() {
            return wrong("nobody may notice such a plan");
        }
        if error.kind() == ErrorKind::CommitUnknown && self.plan.is_once() && load != Load::Both {
            return wrong("one failing call makes no outcome unknown");
        }
        // A failed read in an attached file is not reported as such (docs/design/connection.md).
        let is_read_of_other = self.is_attached && self.plan.fails_reads_of_other();
        match error.kind() {
            ErrorKind::Corrupt if is_read_of_other && matches!(load, Load::Both | Load::Reopen) => Ok(()),
            ErrorKind::Io | ErrorKind::Full | ErrorKind::Open | ErrorKind::CommitUnknown | ErrorKind::Busy => Ok(()),
            _ => wrong("a failing call does not explain this"),
        }
    }

    /// Runs one step of the load.
    pub(super) async fn write(&self, db: &Database, load: Load, seed: u64) -> Result<(), Finding> {
        let rng = &mut StdRng::seed_from_u64(seed);
        match load {
            Load::Inline => self.inline(db, rng).await,
            Load::Group => self.group(db, rng).await,
            Load::Batch => self.batch(db, rng).await,
            Load::Many => self.many(db, rng).await,
            Load::Closure => self.closure(db, rng).await,
            Load::Blocking => self.blocking(db, rng).await,
            Load::Both => self.both(db, rng).await,
            Load::Deadline => self.deadline(db, rng).await,
            Load::Transaction => {
                let change = self.change(load, rng.random_range(1..6), rng);
                let rolls_back = rng.random_ratio(1, 4);
                let ended = transactions::run(db, change.row(), change.rows, rolls_back).await;
                match &ended {
                    Ok(true) => self.keep(change, true, Ok(())),
                    // Rolled back as intended: the database must contain none of its rows.
                    Ok(false) => self.keep(Change { rows: 0, ..change }, false, Ok(())),
                    Err(error) => self.keep(change, true, Err(error)),
                }
            }
            Load::Read | Load::Checkpoint | Load::Backup | Load::Reopen => Ok(()),
        }
    }

    async fn inline(&self, db: &Database, rng: &mut StdRng) -> Result<(), Finding> {
        for _ in 0..rng.random_range(2..8) {
            let change = self.change(Load::Inline, 1, rng);
            let answer = db.execute(INSERT, change.params(0)).await;
            let rowid = answer.as_ref().ok().and_then(|executed| executed.last_insert_rowid);
            self.keep(change, false, answer.as_ref().map(|_| ()))?;
            let Some(rowid) = rowid else { continue };
            match db.query_optional_value::<i64>("SELECT op FROM t WHERE rowid = ?", (rowid,)).await {
                Ok(found) if found == Some(change.number) => self.count("reads"),
                Ok(found) => {
                    return Err(Finding::new(format!("the row of write {} is that of {found:?}", change.number)));
                }
                Err(error) => self.may_fail(&error, Load::Read)?,
            }
        }
        Ok(())
    }

    async fn group(&self, db: &Database, rng: &mut StdRng) -> Result<(), Finding> {
        let changes: Vec<_> = (0..rng.random_range(2..24)).map(|_| self.change(Load::Group, 1, rng)).collect();
        let answers = join_all(changes.iter().map(|change| db.execute(INSERT, change.params(0)))).await;
        changes
            .into_iter()
            .zip(&answers)
            .try_for_each(|(change, answer)| self.keep(change, false, answer.as_ref().map(|_| ())))
    }

    async fn batch(&self, db: &Database, rng: &mut StdRng) -> Result<(), Finding> {
        let change = self.change(Load::Batch, rng.random_range(1..40), rng);
        let rows = (0..change.rows).map(|part| (INSERT, params![change.number, part, change.bytes]));
        let answer = db.batch(rows.chain([(COUNT, params![])])).await;
        self.keep(change, true, answer.as_ref().map(|_| ()))
    }

    async fn many(&self, db: &Database, rng: &mut StdRng) -> Result<(), Finding> {
        let change = self.change(Load::Many, rng.random_range(1..100), rng);
        let answer = db.execute_many(INSERT, (0..change.rows).map(|part| change.params(part))).await;
        self.keep(change, false, answer.as_ref().map(|_| ()))
    }

    async fn closure(&self, db: &Database, rng: &mut StdRng) -> Result<(), Finding> {
        let change = self.change(Load::Closure, rng.random_range(1..20), rng);
        let body = move |tx: &rusqlite::Transaction<'_>| {
            for part in 0..change.rows {
                tx.execute(INSERT, change.params(part))?;
            }
            tx.execute(COUNT, [])?;
            Ok::<_, Error>(())
        };
        let answer = db.write_with(body).await;
        self.keep(change, true, answer.as_ref().copied())
    }

    async fn blocking(&self, db: &Database, rng: &mut StdRng) -> Result<(), Finding> {
        let change = self.change(Load::Blocking, 1, rng);
        let blocking = db.clone();
        let answer = tokio::task::spawn_blocking(move || blocking.execute(INSERT, change.params(0)).wait()).await?;
        self.keep(change, false, answer.as_ref().map(|_| ()))
    }

    async fn both(&self, db: &Database, rng: &mut StdRng) -> Result<(), Finding> {
        if !self.is_attached {
            return Ok(());
        }
        let change = self.change(Load::Both, rng.random_range(1..5), rng);
        let rows = (0..change.rows)
            .flat_map(|part| [INSERT, INSERT_OTHER].map(|sql| (sql, params![change.number, part, change.bytes])));
        let answer = db.batch(rows.chain([(COUNT, params![])])).await;
        self.keep(change, true, answer.as_ref().map(|_| ()))
    }

    async fn deadline(&self, db: &Database, rng: &mut StdRng) -> Result<(), Finding> {
        let change = self.change(Load::Deadline, rng.random_range(1..30), rng);
        let db = db.with_timeout(std::time::Duration::from_micros(rng.random_range(0..4000)));
        let answer = db.execute_many(INSERT, (0..change.rows).map(|part| change.params(part))).await;
        self.keep(change, false, answer.as_ref().map(|_| ()))
    }
}

impl Change {
    fn params(self, part: u64) -> (i64, i64, i64) {
        let (number, bytes) = self.row();
        (number, i64::try_from(part).unwrap_or(0), bytes)
    }

    fn row(self) -> (i64, i64) {
        (self.number, self.bytes)
    }
}
