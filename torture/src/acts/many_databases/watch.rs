//! The live queries that stay open for the whole round, each on a database of its own. There may be more of them than
//! databases may have connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::task::JoinHandle;

use super::bases::Bases;
use crate::finding::Finding;

/// A live query that has not delivered the newest result after this time never will.
const ARRIVES: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);
/// What this process and the other one wrote.
const QUERY: &str = "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM f)";

type Seen = Arc<Mutex<Option<(i64, i64)>>>;

pub(super) struct Watch {
    newest: Vec<Seen>,
    tasks: Vec<JoinHandle<Result<(), Finding>>>,
}

impl Watch {
    pub(super) async fn begin(bases: &Arc<Bases>) -> Result<Self, Finding> {
        let mut watch = Self { newest: Vec::new(), tasks: Vec::new() };
        for base in bases.all.iter().take(bases.setting.watched) {
            let db = base.open().await?.as_ref().expect("it was opened").clone();
            let (number, seen, bases) = (base.number, Seen::default(), bases.clone());
            watch.newest.push(seen.clone());
            watch.tasks.push(tokio::spawn(async move {
                let mut live = db.live(QUERY, ());
                while let Some(rows) = live.next().await {
                    let failed = |error| Finding::new(format!("the live query of database {number} fails: {error}"));
                    let rows = rows.and_then(|rows| rows.read::<(i64, i64)>()).map_err(failed)?;
                    *seen.lock().unwrap_or_else(PoisonError::into_inner) = rows.first().copied();
                    bases.count("live results", 1);
                }
                Ok(())
            }));
        }
        Ok(watch)
    }

    /// Waits until each live query has delivered what its query answers now. Nothing is written meanwhile.
    pub(super) async fn arrives(&self, bases: &Bases) -> Result<(), Finding> {
        let until = Instant::now() + ARRIVES;
        for (base, seen) in bases.all.iter().zip(&self.newest) {
            let newest = || *seen.lock().unwrap_or_else(PoisonError::into_inner);
            // Plain SQLite would not be the first to see what this database has to notice.
            let expected = base.written()?;
            while newest() != Some(expected) {
                if Instant::now() >= until {
                    let what = format!("the live query of database {} does not arrive", base.number);
                    let (has, stats) = (newest(), base.stats().await);
                    let history = format!("it has {has:?} of {expected:?}\n{:?}\n{stats}", bases.setting);
                    return Err(Finding::new(what).with_history(history));
                }
                if self.tasks[base.number].is_finished() {
                    return Err(Finding::new(format!("the live query of database {} is over", base.number)));
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        Ok(())
    }

    /// Waits until all are over, after the shutdown.
    pub(super) async fn ends(self) -> Result<(), Finding> {
        let all = tokio::time::timeout(ARRIVES, try_join_all(self.tasks)).await;
        let all = all.map_err(|_| Finding::new("live queries do not end with the shutdown"))??;
        all.into_iter().collect()
    }
}
