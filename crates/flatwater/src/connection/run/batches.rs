//! Queries whose rows are handed over in parts: while the query runs to its end, or as they are fetched from a cursor.
//!
//! Owns: how large a part is, the run from its first part to its last, and the cursors of one connection: statements that were
//! started. Runs on the thread that has the connection. Invariants: what was handed over and what is returned are together the rows of
//! the result, each once; a run leaves its statement reset and unbound, also after an error; a cursor's statement is not in the cache
//! of statements while the cursor is open, so that nothing else runs it; after an error the cursor is over. Leaves out: who gets the
//! parts, transactions, and how long a cursor may stay open.

use std::sync::Arc;

use flatwater_sqlite::Flow;

use super::failures::{explain, too_large};
use super::prepare::is_kept;
use super::statement_cache::CachedStatement;
use crate::connection::EngineConnection;
use flatwater_base::encode::rows::RowSink;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::values::block::Cell;
use flatwater_base::values::params::{ParamRow, Params};
use flatwater_base::values::row::Rows;

/// The first part has as many rows as have this many cells, or fewer if they are long: whoever makes something of it waits
/// for it.
const FIRST_CELLS: usize = 1_536;
/// A later part.
const CELLS: usize = 3_072;

/// The last part of a result, and the number of rows before it.
pub(crate) struct LastPart {
    pub(crate) rows: Rows,
    pub(crate) before: usize,
}

/// Runs a statement that only reads to its end. All parts but the last are handed over.
pub(crate) fn execute_in_parts(
    connection: &mut EngineConnection,
    statement: &CachedStatement,
    params: ParamRow<'_>,
    mut hand_over: impl FnMut(Rows),
) -> Result<LastPart> {
    connection
        .sqlite
        .statement(statement.id)
        .start(&params)
        .map_err(|error| explain(&connection.sqlite, error, statement, params))?;
    let (expected, _) = statement.text.size.get();
    let (mut before, mut cells, mut bytes) = (0, 0, 0);
    let mut names = None;
    loop {
        let wanted = if before == 0 { FIRST_CELLS } else { CELLS };
        let room = connection.result_limit.saturating_sub(cells * size_of::<Cell>() + bytes);
        let mut sink = RowSink::of_part(statement.names.len(), wanted, expected.saturating_sub(cells), room);
        let flow = fetch(connection, statement, params, &mut sink);
        let flow = flow.inspect_err(|_| connection.sqlite.statement(statement.id).reset())?;
        let size = sink.size();
        (cells, bytes) = (cells + size.0, bytes + size.1);
        // SQLite prepares a statement again at its first step only.
        let known = names.take().map_or_else(|| connection.names_after_run(statement), Ok);
        let known = known.inspect_err(|_| connection.sqlite.statement(statement.id).reset())?;
        let rows = sink.finish(known.clone());
        names = Some(known);
        if flow == Flow::Continue {
            statement.text.size.had(cells, bytes);
            return Ok(LastPart { rows, before });
        }
        before += rows.len();
        hand_over(rows);
    }
}

/// Fetches the next part of a statement that was started.
fn fetch(
    connection: &mut EngineConnection,
    statement: &CachedStatement,
    params: ParamRow<'_>,
    sink: &mut RowSink,
) -> Result<Flow> {
    let flow = connection.sqlite.statement(statement.id).next(sink);
    let flow = flow.map_err(|error| explain(&connection.sqlite, error, statement, params))?;
    if sink.is_over() { Err(too_large(connection.result_limit).with_sql(&statement.text.sql)) } else { Ok(flow) }
}

/// The open cursors of a connection.
#[derive(Default)]
pub(crate) struct Cursors {
    open: Vec<OpenCursor>,
    next: u64,
}

struct OpenCursor {
    number: u64,
    statement: Arc<CachedStatement>,
    /// For the messages of errors, which must not quote them.
    params: Params,
}

/// A part of a result.
pub(crate) struct Batch {
    pub(crate) rows: Rows,
    /// The number of the cursor, if there may be more rows.
    pub(crate) cursor: Option<u64>,
}

impl Cursors {
    /// Starts a statement that `EngineConnection::ready` returned, and fetches the first batch.
    pub(crate) fn start(
        &mut self,
        connection: &mut EngineConnection,
        statement: Arc<CachedStatement>,
        params: Params,
    ) -> Result<Batch> {
        connection.statements.take(&statement.text);
        let number = self.next;
        self.next += 1;
        let started = connection.sqlite.statement(statement.id).start(&params.row());
        let started = started.map_err(|error| explain(&connection.sqlite, error, &statement, params.row()));
        self.open.push(OpenCursor { number, statement, params });
        if let Err(error) = started {
            self.end(connection, number);
            return Err(error);
        }
        self.fetch_some(connection, number, true)
    }

    /// Fetches the next batch.
    pub(crate) fn fetch(&mut self, connection: &mut EngineConnection, number: u64) -> Result<Batch> {
        self.fetch_some(connection, number, false)
    }

    fn fetch_some(&mut self, connection: &mut EngineConnection, number: u64, is_first: bool) -> Result<Batch> {
        let Some(OpenCursor { statement, params, .. }) = self.open.iter().find(|cursor| cursor.number == number) else {
            return Err(Error::new(ErrorCode::Finished, "the result has no more rows"));
        };
        let mut sink = RowSink::of_batch(statement.names.len(), is_first, connection.result_limit);
        let fetched = fetch(connection, statement, params.row(), &mut sink)
            .and_then(|flow| Ok((flow, sink.finish(connection.names_after_run(statement)?))));
        if !matches!(fetched, Ok((Flow::Stop, _))) {
            self.end(connection, number);
        }
        fetched.map(|(flow, rows)| Batch { rows, cursor: (flow == Flow::Stop).then_some(number) })
    }

    /// Ends a cursor. Its statement may be used by others again.
    pub(crate) fn end(&mut self, connection: &mut EngineConnection, number: u64) {
        let Some(at) = self.open.iter().position(|cursor| cursor.number == number) else { return };
        let OpenCursor { statement, .. } = self.open.swap_remove(at);
        connection.sqlite.statement(statement.id).reset();
        if is_kept(&statement) {
            connection.statements.keep(&mut connection.sqlite, statement);
        } else {
            connection.sqlite.statement(statement.id).finalize();
        }
    }

    /// Ends all of them.
    pub(crate) fn end_all(&mut self, connection: &mut EngineConnection) {
        while let Some(cursor) = self.open.last() {
            self.end(connection, cursor.number);
        }
    }

    pub(crate) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }
}
