//! The reads and writes of a process that uses Flatwater, and the conditions on each answer.
//!
//! A read that begins after another process was answered sees that commit: the board has what was answered. Rows that are
//! written together are seen whole, and what reads one point in time sees it twice.

use flatwater::{Database, Error, ErrorKind, params};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::asks::{self, is_whole, text_of};
use super::crew::Role;
use super::setup::{PAIRED, schema};
use super::writes::{self, definitions};
use crate::board::Board;
use crate::finding::Finding;
use crate::round::Counts;

pub(super) struct Task<'a> {
    pub(super) db: &'a Database,
    pub(super) role: &'a Role,
    pub(super) board: &'a Board,
    pub(super) rng: StdRng,
    /// The file that may be written; all of them if there is none.
    pub(super) file: Option<usize>,
    /// Whether this process writes now.
    pub(super) writes: bool,
    pub(super) counts: Counts,
}

type Answer<T = ()> = Result<T, Stopped>;

/// Why a step did not come to its end.
pub(super) enum Stopped {
    /// A lock of another process was in the way.
    Busy,
    Found(Finding),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        if error.kind() == ErrorKind::Busy {
            return Self::Busy;
        }
        Self::Found(Finding::new(format!("unexpected error: {error}")).with_history(format!("{error:?}")))
    }
}

impl From<Finding> for Stopped {
    fn from(finding: Finding) -> Self {
        Self::Found(finding)
    }
}

impl From<std::io::Error> for Stopped {
    fn from(error: std::io::Error) -> Self {
        Self::Found(error.into())
    }
}

impl Task<'_> {
    pub(super) async fn step(&mut self) -> Result<(), Finding> {
        let reads = !self.writes || self.rng.random_bool(0.6);
        let done = if reads { self.read().await } else { self.write().await };
        match done {
            Ok(what) => self.counts.add(what, 1),
            Err(Stopped::Busy) => self.counts.add("refusals by a lock", 1),
            Err(Stopped::Found(finding)) => return Err(finding),
        }
        Ok(())
    }

    async fn read(&mut self) -> Answer<&'static str> {
        let file = self.rng.random_range(0..self.role.setup.files);
        match self.rng.random_range(0..6) {
            0 | 1 => self.value(file).await.map(|()| "reads"),
            2 => self.whole(file).await.map(|()| "reads"),
            3 => self.snapshot(file).await.map(|()| "snapshots"),
            4 => self.stream(file).await.map(|()| "streams"),
            _ => self.closure(file).await.map(|()| "reads"),
        }
    }

    async fn value(&mut self, file: usize) -> Answer {
        let floor = self.board.highest(file)?;
        let value = self.db.query_optional_value::<i64>(&counter(file), ()).await?;
        is_no_lower("a read", file, value, floor)
    }

    async fn whole(&mut self, file: usize) -> Answer {
        let sql = asks::pairs(file);
        let rows = self.db.query(&sql, ()).await?;
        Ok(is_whole(&sql, &text_of(&sql, &rows))?)
    }

    /// Two reads of one point in time.
    async fn snapshot(&mut self, file: usize) -> Answer {
        let (floor, sql) = (self.board.highest(file)?, asks::pairs(file));
        let snapshot = self.db.snapshot().await?;
        let value = snapshot.query_optional_value::<i64>(&counter(file), ()).await?;
        is_no_lower("a snapshot", file, value, floor)?;
        let first = text_of(&sql, &snapshot.query(&sql, ()).await?);
        is_whole(&sql, &first)?;
        tokio::task::yield_now().await;
        let second = text_of(&sql, &snapshot.query(&sql, ()).await?);
        if first != second || value != snapshot.query_optional_value::<i64>(&counter(file), ()).await? {
            return Err(Finding::new(format!("a snapshot sees {first} and then {second} in file {file}")).into());
        }
        Ok(())
    }

    /// A result of several batches, which are fetched while others write.
    async fn stream(&mut self, file: usize) -> Answer {
        let s = schema(file);
        let sql = format!("SELECT a.n FROM {s}.pair AS a, {s}.pair AS b, {s}.pair AS c, {s}.pair AS d");
        let mut stream = self.db.stream_as::<(i64,)>(&sql, ());
        let (mut seen, mut rows) = (None, 0);
        while let Some(row) = stream.next().await {
            let (n,) = row?;
            rows += 1;
            if *seen.get_or_insert(n) != n {
                return Err(Finding::new(format!("a stream sees {seen:?} and {n} in rows written together")).into());
            }
        }
        if rows != PAIRED.pow(4) {
            return Err(Finding::new(format!("a stream has {rows} rows")).into());
        }
        Ok(())
    }

    async fn closure(&mut self, file: usize) -> Answer {
        let (floor, sql) = (self.board.highest(file)?, counter(file));
        let read = self.db.read_with(move |plain| {
            let [first, second] = [0, 1].map(|_| plain.query_row(&sql, [], |row| row.get::<_, i64>(0)));
            Ok::<_, Error>((first?, second?))
        });
        let (first, second) = read.await?;
        if first != second {
            return Err(Finding::new(format!("a read closure sees {first} and then {second} in file {file}")).into());
        }
        is_no_lower("a read closure", file, Some(first), floor)
    }

    async fn write(&mut self) -> Answer<&'static str> {
        let file = self.file.unwrap_or_else(|| self.rng.random_range(0..self.role.setup.files));
        let s = schema(file);
        match self.rng.random_range(0..12) {
            0..3 => self.raise(file).await.map(|()| "commits"),
            3..6 => {
                let sql = writes::change(&s, &mut self.rng);
                self.db.execute(&sql, ()).await.map(|_| "commits").map_err(Stopped::from)
            }
            6 | 7 => {
                let batch = [writes::together(&s), writes::change(&s, &mut self.rng)];
                let batch = self.db.batch(batch.iter().map(|sql| (sql.as_str(), params![])));
                batch.await.map(|_| "commits").map_err(Stopped::from)
            }
            8 | 9 => self.transaction(file).await.map(|()| "commits"),
            10 => {
                let all = definitions(&s);
                let sql = all.choose(&mut self.rng).expect("there are definitions");
                self.db.execute(sql, ()).await.map(|_| "schema changes").map_err(Stopped::from)
            }
            _ => {
                let sql = writes::together(&s);
                let closure = self.db.write_with(move |tx| tx.execute(&sql, []).map_err(Error::from));
                closure.await.map(|_| "commits").map_err(Stopped::from)
            }
        }
    }

    async fn raise(&mut self, file: usize) -> Answer {
        let floor = self.board.highest(file)?;
        let value = self.db.query_optional_value::<i64>(&writes::raise(&schema(file)), ()).await?;
        is_no_lower("a raise", file, value, floor + 1)?;
        self.note(file, value.unwrap_or(0))
    }

    /// Sees its own writes, and the file as it was left before.
    async fn transaction(&mut self, file: usize) -> Answer {
        let floor = self.board.highest(file)?;
        let (s, sql) = (schema(file), asks::pairs(file));
        let tx = self.db.begin().await?;
        let value = tx.query_optional_value::<i64>(&writes::raise(&s), ()).await?;
        tx.execute(writes::together(&s), ()).await?;
        let seen = text_of(&sql, &tx.query(&sql, ()).await?);
        is_whole(&sql, &seen)?;
        if self.rng.random_bool(0.2) {
            return tx.rollback().await.map_err(Stopped::from);
        }
        tx.commit().await?;
        is_no_lower("a transaction", file, value, floor + 1)?;
        self.note(file, value.unwrap_or(0))
    }

    /// Notes a value that was answered. Tasks of this process may note out of order.
    fn note(&self, file: usize, value: i64) -> Answer {
        let value = value.max(self.board.get(self.role.slot, file)?);
        Ok(self.board.put(self.role.slot, file, value)?)
    }
}

pub(super) fn counter(file: usize) -> String {
    format!("SELECT n FROM {}.counter WHERE id = 1", schema(file))
}

fn is_no_lower(what: &str, file: usize, value: Option<i64>, floor: i64) -> Answer {
    match value {
        Some(value) if value >= floor => Ok(()),
        _ => {
            Err(Finding::new(format!("{what} of file {file} sees {value:?} where {floor} was answered before it"))
                .into())
        }
    }
}

/// Returns another stream of random numbers for each task.
pub(super) fn rng_of(rng: &mut StdRng) -> StdRng {
    StdRng::seed_from_u64(rng.random())
}
