//! The live queries of a process: each query of `asks` about the files that it watches, and a group for each of these.
//!
//! They are polled while the process works and while it arrives. Invariants of every result: rows that are written together
//! are seen whole, a counter does not go back, no result equals the one before. Leaves out: what the last result has to be.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use flatwater::{Database, Error, ErrorKind};
use tokio::task::JoinHandle;

use super::asks::{self, differs, text_of};
use super::setup::{Setup, schema};
use crate::finding::Finding;

/// A live query that has not arrived at the file's state after this time never will.
const ARRIVES: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

pub(super) struct Watch {
    seen: Vec<(String, Rc<Seen>)>,
    /// For each live query that is compared, its number among the queries of `asks`.
    numbers: Vec<usize>,
    tasks: Vec<JoinHandle<()>>,
    results: Rc<Cell<u64>>,
}

/// What one live query has delivered.
#[derive(Default)]
struct Seen {
    newest: RefCell<String>,
    /// The last error, until a result follows.
    error: RefCell<Option<Error>>,
    finding: RefCell<Option<Finding>>,
}

impl Watch {
    /// Begins the live queries on some of the files. Runs inside a `LocalSet`.
    pub(super) fn begin(db: &Database, setup: &Setup, files: &[usize]) -> Self {
        let mut watch = Self { seen: Vec::new(), numbers: Vec::new(), tasks: Vec::new(), results: Rc::default() };
        for (number, (file, sql)) in asks::queries(setup).into_iter().enumerate() {
            if !files.contains(&file) {
                continue;
            }
            watch.numbers.push(number);
            let (db, seen, results) = (db.clone(), Rc::<Seen>::default(), watch.results.clone());
            watch.seen.push((sql.clone(), seen.clone()));
            watch.tasks.push(tokio::task::spawn_local(async move {
                let mut live = db.live(&sql, ());
                while let Some(result) = live.next().await {
                    results.set(results.get() + 1);
                    seen.take(&sql, result.map(|rows| text_of(&sql, &rows)));
                }
                seen.found(Finding::new(format!("a live query is over: {sql}")));
            }));
        }
        for &file in files {
            let (db, seen, results) = (db.clone(), Rc::<Seen>::default(), watch.results.clone());
            watch.seen.push((GROUP.to_owned(), seen.clone()));
            watch.tasks.push(tokio::task::spawn_local(async move {
                let [low, high] = ["min", "max"].map(|of| format!("SELECT {of}(n) FROM {}.pair", schema(file)));
                let mut group = db.live_group([(low.as_str(), ()), (high.as_str(), ())]);
                while let Some(result) = group.next().await {
                    results.set(results.get() + 1);
                    let texts =
                        |parts: [flatwater::live::LiveRows; 2]| [text_of(&low, &parts[0]), text_of(&high, &parts[1])];
                    match result.map(texts) {
                        Ok([low, high]) if low != high => {
                            let what = format!("a group sees half of a write of file {file}: {low} and {high}");
                            seen.found(Finding::new(what));
                        }
                        result => seen.take(GROUP, result.map(|[low, _]| low)),
                    }
                }
                seen.found(Finding::new("a live group is over"));
            }));
        }
        watch
    }

    /// Returns the number of results up to now.
    pub(super) fn results(&self) -> u64 {
        self.results.get()
    }

    /// Returns what the live queries have found.
    pub(super) fn found(&self) -> Result<(), Finding> {
        self.seen.iter().find_map(|(_, seen)| seen.finding.borrow_mut().take()).map_or(Ok(()), Err)
    }

    /// Waits until each live query has delivered what plain SQLite reads.
    pub(super) async fn arrives(&self, expected: &[String]) -> Result<(), Finding> {
        let until = Instant::now() + ARRIVES;
        loop {
            self.found()?;
            let mut all =
                self.seen.iter().zip(&self.numbers).map(|((sql, seen), number)| (sql, seen, &expected[*number]));
            let behind = all.find(|(_, seen, expected)| *seen.newest.borrow() != **expected);
            let Some((sql, seen, expected)) = behind else { return Ok(()) };
            if Instant::now() >= until {
                let what = format!("a live query does not arrive within {} s: {sql}", ARRIVES.as_secs());
                let last = format!("{}\nlast error: {:?}", seen.newest.borrow(), seen.error.borrow());
                return Err(differs(&what, sql, &last, expected));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(super) fn end(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

const GROUP: &str = "a group";

impl Seen {
    fn take(&self, sql: &str, result: Result<String, Error>) {
        match result {
            Ok(text) => {
                let had_error = self.error.borrow_mut().take().is_some();
                let before = self.newest.replace(text.clone());
                if before == text && !had_error && !text.is_empty() {
                    self.found(
                        Finding::new(format!("a live query delivers a result twice: {sql}")).with_history(&*text),
                    );
                }
                if sql.contains(".counter ") && integer(&text) < integer(&before) {
                    self.found(Finding::new(format!("a live query goes back from {before} to {text}: {sql}")));
                }
                let _ = asks::is_whole(sql, &text).map_err(|finding| self.found(finding));
            }
            // A process that has the file for itself for a moment, such as one that closes it, is in the way.
            Err(error) if error.kind() == ErrorKind::Busy => drop(self.error.replace(Some(error))),
            Err(error) => self.found(Finding::new(format!("a live query fails: {sql}: {error}"))),
        }
    }

    fn found(&self, finding: Finding) {
        self.finding.borrow_mut().get_or_insert(finding);
    }
}

/// Returns the number in the text of a single integer; 0 if there is none yet.
fn integer(text: &str) -> i64 {
    text.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap_or(0)
}
