//! What a server is asked, and what it answers. Part of the interface that `bindings` is, and with it not for programs.
//!
//! Owns: reading a request, and answering it. Runs on the threads of the crate that reaches the server. Invariant: an answer has the form
//! that its caller wants. Leaves out: sessions (`server`).

use std::time::{Duration, Instant};

use flatwater_sqlite::{Bindings, ColumnSource};
use rusqlite::types::ValueRef;

use crate::connection::learn::live_query::{Derived, LiveRun};
use crate::connection::run::failures::may_quote;
use crate::connection::run::hidden_values::hide_values;
use crate::engine::server::{Asked, Changes};
use crate::events::statement_event::ExecutedOn;
use crate::migrations::Migrations;
use crate::queue::reply::Teller;
use crate::workers::Answer;
use crate::workers::request::{ReplyTo, Request};
use crate::workers::work::{Exclusive, Wanted, WantedOfRuns, Work};
use flatwater_base::encode::json::json_of;
use flatwater_base::error::{Error, Result, after_the_write};
use flatwater_base::thread::background::run_with;
use flatwater_base::values::block::Block;
use flatwater_base::values::column::{ColumnNames, Names};
use flatwater_base::values::params::ParamRow;
use flatwater_base::values::{ExecuteResult, Rows, RunResult};
use flatwater_sql::tokens::looks_like_rows;

/// One run of a statement.
#[derive(Clone, Copy)]
pub struct One<'a> {
    pub sql: &'a str,
    row: Option<ParamRow<'a>>,
}

impl<'a> One<'a> {
    pub fn without_values(sql: &'a str) -> Self {
        Self { sql, row: None }
    }

    /// The bytes of its texts and blobs.
    pub fn bytes(&self) -> usize {
        let bytes = |value| match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
            _ => 8,
        };
        self.row.into_iter().flat_map(ParamRow::values).map(bytes).sum()
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.row.map_or(0, |row| row.count())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each value, with its name if it has one.
    pub fn values(&self) -> impl Iterator<Item = (Option<&str>, ValueRef<'_>)> {
        self.row.iter().flat_map(|row| (0..row.count()).map(|index| (row.name(index), row.value(index))))
    }
}

/// What a server is asked.
pub enum What<'a> {
    Execute(One<'a>),
    Query(One<'a>),
    /// The rows of one statement.
    Many(Vec<One<'a>>),
    /// The same of one that returns rows.
    ManyWithRows(Vec<One<'a>>),
    Batch(Vec<One<'a>>),
    Script(&'a str),
    /// Queries whose results are of one point in time.
    Live(Vec<One<'a>>),
    Migrate(&'a Migrations),
    /// What only an engine can do, and what it is called.
    Other(&'static str),
}

/// What a server answers.
pub enum Answered {
    Executed(ExecuteResult),
    Changes(u64),
    Rows(Rows),
    Batch(Vec<(ExecuteResult, Option<Rows>)>),
    Live(Vec<Rows>),
    /// The names of migrations.
    Migrated(Vec<String>),
    Done,
}

impl Asked {
    pub fn what(&self) -> What<'_> {
        match &self.request.work {
            Work::Execute { text, params } => What::Execute(One { sql: &text.sql, row: Some(params.row()) }),
            Work::Query { text, params, .. } => {
                let one = One { sql: &text.sql, row: Some(params.row()) };
                // What else has rows is a write with RETURNING, of which the changes are wanted too.
                if self.request.work.takes_any() && !self.only_reads() {
                    What::Batch(vec![one])
                } else {
                    What::Query(one)
                }
            }
            Work::Many { text, rows, wanted } => {
                let all = rows.rows().map(|row| One { sql: &text.sql, row: Some(row) }).collect();
                match wanted {
                    WantedOfRuns::Rows => What::ManyWithRows(all),
                    WantedOfRuns::Any if looks_like_rows(&text.sql) => What::ManyWithRows(all),
                    _ => What::Many(all),
                }
            }
            Work::Batch(statements) => {
                let texts = statements.texts().iter();
                let all = texts.flat_map(|(text, rows)| rows.rows().map(|row| One { sql: &text.sql, row: Some(row) }));
                What::Batch(all.collect())
            }
            Work::Script(text) => What::Script(&text.sql),
            Work::Live(query, _) => What::Live(
                query.0.iter().map(|part| One { sql: &part.text.sql, row: Some(part.params.row()) }).collect(),
            ),
            Work::Exclusive(Exclusive::Migrate(migrations)) => What::Migrate(migrations),
            other => What::Other(other.describe().name),
        }
    }

    /// Returns true for one run of one statement. Unlike [`what`](Self::what) it does not list the others.
    pub fn is_one(&self) -> bool {
        self.request.work.statement().is_some()
    }

    /// Keeps this until it is answered or dropped.
    pub fn keep(&mut self, kept: Box<dyn Send + Sync>) {
        self.kept = Some(kept);
    }

    /// Called before anything of it is sent. Returns false if its caller has left: then it must not be sent.
    #[must_use]
    pub fn starts(&self) -> bool {
        let ticket = &self.request.ticket;
        let starts = ticket.start();
        if starts {
            // It runs until its event is sent.
            let _ = ticket.note_start(ExecutedOn::Server, || Duration::ZERO);
        }
        starts
    }

    /// Called before what may change something is sent: from then on it is finished whatever its caller does. Returns false if its
    /// caller has left.
    #[must_use]
    pub fn finishes(&self) -> bool {
        self.request.ticket.finishes()
    }

    /// Puts it back into a queue, before it is sent again. Returns false if its caller has left, or its time is over.
    #[must_use]
    pub fn waits_again(&self) -> bool {
        self.request.ticket.hand_over()
    }

    /// Returns true if its caller has left, and needs no answer.
    pub fn is_left(&self) -> bool {
        self.request.ticket.is_interrupted() || self.request.ticket.is_given_up()
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.request.ticket.deadline
    }

    /// When the call began.
    pub fn began(&self) -> Instant {
        self.request.ticket.began
    }

    /// The way of its session, as [`with_way`] has it.
    pub fn way(&self) -> u16 {
        self.request.ticket.options.way
    }

    /// Returns true for the begin of a transaction.
    pub fn begins(&self) -> bool {
        matches!(self.request.work, Work::Begin(_))
    }

    /// Returns true for migrations, which are several requests.
    pub fn migrates(&self) -> bool {
        matches!(self.request.work, Work::Exclusive(Exclusive::Migrate(_)))
    }

    /// Returns true for what is known to read only, as far as its text tells.
    pub fn only_reads(&self) -> bool {
        self.request.work.describe().only_reads()
    }

    /// The values of each run.
    fn rows(&self) -> Vec<ParamRow<'_>> {
        let ones = match self.what() {
            What::Execute(one) | What::Query(one) => vec![one],
            What::Many(all) | What::ManyWithRows(all) | What::Batch(all) | What::Live(all) => all,
            What::Script(_) | What::Migrate(_) | What::Other(_) => Vec::new(),
        };
        ones.into_iter().filter_map(|one| one.row).collect()
    }

    /// Answers it, and wakes its caller. Others learn that it has written.
    pub fn answer(self, answered: Result<Answered>) {
        let answered = answered.map_err(|error| hidden(error, &self));
        let Request { work, reply_to, ticket, .. } = self.request;
        let changes = self.changes.filter(|_| answered.is_ok() && !matches!(work, Work::Begin(_) | Work::Rollback));
        let answer = answered.and_then(|answered| wanted(&work, answered)).map_err(|error| work.explain(error));
        if let (Some(record), Ok(answer)) = (&ticket.record, &answer) {
            record.answered(answer.numbers());
        }
        match answer {
            // Comparing it with the result before takes long.
            Ok(Answer::Live(runs)) if runs.iter().any(|run| !run.rows.is_small()) => {
                let fill =
                    |(reply_to, runs): (ReplyTo, _)| reply_to.fill(Ok(Answer::Live(runs)), &mut Teller::default());
                if let Err(left) = run_with("fw-live", (reply_to, runs), fill) {
                    fill(left);
                }
            }
            answer => reply_to.fill(answer, &mut Teller::default()),
        }
        changes.inspect(Changes::tell);
    }
}

/// The same error without the values that were bound.
fn hidden(error: Error, asked: &Asked) -> Error {
    if !error.sqlite_code().is_some_and(may_quote) {
        return error;
    }
    let sql = error.sql().unwrap_or_default().to_owned();
    asked.rows().into_iter().fold(error, |error, row| match hide_values(error.message(), &sql, row) {
        Some(hidden) => error.with_message(hidden),
        None => error,
    })
}

fn wanted(work: &Work, answered: Answered) -> Result<Answer> {
    Ok(match answered {
        Answered::Executed(executed) => Answer::Executed(executed),
        Answered::Changes(changes) => Answer::Changes(changes),
        Answered::Batch(mut results) if work.takes_any() => {
            let (executed, rows) = results.pop().unwrap_or_default();
            Answer::Ran(Box::new(RunResult::of(executed, rows)))
        }
        Answered::Batch(results) if is_any(work) => Answer::Ran(Box::new(joined(results))),
        Answered::Batch(results) if matches!(work, Work::Many { .. }) => {
            Answer::Rows(joined(results).rows.unwrap_or_default())
        }
        Answered::Batch(results) => {
            Answer::Batch(results.into_iter().map(|(executed, rows)| RunResult::of(executed, rows)).collect())
        }
        Answered::Live(results) => {
            let run = |rows| LiveRun { rows, derived: Derived::of_every_commit(), found: Vec::new() };
            Answer::Live(results.into_iter().map(run).collect())
        }
        Answered::Migrated(names) => Answer::Returned(Box::new(Ok::<_, Error>(names)), None),
        Answered::Done => Answer::Done,
        Answered::Rows(rows) => match work {
            Work::Query { wanted: Wanted::Json(options), .. } => match json_of(&rows, options) {
                Ok(document) => Answer::Json(document),
                Err(error) if rows.names.is_of_write => Answer::Unmade(after_the_write(error)),
                Err(error) => return Err(error),
            },
            _ => Answer::Rows(rows),
        },
    })
}

fn is_any(work: &Work) -> bool {
    matches!(work, Work::Many { wanted: WantedOfRuns::Any, .. })
}

/// The changes and the rows of all runs of one statement.
fn joined(results: Vec<(ExecuteResult, Option<Rows>)>) -> RunResult {
    let changes = results.iter().map(|(executed, _)| executed.changes).sum();
    let mut runs = results.into_iter().filter_map(|(_, rows)| rows);
    let rows = runs.next().map(|mut all| {
        let cells = |rows: &Rows| 0..rows.block.cells();
        runs.for_each(|rows| rows.block.values(cells(&rows)).for_each(|value| all.block.push(value)));
        all
    });
    RunResult::of(ExecuteResult::of(changes, None), rows)
}

/// The result of a write.
pub fn executed(changes: u64, last_insert_rowid: Option<i64>) -> ExecuteResult {
    ExecuteResult::of(changes, last_insert_rowid)
}

/// A result while it is read.
pub struct RowsRead {
    names: Names,
    block: Block,
}

impl RowsRead {
    /// `columns` have the name and the declared type of each.
    pub fn new(sql: &str, columns: Vec<(Box<str>, Option<Box<str>>)>, is_of_write: bool) -> Self {
        let source = |declared_type| ColumnSource { declared_type, origin: None };
        let (names, sources) = columns.into_iter().map(|(name, declared)| (name, source(declared))).unzip();
        Self { names: ColumnNames::of(names, sources, sql.into(), is_of_write), block: Block::default() }
    }

    /// Adds the next value.
    pub fn push(&mut self, value: ValueRef<'_>) {
        self.block.push(value);
    }

    /// `None` if a row is not whole.
    pub fn finish(self) -> Option<Rows> {
        let has_all_cells = self.block.cells().checked_rem(self.names.len()).unwrap_or(0) == 0;
        has_all_cells.then_some(Rows { names: self.names, block: self.block })
    }
}
