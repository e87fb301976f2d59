//! The calls of a case, of every kind, and the conditions on each answer.

use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::{Database, Error};
use futures_util::poll;
use rand::RngExt;
use rand::rngs::StdRng;

use super::work::Work;
use crate::finding::Finding;
use crate::writes::{self, COUNT, INSERT, WAYS, is_pair};

/// A deadline that no call meets: it only needs the timer's thread.
const FAR: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Write,
    /// A write that its caller drops after a poll.
    Dropped,
    Deadline,
    /// A write and a read of a thread without a runtime.
    Blocking,
    Read,
    Closure,
    Prepared,
    Snapshot,
    Stream,
    Live,
    Checkpoint,
    Backup,
    /// Closes the database and opens it again.
    Reopen,
}

pub(super) const KINDS: [Kind; 13] = [
    Kind::Write,
    Kind::Dropped,
    Kind::Deadline,
    Kind::Blocking,
    Kind::Read,
    Kind::Closure,
    Kind::Prepared,
    Kind::Snapshot,
    Kind::Stream,
    Kind::Live,
    Kind::Checkpoint,
    Kind::Backup,
    Kind::Reopen,
];

impl Work {
    /// Makes one call, except `Reopen`.
    pub(super) async fn call(&self, db: &Database, kind: Kind, rng: &mut StdRng) -> Result<(), Finding> {
        let answer = match kind {
            Kind::Write => return self.write(db, rng).await,
            Kind::Deadline => return self.write(&db.with_timeout(FAR), rng).await,
            Kind::Dropped => return self.dropped(db, rng).await,
            Kind::Blocking => return self.blocking(db).await,
            Kind::Backup => return self.backup(db).await,
            Kind::Read => self.read(db, rng).await,
            Kind::Closure => self.closure(db, rng).await,
            Kind::Prepared => self.prepared(db, rng).await,
            Kind::Snapshot => self.snapshot(db).await,
            Kind::Stream => self.stream(db).await,
            Kind::Live => self.live(db).await,
            Kind::Checkpoint => db.checkpoint(CheckpointMode::Passive).await.map(|_| Ok(())),
            Kind::Reopen => return Ok(()),
        };
        match answer {
            Ok(found) => found,
            Err(error) => self.may_fail(&format!("{kind:?}"), &error),
        }
    }

    async fn write(&self, db: &Database, rng: &mut StdRng) -> Result<(), Finding> {
        let way = rng.random_range(0..WAYS);
        let number = self.ledger.begin(is_pair(way));
        let answer = writes::write(db, way, number).await;
        self.wrote(&format!("way {way} to write"), number, answer)
    }

    async fn dropped(&self, db: &Database, rng: &mut StdRng) -> Result<(), Finding> {
        let way = rng.random_range(0..WAYS);
        let number = self.ledger.begin(is_pair(way));
        let mut op = writes::write(db, way, number);
        match poll!(&mut op) {
            std::task::Poll::Ready(answer) => self.wrote("a write", number, answer),
            std::task::Poll::Pending => Ok(()),
        }
    }

    async fn blocking(&self, db: &Database) -> Result<(), Finding> {
        let number = self.ledger.begin(false);
        let (writer, reader) = (db.clone(), db.clone());
        let answer = self.blocking.run(move || writer.execute(INSERT, (number,)).wait()).await?;
        let is_there = answer.is_ok();
        self.wrote("a write of a blocking thread", number, answer)?;
        match self.blocking.run(move || reader.query_optional_value::<i64>(COUNT, (number,)).wait()).await? {
            Ok(found) if found == Some(i64::from(is_there)) => Ok(()),
            Ok(found) => {
                Err(Finding::new(format!("write {number} is there {found:?} times, acknowledged: {is_there}")))
            }
            Err(error) => self.may_fail("a read of a blocking thread", &error),
        }
    }

    /// Reads an acknowledged number.
    async fn read(&self, db: &Database, rng: &mut StdRng) -> Result<Result<(), Finding>, Error> {
        let Some(number) = self.some_acknowledged(rng) else { return Ok(Ok(())) };
        Ok(is_once(number, db.query_optional_value::<i64>(COUNT, (number,)).await?))
    }

    async fn closure(&self, db: &Database, rng: &mut StdRng) -> Result<Result<(), Finding>, Error> {
        let Some(number) = self.some_acknowledged(rng) else { return Ok(Ok(())) };
        let read = db.read_with(move |plain| plain.query_row(COUNT, [number], |row| row.get(0)).map_err(Error::from));
        Ok(is_once(number, Some(read.await?)))
    }

    async fn prepared(&self, db: &Database, rng: &mut StdRng) -> Result<Result<(), Finding>, Error> {
        let Some(number) = self.some_acknowledged(rng) else { return Ok(Ok(())) };
        let count = db.prepare(COUNT).await?;
        Ok(is_once(number, count.query_optional_value::<i64>((number,)).await?))
    }

    async fn snapshot(&self, db: &Database) -> Result<Result<(), Finding>, Error> {
        const ALL: &str = "SELECT count(*) FROM t";
        let snapshot = db.snapshot().await?;
        let first = snapshot.query_optional_value::<i64>(ALL, ()).await?;
        let second = snapshot.query_optional_value::<i64>(ALL, ()).await?;
        if first == second {
            return Ok(Ok(()));
        }
        Ok(Err(Finding::new(format!("a snapshot has {first:?} rows and then {second:?}"))))
    }

    /// Reads all rows, and more of them than one batch holds.
    async fn stream(&self, db: &Database) -> Result<Result<(), Finding>, Error> {
        let known = self.acknowledged.borrow().len();
        let sql = "WITH RECURSIVE more (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more LIMIT 1500) \
                   SELECT 0 FROM t UNION ALL SELECT n FROM more";
        let mut stream = db.stream_as::<(i64,)>(sql, ());
        let (mut rows, mut others) = (0, 0);
        while let Some(row) = stream.next().await {
            if row?.0 == 0 {
                rows += 1;
            } else {
                others += 1;
            }
        }
        if rows >= known && others == 1500 {
            return Ok(Ok(()));
        }
        Ok(Err(Finding::new(format!("a stream has {rows} rows of {known}, and {others} others"))))
    }

    /// A live query that begins now, up to its first result.
    async fn live(&self, db: &Database) -> Result<Result<(), Finding>, Error> {
        match db.live("SELECT max(n) FROM t", ()).next().await {
            Some(result) => result.map(|_| Ok(())),
            None => Ok(Err(Finding::new("a live query is over before its first result"))),
        }
    }

    /// A copy has what was acknowledged before. After an error there is none.
    async fn backup(&self, db: &Database) -> Result<(), Finding> {
        let known = self.acknowledged.borrow().clone();
        let path = self.new_path();
        let answer = db.backup(&path).await;
        if let Err(error) = answer {
            if path.exists() {
                return Err(Finding::new(format!("a backup fails and leaves its file: {error}")));
            }
            return self.may_fail("a backup", &error);
        }
        let mut found = writes::rows(&path)?;
        found.sort_unstable();
        if let Some(lost) = known.iter().find(|number| found.binary_search(number).is_err()) {
            return Err(Finding::new(format!("write {lost} was acknowledged before a backup, which does not have it")));
        }
        Ok(std::fs::remove_file(path)?)
    }
}

fn is_once(number: i64, found: Option<i64>) -> Result<(), Finding> {
    if found == Some(1) {
        return Ok(());
    }
    Err(Finding::new(format!("write {number} was acknowledged, and a read finds it {found:?} times")))
}
