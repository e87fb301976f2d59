//! The live queries of a case, from an open to the close.
//!
//! A start that fails may be an error of a live query, but never its end: when threads can be started again, the next
//! commit brings the newest result. Leaves out: which starts fail.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use flatwater::{Database, Error};
use tokio::task::JoinHandle;

use super::work::is_no_thread;
use crate::finding::Finding;

/// A live query that has not delivered the newest result after this time never will.
const ARRIVES: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

const QUERIES: [&str; 3] =
    ["SELECT count(*) FROM t", "SELECT n FROM t ORDER BY n DESC LIMIT 5", "SELECT total(n), max(id) FROM t"];

pub(super) struct Watch {
    seen: Rc<Seen>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Seen {
    newest: RefCell<[String; QUERIES.len()]>,
    last_error: RefCell<Option<Error>>,
    is_closing: Cell<bool>,
    results: Cell<u64>,
    errors: Cell<u64>,
    finding: RefCell<Option<Finding>>,
}

impl Watch {
    /// Begins the live queries. Runs inside a `LocalSet`.
    pub(super) fn begin(db: &Database) -> Self {
        let seen = Rc::<Seen>::default();
        let watch = |(at, sql): (usize, &'static str)| {
            let (db, seen) = (db.clone(), seen.clone());
            tokio::task::spawn_local(async move {
                let mut live = db.live(sql, ());
                while let Some(result) = live.next().await {
                    seen.take(at, result.map(|rows| text(&rows)));
                }
                if !seen.is_closing.get() {
                    let history = format!("last error: {:?}", seen.last_error.borrow());
                    seen.found(Finding::new(format!("a live query is over: {sql}")).with_history(history));
                }
            })
        };
        let tasks = QUERIES.into_iter().enumerate().map(watch).collect();
        Self { seen, tasks }
    }

    /// Returns the numbers of results and of errors that the live queries have delivered.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.seen.results.get(), self.seen.errors.get())
    }

    pub(super) fn found(&self) -> Result<(), Finding> {
        self.seen.finding.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// From now on the streams may end.
    pub(super) fn closes(&self) {
        self.seen.is_closing.set(true);
    }

    /// Waits until each live query has delivered what its query answers now. Nothing is written meanwhile.
    pub(super) async fn arrives(&self, db: &Database) -> Result<(), Finding> {
        let until = Instant::now() + ARRIVES;
        for (at, sql) in QUERIES.into_iter().enumerate() {
            let expected = text(&db.query(sql, ()).await?);
            while self.seen.newest.borrow()[at] != expected {
                self.found()?;
                if Instant::now() >= until {
                    let newest = &self.seen.newest.borrow()[at];
                    let last = self.seen.last_error.borrow();
                    return Err(Finding::new(format!("a live query does not deliver the newest result: {sql}"))
                        .with_history(format!("it has {newest} of {expected}; last error: {last:?}")));
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        self.found()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Seen {
    fn take(&self, at: usize, result: Result<String, Error>) {
        match result {
            Ok(text) => {
                self.newest.borrow_mut()[at] = text;
                self.results.set(self.results.get() + 1);
            }
            Err(error) => {
                if !is_no_thread(&error) && !self.is_closing.get() {
                    self.found(Finding::new(format!("a live query fails: {error}")));
                }
                self.errors.set(self.errors.get() + 1);
                *self.last_error.borrow_mut() = Some(error);
            }
        }
    }

    fn found(&self, finding: Finding) {
        self.finding.borrow_mut().get_or_insert(finding);
    }
}

fn text(rows: &flatwater::Rows) -> String {
    let values = |row: flatwater::Row<'_>| format!("{:?}", row.values().collect::<Vec<_>>());
    rows.iter().map(values).collect::<Vec<_>>().join(" ")
}
