//! Tables of Arrow as rows of parameters: of pyarrow, polars, pandas, and others that have the PyCapsule interface.
//!
//! Owns: which column is which parameter, and where the next row is. Runs on the loop's thread. Invariants: what cannot be bound is
//! refused by the names and the types of its columns, before any row is taken; a row is read whole. Leaves out: values
//! (`table_values`), and how long rows are taken without a pause (`many`).

use flatwater::bindings::parameter_names;
use flatwater::rusqlite::types::ToSqlOutput;
use flatwater::{ErrorCode, Params};
use pyo3::prelude::*;

use crate::capi::arrow_tables::{Batch, Batches};
use crate::given::forms::Written;
use crate::given::table_values::Form;
use crate::told::errors::{raised, refused};

/// A table that is being read.
pub(crate) struct Table {
    batches: Batches,
    /// The columns of a batch, with their names.
    columns: Vec<(String, Form)>,
    /// Which of them each parameter is.
    order: Vec<usize>,
    /// The batch that is read, and its next row.
    batch: Option<(Batch, usize)>,
}

impl Table {
    /// Takes the table of an object that has one, for a statement.
    pub(crate) fn of(given: &Bound<'_, PyAny>, sql: &str, written: Written) -> PyResult<Option<Self>> {
        let py = given.py();
        let Some(batches) = Batches::of(given)? else { return Ok(None) };
        let Some(fields) = batches.fields() else {
            let hint = "pass a table: a column alone has no rows of parameters";
            return Err(refused(
                py,
                ErrorCode::InvalidArgument,
                "what was given is a column of Arrow, not a table",
                Some(hint),
            ));
        };
        let mut columns = Vec::with_capacity(fields.len());
        for field in fields {
            let name = field.name().into_owned();
            let form = Form::of(field, written.sqlite3_datetimes).map_err(|kind| {
                let message =
                    format!("the column {name:?} of the table is {kind}, which cannot be bound to a statement");
                refused(py, ErrorCode::InvalidValue, &message, Some("cast it to a type that SQLite has, such as text"))
            })?;
            columns.push((name, form));
        }
        let order = order(py, &columns, sql)?;
        Ok(Some(Self { batches, columns, order, batch: None }))
    }

    /// Fills parameters that are empty with the next row. Returns false if there is none.
    pub(crate) fn fill(&mut self, py: Python<'_>, params: &mut Params) -> PyResult<bool> {
        while self.batch.as_ref().is_none_or(|(batch, next)| *next == batch.rows()) {
            let Some(batch) = self.batches.next()? else { return Ok(false) };
            if !self.fits(&batch) {
                let message = "the table has other columns than its schema says";
                return Err(refused(py, ErrorCode::InvalidArgument, message, None));
            }
            self.batch = Some((batch, 0));
        }
        let Some((batch, next)) = &mut self.batch else { return Ok(false) };
        let row = *next;
        *next += 1;
        for at in &self.order {
            let (name, form) = &self.columns[*at];
            let Some(column) = batch.column(*at) else { continue };
            let mut pushed = Ok(());
            let value = form.read(column, row, &mut |value| pushed = params.push(ToSqlOutput::Borrowed(value)));
            value.map_err(|why| refused(py, ErrorCode::InvalidValue, &format!("column {name:?}: {why}"), None))?;
            pushed.map_err(|error| raised(py, &error))?;
        }
        Ok(true)
    }

    /// True if the batch has the columns that its schema says.
    fn fits(&self, batch: &Batch) -> bool {
        let mut columns = self.columns.iter().enumerate();
        columns.all(|(at, (_, form))| batch.column(at).is_some_and(|column| column.has_buffers(form.buffers())))
    }
}

/// Returns which column each parameter is: by their names if the statement has names, otherwise by their order.
fn order(py: Python<'_>, columns: &[(String, Form)], sql: &str) -> PyResult<Vec<usize>> {
    let mut order = Vec::with_capacity(columns.len());
    for name in parameter_names(sql) {
        let Some(at) = columns.iter().position(|(column, _)| column == name) else {
            let names = columns.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", ");
            let message = format!("the table has no column for the parameter {name:?}; it has {names}");
            return Err(refused(py, ErrorCode::ParameterName, &message, None));
        };
        if !order.contains(&at) {
            order.push(at);
        }
    }
    if order.is_empty() {
        return Ok((0..columns.len()).collect());
    }
    match columns.iter().enumerate().find(|(at, _)| !order.contains(at)) {
        Some((_, (name, _))) => {
            let message = format!("the statement has no parameter for the column {name:?} of the table");
            let hint = "select the columns that it has parameters for";
            Err(refused(py, ErrorCode::ParameterName, &message, Some(hint)))
        }
        None => Ok(order),
    }
}
