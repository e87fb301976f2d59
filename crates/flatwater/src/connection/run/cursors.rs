//! The cursors of one connection: statements that were started, and whose rows are fetched in batches.
//!
//! Owns: starting them, fetching a batch, and ending them. Runs on the thread that has the connection. Invariants: a
//! cursor's statement is not in the cache of statements while the cursor is open, so that nothing else runs it; after an
//! error the cursor is over. Leaves out: transactions, and how long a cursor may stay open.

use std::sync::Arc;

use flatwater_sqlite::Flow;

use super::execute::{explain, too_large};
use super::prepare::is_kept;
use super::statement_cache::CachedStatement;
use crate::connection::EngineConnection;
use crate::encode::rows::RowSink;
use crate::error::{Error, Result};
use crate::values::params::Params;
use crate::values::row::Rows;

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
            return Err(Error::misuse("the result has no more rows"));
        };
        let mut sink = RowSink::of_batch(statement.names.len(), is_first, connection.result_limit);
        let flow = connection.sqlite.statement(statement.id).next(&mut sink);
        let fetched = flow
            .map_err(|error| explain(&connection.sqlite, error, statement, params.row()))
            .and_then(|flow| match sink.is_over() {
                true => Err(too_large(connection.result_limit).with_sql(&statement.text.sql)),
                false => Ok(flow),
            })
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
