//! The check of a database that is open for damage.
//!
//! Owns: the stream of problems. Runs on the thread that polls it. Invariant: a problem is yielded once, and a database
//! without problems yields none. Leaves out: the check itself, which SQLite does.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use futures_core::Stream;

use crate::api::call::Call;
use crate::api::database::Database;
use crate::api::session::Session;
use crate::api::stream::Batches;
use crate::workers::work::Wanted;
use flatwater_base::error::{Error, Result};
use flatwater_base::inline::budget::Pause;
use flatwater_sql::tokens::quoted;

/// So many problems are found. SQLite finds 100 by default, and collects those of the trees of pages before it returns
/// the first.
const MOST: u32 = 10_000;

impl Database {
    /// Checks the main database, and yields a sentence for each problem: pages that are lost or used twice, rows out of
    /// order, missing index entries, two equal ones of a UNIQUE index, NULL where none may be
    /// (<https://sqlite.org/pragma.html#pragma_integrity_check>). At most 10,000 problems are found.
    ///
    /// Foreign keys are not checked; `PRAGMA foreign_key_check` does that. Neither are CHECK constraints, unless the
    /// database has one connection: SQLite does not keep them on a connection that only reads.
    ///
    /// It reads all pages in one snapshot, on a connection beyond those of other reads, so no read and no write waits
    /// for it in a file in WAL mode. It blocks a restart of the WAL meanwhile, as a stream does: check a large database
    /// [table by table](IntegrityCheck::table). In a database with one connection all other calls wait. Dropping the
    /// stream ends the check.
    ///
    /// If pages of an encrypted file cannot be decrypted, these are the problems, as SQLCipher finds them in the file.
    ///
    /// ```no_run
    /// # async fn example(db: flatwater::Database) -> flatwater::Result<()> {
    /// let mut problems = db.integrity_check();
    /// while let Some(problem) = problems.next().await {
    ///     println!("{}", problem?);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn integrity_check(&self) -> IntegrityCheck {
        let (session, database) = (self.session.share(), "main".to_owned());
        let what = What { session, database, table: None, quick: false };
        IntegrityCheck { state: State::New(what), problems: VecDeque::new(), pause: Pause::default() }
    }
}

/// The problems of a database: a [`Stream`] of sentences. [`next`](Self::next) needs no other crate. Made by
/// [`Database::integrity_check`].
#[must_use = "the check begins when it is polled"]
pub struct IntegrityCheck {
    state: State,
    problems: VecDeque<String>,
    pause: Pause,
}

enum State {
    New(What),
    /// With what is checked, if SQLCipher is to be asked for the pages once there is a problem.
    Runs(Box<Batches>, Option<What>),
    /// SQLCipher is asked. Of the check before there is the error, if it ended with one.
    Pages(Box<Call<Vec<String>>>, What, Option<Error>),
    Over,
}

/// What is checked.
struct What {
    session: Session,
    database: String,
    table: Option<String>,
    quick: bool,
}

impl IntegrityCheck {
    /// Does not compare indexes with their tables, and does not check UNIQUE. That takes much less time
    /// (<https://sqlite.org/pragma.html#pragma_quick_check>).
    pub fn quick(self) -> Self {
        self.with(|what| what.quick = true)
    }

    /// Checks this attached database instead of the main one.
    pub fn database(self, name: &str) -> Self {
        self.with(|what| name.clone_into(&mut what.database))
    }

    /// Checks only this table and its indexes. Pages that are lost, or that two tables use, are not found. At most 100
    /// problems are.
    pub fn table(self, name: &str) -> Self {
        self.with(|what| what.table = Some(name.to_owned()))
    }

    /// Changes what is checked, unless the check has begun.
    fn with(mut self, set: impl FnOnce(&mut What)) -> Self {
        if let State::New(what) = &mut self.state {
            set(what);
        }
        self
    }

    /// Returns the next problem, or `None` after the last. If the future is dropped, no problem is lost.
    ///
    /// # Errors
    /// `Corrupt` if the database is so damaged that SQLite cannot check it; and as [`Batches::next`]. After an error
    /// there are no more problems.
    #[allow(clippy::should_implement_trait, reason = "this is the name that users of streams know")]
    pub async fn next(&mut self) -> Option<Result<String>> {
        poll_fn(|context| self.poll_problem(context)).await
    }

    fn poll_problem(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<String>>> {
        if !matches!(self.state, State::New(_)) {
            ready!(self.pause.poll(Instant::now(), context));
        }
        loop {
            if let Some(problem) = self.problems.pop_front() {
                return Poll::Ready(Some(Ok(problem)));
            }
            if let State::Pages(pages, ..) = &mut self.state {
                let Poll::Ready(damaged) = Pin::new(&mut **pages).poll(context) else { return Poll::Pending };
                if let Some(error) = self.pages_were_checked(damaged.unwrap_or_default()) {
                    return Poll::Ready(Some(Err(error)));
                }
                continue;
            }
            if matches!(self.state, State::New(_))
                && let State::New(what) = std::mem::replace(&mut self.state, State::Over)
            {
                let batches = begin(&what);
                self.state = State::Runs(Box::new(batches), Some(what).filter(|what| is_encrypted(&what.session)));
            }
            let State::Runs(batches, what) = &mut self.state else { return Poll::Ready(None) };
            let Poll::Ready(fetched) = batches.poll_batch(context) else { return Poll::Pending };
            let found = fetched.and_then(|rows| {
                let Some(rows) = rows else { return Ok(false) };
                for row in &rows {
                    self.problems.extend(problems(&row.get::<String>(0)?));
                }
                Ok(true)
            });
            if (found.is_err() || !self.problems.is_empty())
                && let Some(what) = what.take()
            {
                // The connection is given back first: it may be the only one.
                self.problems.clear();
                self.state = State::Over;
                let pages = what.session.query_values(pages_sql(&what.database), ());
                self.state = State::Pages(Box::new(pages), what, found.err());
                continue;
            }
            match found {
                Ok(true) => {}
                Ok(false) => self.state = State::Over,
                Err(error) => {
                    (self.state, self.problems) = (State::Over, VecDeque::new());
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    /// Goes on when SQLCipher has said which pages it cannot decrypt. Returns the error that ends the check. If there are
    /// such pages, all that was found before follows from that.
    fn pages_were_checked(&mut self, damaged: Vec<String>) -> Option<Error> {
        let State::Pages(_, what, error) = std::mem::replace(&mut self.state, State::Over) else { return None };
        if !damaged.is_empty() {
            self.problems = damaged.into();
        } else if error.is_some() {
            return error;
        } else {
            self.state = State::Runs(Box::new(begin(&what)), None);
        }
        None
    }
}

impl Stream for IntegrityCheck {
    type Item = Result<String>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_problem(context)
    }
}

opaque!(IntegrityCheck);

/// Returns the SQL of a check of a database, or of one of its tables.
#[must_use]
pub fn check_sql(database: &str, table: Option<&str>, quick: bool) -> String {
    let pragma = if quick { "quick_check" } else { "integrity_check" };
    let what = table.map_or_else(|| MOST.to_string(), quoted);
    format!("PRAGMA {}.{pragma}({what})", quoted(database))
}

fn begin(What { session, database, table, quick }: &What) -> Batches {
    let sql = check_sql(database, table.as_deref(), *quick);
    Batches::new(&session.0.now(), "integrity_check", session.read(&sql, (), Wanted::Batches))
}

/// Returns true if the check of a database asks SQLCipher for the pages that it cannot decrypt, when there is a problem.
pub(crate) fn is_encrypted(session: &Session) -> bool {
    session.0.handle.context().options.key.is_some()
}

/// Returns the SQL of that question. SQLCipher answers it when it prepares the statement, from the file alone, and ignores
/// the argument; so each text is another one, or the next answer would be that of before.
pub(crate) fn pages_sql(database: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("PRAGMA {}.cipher_integrity_check({number})", quoted(database))
}

/// Returns the problems of a row. The first row has all that the pages have, after a line with the name of the
/// database.
pub fn problems(row: &str) -> impl Iterator<Item = String> {
    let is_problem = |line: &&str| !line.is_empty() && *line != "ok" && !line.starts_with("*** in database ");
    row.lines().filter(is_problem).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_problems_of_a_row_are_its_lines_and_ok_is_none() {
        let of = |row| problems(row).collect::<Vec<_>>();
        assert_eq!(of("ok"), [""; 0]);
        assert_eq!(
            of("*** in database main ***\nPage 3: never used\nPage 4: never used"),
            ["Page 3: never used", "Page 4: never used"]
        );
        assert_eq!(of("row 1 missing from index by_a"), ["row 1 missing from index by_a"]);
    }
}
