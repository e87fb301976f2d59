//! Which parameters matter for the plan of a statement, and the plan for given values.
//!
//! Owns: asking SQLite, with EXPLAIN QUERY PLAN. Runs on the thread that uses the connection. Invariant: no part of the text
//! runs; each listing is prepared, bound and stepped at once, and ended before anything else runs. Leaves out: what is made of it.

use std::ffi::c_int;

use rusqlite::ffi;

use super::Sqlite;
use crate::error::{Error, Result};
use crate::statements::StatementId;
use crate::statements::bindings::Bindings;
use crate::statements::parameters::is_name;
use crate::statements::running::Running;
use crate::statements::sink::{Discard, Flow, Sink};
use crate::statements::statement_start::statement_start;

/// SQLite remembers of so many parameters, each by itself, whether they matter.
const ONE_BY_ONE: usize = 31;

/// How the value of a parameter matters for the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matters {
    /// Whether it is the integer 0 or 1, which SQLite takes for flags, or not.
    AsFlag,
    /// Each value may have a plan of its own.
    AsValue,
}

/// A parameter whose value matters for the plan.
#[derive(Debug, Clone)]
pub struct PlanParameter {
    /// Its place, counted from 0.
    pub position: usize,
    /// With the prefix; `None` if it has no name.
    pub name: Option<Box<str>>,
    /// How it matters.
    pub matters: Matters,
}

/// The plans that SQLite makes on a connection.
pub struct Plans<'c>(&'c mut Sqlite);

impl<'c> Plans<'c> {
    /// Those of this connection.
    pub fn of(connection: &'c mut Sqlite) -> Self {
        Self(connection)
    }

    /// The parameters whose values matter for the plan of the one statement of `sql`, under the schema as it is. `None` if it
    /// has too many parameters to tell. Blocks for as long as a few prepares do.
    ///
    /// SQLite asks the current policy as for any prepare, and counts the listing of a write as a statement that changed
    /// nothing: `changes()` is 0 afterwards.
    ///
    /// # Errors
    /// SQLite's error; [`Error::StaleStatement`] if there is no statement.
    pub fn parameters(&mut self, sql: &str) -> Result<Option<Vec<PlanParameter>>> {
        let (count, names) = listed(self.0, sql, |connection, id| {
            let count = connection.statement(id).compiled()?.parameters.count;
            Ok((count, connection.statements.names(id).ok_or(Error::StaleStatement)?))
        })?;
        if count > ONE_BY_ONE {
            return Ok(None);
        }
        let mut found = Vec::new();
        for position in 0..count {
            if let Some(matters) = listed(self.0, sql, |connection, id| matters(connection, id, position))? {
                let name = Some(names.name(position)).filter(|name| is_name(name)).map(Into::into);
                found.push(PlanParameter { position, name, matters });
            }
        }
        Ok(Some(found))
    }

    /// The plan of the one statement of `sql`, for these values or for unknown ones: the lines of EXPLAIN QUERY PLAN
    /// (<https://sqlite.org/eqp.html>). Blocks for as long as one or two prepares do. Otherwise like
    /// [`parameters`](Self::parameters).
    ///
    /// # Errors
    /// As there, and if the values do not match the parameters.
    pub fn plan<B: Bindings + ?Sized>(&mut self, sql: &str, values: Option<&B>) -> Result<Vec<Box<str>>> {
        listed(self.0, sql, |connection, id| {
            let compiled = connection.statement(id).compiled()?;
            let mut running = Running::borrowing(compiled);
            if let Some(values) = values {
                running.bind(compiled.parameters, values, || connection.statements.names(id))?;
            }
            let mut lines = Lines::default();
            running.rows(&mut lines)?;
            Ok(lines.0)
        })
    }
}

/// How the parameter matters: SQLite prepares the listing again when it is bound.
fn matters(connection: &mut Sqlite, id: StatementId, position: usize) -> Result<Option<Matters>> {
    for (value, matters) in [(2, Matters::AsValue), (1, Matters::AsFlag)] {
        if is_prepared_again_for(connection, id, position, value)? {
            return Ok(Some(matters));
        }
    }
    Ok(None)
}

fn is_prepared_again_for(connection: &mut Sqlite, id: StatementId, position: usize, value: i64) -> Result<bool> {
    let compiled = connection.statement(id).compiled()?;
    let number = c_int::try_from(position + 1).map_err(|_| Error::TextTooLong)?;
    let mut running = Running::copying(compiled);
    // SAFETY: the listing is alive, and it is not stepped.
    unsafe { ffi::sqlite3_bind_int64(compiled.raw, number, value) };
    running.rows(&mut Discard)?;
    // SAFETY: the listing is alive.
    let again = unsafe { ffi::sqlite3_stmt_status(compiled.raw, ffi::SQLITE_STMTSTATUS_REPREPARE, 0) };
    Ok(again != 0)
}

/// Prepares the listing of the plan, and finalizes it after `f`.
fn listed<T>(connection: &mut Sqlite, sql: &str, f: impl FnOnce(&mut Sqlite, StatementId) -> Result<T>) -> Result<T> {
    let listing = format!("EXPLAIN QUERY PLAN {}", &sql[statement_start(sql)..]);
    let id = connection.prepare(&listing)?.ok_or(Error::StaleStatement)?.id;
    let result = f(connection, id);
    connection.statement(id).finalize();
    result
}

/// The texts of a plan's lines, in their order. The other columns are numbers that SQLite gave to the lines.
#[derive(Default)]
struct Lines(Vec<Box<str>>);

impl Sink for Lines {
    fn null(&mut self) {}
    fn integer(&mut self, _: i64) {}
    fn real(&mut self, _: f64) {}
    fn text(&mut self, value: &[u8]) {
        self.0.push(String::from_utf8_lossy(value).into());
    }
    fn blob(&mut self, _: &[u8]) {}
    fn row_done(&mut self) -> Flow {
        Flow::Continue
    }
}
