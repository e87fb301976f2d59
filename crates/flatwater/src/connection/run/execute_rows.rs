//! Running a prepared statement once for each of many rows of parameters, in the open transaction.
//!
//! Owns: those runs, on a worker and inline, and which row failed. Runs on the thread that has the connection. Invariants: the
//! rows run in their order, and none after one that failed; an inline run ends when its time is over. Leaves out: one run
//! (`execute`), transactions.

use std::cell::Cell;
use std::iter;
use std::ops::ControlFlow;
use std::time::Instant;

use flatwater_sqlite::Sqlite;

use super::execute::{Bounds, Output, RowidBefore, StatementRun, output_of, result_of};
use super::failures::too_large;
use super::prepare::is_kept;
use super::statement_cache::CachedStatement;
use crate::connection::EngineConnection;
use flatwater_base::encode::Room;
use flatwater_base::encode::rows::RowSink;
use flatwater_base::error::Result;
use flatwater_base::error::location::in_row;
use flatwater_base::values::outcome::{ExecuteResult, RunResult};
use flatwater_base::values::param_rows::ParamRows;
use flatwater_base::values::params::{ParamRow, Params};
use flatwater_base::values::row::Rows;
use flatwater_sql::policy;

/// So many rows run between two looks at the clock.
const ROWS_PER_LOOK: usize = 16;

impl EngineConnection {
    /// Runs a statement once per row, and passes on what each run did. Stops after a run for which the next one needs the
    /// statement prepared anew.
    pub(crate) fn execute_each<'a>(
        &mut self,
        statement: &CachedStatement,
        rows: &mut impl Iterator<Item = ParamRow<'a>>,
        each: &mut impl FnMut(RunResult),
    ) -> Result<()> {
        let output = output_of(statement);
        // The first run begins the snapshots of all files, which it may have to wait for.
        while let Some(params) = rows.next() {
            let outcome = self.execute(&StatementRun { statement, params, output, bounds: Bounds::Armed })?;
            each(result_of(outcome)?);
            let is_the_same = |sqlite: &Sqlite| match sqlite.statements().reprepares(statement.id) {
                0 if is_kept(statement) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            };
            if is_the_same(&self.sqlite).is_break() {
                return Ok(());
            }
            if matches!(output, Output::Nothing) {
                return self.run_rows(statement, Bounds::Armed, rows, each, is_the_same);
            }
        }
        Ok(())
    }

    /// The same inline, within the limits of an inline run. Prepares nothing. Returns false if not all rows ran until `end`.
    pub(crate) fn execute_each_inline<'a>(
        &mut self,
        statement: &CachedStatement,
        rows: impl Iterator<Item = ParamRow<'a>>,
        (end, bytes): (Instant, usize),
        each: &mut impl FnMut(RunResult),
    ) -> Result<bool> {
        let (is_late, mut number) = (Cell::new(false), 0);
        let mut rows = rows.take_while(|_| {
            is_late.set(number % ROWS_PER_LOOK == 0 && Instant::now() >= end);
            number += 1;
            !is_late.get()
        });
        let output = output_of(statement);
        let bounds = Bounds::Inline { end: Some(end), rows: usize::MAX, bytes };
        if matches!(output, Output::Nothing) {
            let before = self.sqlite.hooks().authorizer.set_policy(policy::nothing);
            let ran = self.run_rows(statement, bounds, &mut rows, each, |_| ControlFlow::Continue(()));
            self.sqlite.hooks().authorizer.set_policy(before);
            ran?;
        } else {
            for params in rows {
                each(result_of(self.execute(&StatementRun { statement, params, output, bounds })?)?);
            }
        }
        Ok(!is_late.get())
    }

    /// Runs a statement, which returns no rows, once per row of parameters, until `next` breaks.
    fn run_rows<'a>(
        &mut self,
        statement: &CachedStatement,
        bounds: Bounds,
        rows: &mut impl Iterator<Item = ParamRow<'a>>,
        each: &mut impl FnMut(RunResult),
        next: impl Fn(&Sqlite) -> ControlFlow<()>,
    ) -> Result<()> {
        let Some(first) = rows.next() else { return Ok(()) };
        let mut before = RowidBefore::of(&self.sqlite, statement);
        let ran = self.run_many(statement, bounds, &mut iter::once(first).chain(rows), |sqlite| {
            let mut executed = ExecuteResult::default();
            if statement.class.changes_rows {
                executed = before.after(sqlite, statement);
                before = RowidBefore::of(sqlite, statement);
            }
            each(RunResult::of(executed, None));
            next(sqlite)
        });
        // After the last row it watches for another one.
        let _ = self.sqlite.hooks().inserts.saw(0);
        ran
    }

    /// Runs a statement once per row, and returns the sum of the changes.
    pub(crate) fn execute_many(&mut self, statement: &CachedStatement, all: &ParamRows) -> Result<u64> {
        let mut rows = all.rows();
        let Some(params) = rows.next() else { return Ok(0) };
        let number = Cell::new(0);
        let in_row = |error| in_row(error, all.first_number + number.get());
        // The first run begins the snapshots of all files, which it may have to wait for.
        let first = StatementRun { statement, params, output: Output::Nothing, bounds: Bounds::Armed };
        let mut changes = self.execute(&first).map_err(in_row)?.executed.changes;
        number.set(1);
        let changes_rows = statement.class.changes_rows;
        let ran = self.run_many(statement, Bounds::Armed, &mut rows, |sqlite| {
            changes += if changes_rows { sqlite.handle().changes() } else { 0 };
            number.set(number.get() + 1);
            ControlFlow::Continue(())
        });
        ran.map(|()| changes).map_err(in_row)
    }

    /// Runs a statement once per row, and calls `ran` after each run, until that breaks.
    fn run_many<'a>(
        &mut self,
        statement: &CachedStatement,
        bounds: Bounds,
        rows: &mut impl Iterator<Item = ParamRow<'a>>,
        ran: impl FnMut(&Sqlite) -> ControlFlow<()>,
    ) -> Result<()> {
        let Self { sqlite, recording, .. } = self;
        let last = Cell::new(None);
        let stepped = sqlite.statement(statement.id).run_many(rows.inspect(|row| last.set(Some(*row))), ran);
        recording.note(sqlite, statement);
        stepped.map_err(|error| {
            let none = Params::default();
            bounds.explain(sqlite, error, statement, last.get().unwrap_or(none.row()))
        })
    }
}

/// Runs a statement that returns rows once per row. Returns those of all runs, and the sum of the changes.
pub(crate) fn query_many(
    connection: &mut EngineConnection,
    statement: &CachedStatement,
    all: &ParamRows,
) -> Result<(Rows, u64)> {
    // If there is no room for all of them, what the runs did is undone.
    let room = Room { bytes: connection.result_limit, runs_to_end: false };
    let mut sink = RowSink::new((0, 0), usize::MAX, room);
    let mut changes = 0;
    for (number, params) in all.rows().enumerate() {
        let run = StatementRun { statement, params, output: Output::Rows(usize::MAX), bounds: Bounds::Armed };
        connection.step(&run, &mut sink).map_err(|error| in_row(error, all.first_number + number))?;
        if sink.is_over() {
            return Err(too_large(connection.result_limit).with_sql(&statement.text.sql));
        }
        changes += if statement.class.changes_rows { connection.sqlite.handle().changes() } else { 0 };
    }
    Ok((sink.finish(connection.names_after_run(statement)?), changes))
}
