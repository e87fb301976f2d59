//! Running a prepared statement: the one way for readers, the writer, transactions, and inline runs.
//!
//! Owns: one run, from its parameters to its outcome, and the writes of the statements that ran, while they are recorded. Runs on the
//! thread that has the connection. Invariants: an inline run prepares nothing, so that what is known of the statement is true of what
//! runs: a statement that SQLite wants to prepare again fails instead; a result with more rows than an inline run may have is
//! a failure, never a part of a result; every statement that runs here is recorded, and what runs in another way must be reported.
//! Leaves out: which statement runs (`prepare`), what limits the pages that an inline run may read (`inline_run`), the messages of
//! failures (`failures`), transactions, and when it is recorded, and what becomes of it (`workers::writer`).

use std::time::Instant;

use flatwater_sqlite::{Discard, Sink, Sqlite, SqliteError};
use rusqlite::ffi;

use super::failures::{explain, explain_write, name_constraint, too_large};
use super::statement_cache::CachedStatement;
use crate::connection::EngineConnection;
use flatwater_base::encode::Room;
use flatwater_base::encode::json::JsonSink;
use flatwater_base::encode::json_options::JsonOptions;
use flatwater_base::encode::rows::RowSink;
use flatwater_base::error::{Error, Result};
use flatwater_base::values::outcome::{Document, ExecuteResult, RunResult};
use flatwater_base::values::params::ParamRow;
use flatwater_base::values::row::Rows;
use flatwater_sql::class::Route;
use flatwater_sql::dependencies::change::{Change, Writes, Written};
use flatwater_sql::policy;

/// One run of a statement.
#[derive(Clone, Copy)]
pub(crate) struct StatementRun<'a> {
    pub(crate) statement: &'a CachedStatement,
    pub(crate) params: ParamRow<'a>,
    pub(crate) output: Output<'a>,
    pub(crate) bounds: Bounds,
}

/// What the caller wants of the rows of a run.
#[derive(Clone, Copy)]
pub(crate) enum Output<'a> {
    Nothing,
    /// At most this many, as a block. A statement that writes runs to its end whatever is wanted, and all its rows are
    /// returned.
    Rows(usize),
    /// All of them, as JSON.
    Json(&'a JsonOptions),
}

/// What may end a run early.
#[derive(Clone, Copy)]
pub(crate) enum Bounds {
    /// Whatever the connection is armed with.
    Armed,
    /// An inline run: what does not end by itself ends at `end`, if there is one; more than `rows` rows, or `bytes` bytes of
    /// JSON, are a failure of a read.
    Inline { end: Option<Instant>, rows: usize, bytes: usize },
}

impl Bounds {
    /// The error of a run in these bounds. After an inline run that fails a worker runs the statement again, unless there is no place
    /// to run it in any more (`short::run`).
    #[cold]
    pub(super) fn explain(
        self,
        sqlite: &Sqlite,
        error: flatwater_sqlite::Error,
        statement: &CachedStatement,
        params: ParamRow<'_>,
    ) -> Error {
        let (mut error, writes) = (explain(sqlite, error, statement, params), &statement.class.writes);
        if matches!(self, Self::Armed) {
            error = name_constraint(sqlite, error, writes);
        }
        explain_write(sqlite, error, writes)
    }
}

/// The result of a run.
pub(crate) struct Outcome {
    pub(crate) executed: ExecuteResult,
    pub(crate) result: Collected,
}

/// The rows of a run, as they were wanted.
pub(crate) enum Collected {
    Nothing,
    Rows(Rows),
    Json(Document),
    /// It has no form in JSON, or there was no room for it. The run is done nevertheless, and has changed the database if the
    /// statement writes.
    Unmade(Error, Route),
}

impl EngineConnection {
    /// Runs the statement to its end, or until it has returned as many rows as are wanted.
    pub(crate) fn execute(&mut self, run: &StatementRun<'_>) -> Result<Outcome> {
        let Bounds::Inline { end, .. } = run.bounds else { return self.execute_unbounded(run) };
        let statement = run.statement;
        let before = self.sqlite.hooks().authorizer.set_policy(policy::nothing);
        let end = end.filter(|_| statement.is_bounded());
        if let Some(end) = end {
            self.sqlite.statement(statement.id).arm_until(end);
        }
        let outcome = self.execute_unbounded(run);
        if end.is_some() {
            self.sqlite.hooks().interrupts.disarm();
        }
        self.sqlite.hooks().authorizer.set_policy(before);
        outcome
    }

    fn execute_unbounded(&mut self, run: &StatementRun<'_>) -> Result<Outcome> {
        match run.output {
            Output::Nothing => Ok(Outcome { executed: self.run(run, &mut Discard)?, result: Collected::Nothing }),
            Output::Rows(wanted) => self.collect(run, wanted),
            Output::Json(options) => self.write_json(run, options),
        }
    }

    fn collect(&mut self, run: &StatementRun<'_>, wanted: usize) -> Result<Outcome> {
        let StatementRun { statement, bounds, .. } = *run;
        let most = match bounds {
            _ if statement.class.route == Route::Write => usize::MAX,
            Bounds::Inline { rows, .. } => wanted.min(rows.saturating_add(1)),
            Bounds::Armed => wanted,
        };
        let room = self.room(statement);
        let mut sink = RowSink::new(statement.text.size.get(), most, room);
        let executed = self.run(run, &mut sink)?;
        if sink.is_over() {
            return self.too_large(statement, executed);
        }
        if let Bounds::Inline { rows, .. } = bounds
            && sink.rows_left() == 0
            && most > rows
        {
            return Err(SqliteError::from_code(ffi::SQLITE_TOOBIG).into());
        }
        let (cells, bytes) = sink.size();
        statement.text.size.had(cells, bytes);
        Ok(Outcome { executed, result: Collected::Rows(sink.finish(self.names_after_run(statement)?)) })
    }

    fn write_json(&mut self, run: &StatementRun<'_>, options: &JsonOptions) -> Result<Outcome> {
        let StatementRun { statement, bounds, .. } = *run;
        let mut room = self.room(statement);
        let most_rows = match bounds {
            Bounds::Inline { rows, bytes, .. } if !room.runs_to_end => {
                room.bytes = room.bytes.min(bytes);
                rows
            }
            _ => usize::MAX,
        };
        let keys = match statement.keys() {
            _ if options.arrays => None,
            Ok(keys) => Some(keys),
            Err(error) => {
                // It does not run, so SQLite would not notice that the schema is another one by now.
                self.statements.take(&statement.text);
                self.sqlite.statement(statement.id).finalize();
                return Err(error);
            }
        };
        let (_, expected) = statement.text.size.get();
        let mut sink = JsonSink::new(&statement.names, keys, options, expected, (most_rows, room));
        let executed = self.run(run, &mut sink)?;
        if sink.is_over() {
            return self.too_large(statement, executed);
        }
        let (cells, bytes) = sink.size();
        statement.text.size.had(cells, bytes);
        let result = match sink.finish() {
            Ok(document) => Collected::Json(document),
            Err(error) => Collected::Unmade(error.with_sql(&statement.text.sql), statement.class.route),
        };
        Ok(Outcome { executed, result })
    }

    fn room(&self, statement: &CachedStatement) -> Room {
        Room { bytes: self.result_limit, runs_to_end: statement.class.route == Route::Write }
    }

    /// What becomes of a run whose result has no room.
    #[cold]
    fn too_large(&self, statement: &CachedStatement, executed: ExecuteResult) -> Result<Outcome> {
        let error = too_large(self.result_limit).with_sql(&statement.text.sql);
        match statement.class.route {
            Route::Read => Err(error),
            Route::Write => Ok(Outcome { executed, result: Collected::Unmade(error, Route::Write) }),
        }
    }

    fn run<S: Sink>(&mut self, run: &StatementRun<'_>, sink: &mut S) -> Result<ExecuteResult> {
        let statement = run.statement;
        if !statement.class.changes_rows {
            self.step(run, sink)?;
            return Ok(ExecuteResult::default());
        }
        let before = RowidBefore::of(&self.sqlite, statement);
        self.step(run, sink)?;
        Ok(before.after(&self.sqlite, statement))
    }

    #[inline]
    pub(super) fn step<S: Sink>(&mut self, run: &StatementRun<'_>, sink: &mut S) -> Result<()> {
        let StatementRun { statement, params, bounds, .. } = *run;
        let stepped = match bounds {
            Bounds::Armed => self.sqlite.statement(statement.id).run(&params, sink),
            Bounds::Inline { .. } => self.sqlite.statement(statement.id).run_once(&params, sink),
        };
        self.recording.note(&self.sqlite, statement);
        stepped.map_err(|error| bounds.explain(&self.sqlite, error, statement, params))
    }
}

/// The rowid that was inserted last before a run of a statement that changes rows.
pub(super) struct RowidBefore(i64);

impl RowidBefore {
    /// To be called right before the run.
    pub(super) fn of(sqlite: &Sqlite, statement: &CachedStatement) -> Self {
        if let Some(table) = &statement.class.inserts_into {
            sqlite.hooks().inserts.watch(table);
        }
        Self(sqlite.handle().last_insert_rowid())
    }

    /// Returns what the run did. To be called right after it.
    pub(super) fn after(&self, sqlite: &Sqlite, statement: &CachedStatement) -> ExecuteResult {
        let rowid = sqlite.handle().last_insert_rowid();
        // The inserts of a virtual table may not be seen. It then sets a rowid for a row, and 0 for a command.
        let is_new = || rowid != self.0 && rowid != 0;
        let inserted = statement.class.inserts_into.is_some() && (sqlite.hooks().inserts.saw(rowid) || is_new());
        ExecuteResult::of(sqlite.handle().changes(), inserted.then_some(rowid))
    }
}

/// What is wanted of a statement that may return rows or not.
pub(crate) fn output_of(ready: &CachedStatement) -> Output<'static> {
    if ready.class.columns == 0 { Output::Nothing } else { Output::Rows(usize::MAX) }
}

/// What such a statement did.
pub(crate) fn result_of(outcome: Outcome) -> Result<RunResult> {
    let rows = match outcome.result {
        Collected::Rows(rows) => Some(rows),
        Collected::Unmade(error, _) => return Err(error),
        Collected::Nothing | Collected::Json(_) => None,
    };
    Ok(RunResult::of(outcome.executed, rows))
}

/// What the statements of a connection change, while that is recorded.
#[derive(Default)]
pub(crate) struct Recording {
    /// What the statements change, while that is recorded.
    written: Option<Written>,
    /// The file's data version when it was last compared, if it has no WAL.
    data_version: Option<i64>,
}

impl Recording {
    /// Starts or stops recording. What was recorded is dropped.
    pub(crate) fn set(&mut self, sqlite: &Sqlite, on: bool) {
        self.data_version = None;
        self.written = on.then(Written::default);
        sqlite.hooks().record_changes(on);
    }

    /// Records a statement that ran, or failed.
    #[inline]
    pub(super) fn note(&mut self, sqlite: &Sqlite, statement: &CachedStatement) {
        if let Some(written) = self.written.as_mut().filter(|_| statement.class.route == Route::Write) {
            // If SQLite prepared it again, because of another schema, it may have written more than is known.
            if sqlite.statements().reprepares(statement.id) == 0 {
                written.add(&statement.class.writes);
            } else {
                written.add_everything();
            }
        }
    }

    /// Records what code wrote that is no statement.
    pub(crate) fn wrote(&mut self, writes: &Writes) {
        if let Some(written) = &mut self.written {
            written.add(writes);
        }
    }

    /// Records that code ran of which nothing is known.
    pub(crate) fn wrote_everything(&mut self) {
        if let Some(written) = &mut self.written {
            written.add_everything();
        }
    }

    /// Returns what was recorded since the last call; `None` if nothing is recorded.
    pub(crate) fn take(&mut self, sqlite: &Sqlite) -> Option<Change> {
        let written = self.written.as_mut()?;
        Some(Change::of(std::mem::take(written), sqlite.hooks().changes.take()))
    }

    /// Returns true if it is recorded that nothing was written.
    pub(crate) fn wrote_nothing(&self) -> bool {
        self.written.as_ref().is_some_and(Written::is_empty)
    }

    /// Returns true if another connection may have committed since the last call. For a file without a WAL: reads its
    /// change counter (<https://sqlite.org/pragma.html#pragma_data_version>).
    pub(crate) fn sees_others(&mut self, sqlite: &Sqlite) -> bool {
        let version = "PRAGMA main.data_version";
        let now = sqlite.rusqlite().query_row(version, [], |row| row.get::<_, i64>(0)).ok();
        let before = std::mem::replace(&mut self.data_version, now);
        now.is_none() || before != now
    }

    pub(crate) fn is_on(&self) -> bool {
        self.written.is_some()
    }
}
