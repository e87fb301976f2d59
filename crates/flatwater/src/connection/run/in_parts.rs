//! Running a query whose rows are handed over in parts while it runs.
//!
//! Owns: how large a part is, and the run from its first part to its last. Runs on the thread that has the connection.
//! Invariants: the statement is reset and unbound at the end, also after an error; what was handed over and what is returned are
//! together the rows of the result, each once. Leaves out: who gets the parts.

use flatwater_sqlite::Flow;

use super::execute::{explain, too_large};
use super::statement_cache::CachedStatement;
use crate::connection::EngineConnection;
use crate::encode::rows::RowSink;
use crate::error::Result;
use crate::values::block::Cell;
use crate::values::params::ParamRow;
use crate::values::row::Rows;

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
        let flow = connection.sqlite.statement(statement.id).next(&mut sink);
        let flow = flow.map_err(|error| explain(&connection.sqlite, error, statement, params))?;
        if sink.is_over() {
            connection.sqlite.statement(statement.id).reset();
            return Err(too_large(connection.result_limit).with_sql(&statement.text.sql));
        }
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
