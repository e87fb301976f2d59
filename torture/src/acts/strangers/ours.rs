//! Flatwater on its copy: one task makes all calls, each with a deadline.

use std::path::Path;
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::values::ExecuteResult;
use flatwater::{Database, Error, Params, Result, Rows};
use futures_util::future::join_all;
use tokio::runtime::Runtime;

use super::answer::{Answer, Cell};
use super::ask::Ask;
use super::way::Way;

const DEADLINE: Duration = Duration::from_secs(2);
/// The deadline for a query that never ends by itself.
const SOON: Duration = Duration::from_millis(30);

pub(super) struct Ours<'a> {
    runtime: &'a Runtime,
    db: Database,
}

impl<'a> Ours<'a> {
    pub(super) fn open(runtime: &'a Runtime, path: &Path, way: Way) -> Result<Self, Error> {
        let db = runtime.block_on(way.options(path).open())?;
        Ok(Self { runtime, db: db.with_timeout(DEADLINE) })
    }

    pub(super) fn ask(&self, ask: &Ask) -> Answer {
        let answer = self.runtime.block_on(answer(&self.db, ask));
        answer.unwrap_or_else(Answer::from)
    }

    /// Makes many calls at once, so that writes share commits and reads use all readers. The results are not compared.
    /// One transaction among them is dropped, and one call is dropped after its first poll.
    pub(super) fn crowd(&self) -> u64 {
        let db = &self.db;
        self.runtime.block_on(async {
            let begun = db.begin().await;
            let dropped = db.execute("DELETE FROM word", ());
            let mut dropped = Box::pin(dropped);
            let _ = futures_util::poll!(&mut dropped);
            drop((dropped, begun));
            let calls = (0..24).map(|at| async move {
                match at % 4 {
                    0 => db.execute("INSERT INTO item (a, b) VALUES (?, 'crowd')", (at,)).await.map(drop),
                    1 => db.execute("UPDATE word SET v = v + 1 WHERE k = 'ada7'", ()).await.map(drop),
                    2 => db.query("SELECT * FROM item WHERE a = ?", (at * 9,)).await.map(drop),
                    _ => db.query("SELECT sum(length(body)) FROM long", ()).await.map(drop),
                }
            });
            join_all(calls).await.len() as u64
        })
    }

    /// Closes the database. When this returns, no file of it is open.
    pub(super) fn close(self) -> Result<(), Error> {
        self.runtime.block_on(self.db.close())
    }
}

async fn answer(db: &Database, ask: &Ask) -> Result<Answer> {
    Ok(match ask {
        Ask::Read(text) => rows(&db.query(text, ()).await?),
        Ask::Check(text) => rows(&db.query(text, ()).await?).sorted(),
        Ask::Write(text) => changed(db.execute(text, ()).await?),
        Ask::Batch(texts) => {
            let results =
                db.batch(texts.iter().map(|text| (text.as_str(), Params::positional(Vec::<i64>::new())))).await?;
            Answer::Done(results.iter().map(|result| result.changes).sum())
        }
        Ask::Transaction(texts, commits) => {
            let transaction = db.begin().await?;
            let mut changes = 0;
            for text in texts {
                changes += transaction.execute(text, ()).await?.changes;
            }
            if *commits {
                transaction.commit().await?
            } else {
                transaction.rollback().await?
            }
            Answer::Done(changes)
        }
        Ask::Checkpoint => {
            db.checkpoint(CheckpointMode::Truncate).await?;
            Answer::Done(0)
        }
        Ask::Endless(text) => {
            let answered = db.with_timeout(SOON).query(text, ()).await;
            Answer::NotKnown(answered.map_or_else(|error| error.to_string(), |rows| format!("{} rows", rows.len())))
        }
    })
}

fn changed(executed: ExecuteResult) -> Answer {
    Answer::Done(executed.changes)
}

fn rows(rows: &Rows) -> Answer {
    let cell = |row: &flatwater::Row<'_>, column| row.value(column).map_or(Cell::Null, Cell::from);
    Answer::Rows(rows.iter().map(|row| (0..row.len()).map(|column| cell(&row, column)).collect()).collect())
}
