//! What the macros that check SQL make: a text with its parameters, and the types of its rows.
//!
//! Owns: its calls, which are those of a session. Runs on the caller's thread. Invariant: columns are read by position, as they were
//! when the program was compiled; a result with another number of columns is an error. Leaves out: the macros.

use std::marker::PhantomData;

use crate::api::call::Call;
use crate::api::database::Database;
use crate::api::live::Live;
use crate::api::session::Session;
use crate::api::stream::RowStream;
use crate::workers::work::Wanted;
use flatwater_base::error::Result;
use flatwater_base::error::location::OPTIONAL_ROW;
use flatwater_base::values::from_row::{Cells, Columns, in_two_steps};
use flatwater_base::values::outcome::decode_rows;
use flatwater_base::values::{ExecuteResult, FromRow, Params, Row, Rows};

/// How a row of a checked statement is read. The macros implement it.
pub trait CheckedRow: 'static {
    /// What a row is read as.
    type Output: Send + 'static;
    /// The number of columns.
    const COLUMNS: usize;

    /// Reads a row by the positions of its columns.
    ///
    /// # Errors
    /// `Decode` for a value of another type.
    fn read(cells: &Cells<'_>) -> Result<Self::Output>;
}

/// A row, read as a checked statement says.
pub(crate) struct Read<R: CheckedRow>(pub(crate) R::Output);

impl<R: CheckedRow> FromRow for Read<R> {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        in_two_steps(row)
    }

    fn columns(columns: &mut Columns<'_>) -> Result<()> {
        columns.exactly(R::COLUMNS)
    }

    fn from_cells(cells: &mut Cells<'_>) -> Result<Self> {
        R::read(cells).map(Self)
    }
}

fn outputs<R: CheckedRow>(rows: Vec<Read<R>>) -> Vec<R::Output> {
    rows.into_iter().map(|row| row.0).collect()
}

/// A statement that returns rows, checked when the program was compiled, with its parameters: what [`query!`](crate::query) and its
/// kin make. Nothing runs until one of its calls is polled.
#[must_use = "it does nothing unless it is run"]
pub struct Checked<R: CheckedRow> {
    sql: &'static str,
    params: Result<Params>,
    row: PhantomData<fn() -> R>,
}

impl<R: CheckedRow> Checked<R> {
    #[doc(hidden)]
    pub fn __new(sql: &'static str, params: Result<Params>) -> Self {
        Self { sql, params, row: PhantomData }
    }

    /// Returns all rows, as [`Session::query_as`] does.
    ///
    /// # Errors
    /// As [`Session::query_as`].
    pub fn all(self, on: &Session) -> Call<Vec<R::Output>> {
        let work = on.read(&self.sql, self.params, Wanted::Decoded(decode_rows::<Read<R>>));
        on.call("query_as", work, |answer, _| {
            answer.decoded(Rows::read::<Read<R>>).map(outputs).map_err(|error| error.in_operation("query_as"))
        })
    }

    /// Returns the first row, as [`Session::query_one_as`] does.
    ///
    /// # Errors
    /// As [`Session::query_one_as`]: `RowNotFound` if there is no row.
    pub fn one(self, on: &Session) -> Call<R::Output> {
        on.call("query_one_as", on.read(&self.sql, self.params, Wanted::First), |answer, _| {
            let read = answer.needed_rows(OPTIONAL_ROW).and_then(|rows| rows.read_one::<Read<R>>());
            read.map(|row| row.0).map_err(|error| error.in_operation("query_one_as"))
        })
    }

    /// Returns the first row, or `None` if there is no row, as [`Session::query_optional_as`] does.
    ///
    /// # Errors
    /// As [`Session::query_optional_as`].
    pub fn optional(self, on: &Session) -> Call<Option<R::Output>> {
        on.call("query_optional_as", on.read(&self.sql, self.params, Wanted::First), |answer, _| {
            let read = answer.rows().and_then(|rows| rows.read_first::<Read<R>>());
            read.map(|row| row.map(|row| row.0)).map_err(|error| error.in_operation("query_optional_as"))
        })
    }

    /// Returns the rows one by one, as [`Session::stream_as`] does.
    pub fn stream(self, on: &Session) -> RowStream<R::Output> {
        RowStream::reading(on.batches(self.sql, self.params), Rows::find::<Read<R>>, |batch, row, _| {
            R::read(&Cells::of(&Row::of(batch, row), &[]))
        })
    }

    /// Returns all rows, and all of them again whenever they changed, as [`Database::live`] does.
    pub fn live(self, on: &Database) -> CheckedLive<R> {
        CheckedLive { live: on.live(self.sql, self.params), row: PhantomData }
    }
}

/// A live query of a checked statement.
#[must_use = "it does nothing unless it is polled"]
pub struct CheckedLive<R: CheckedRow> {
    live: Live,
    row: PhantomData<fn() -> R>,
}

impl<R: CheckedRow> CheckedLive<R> {
    /// The live query, for its pace.
    pub fn into_inner(self) -> Live {
        self.live
    }

    /// The next result, as [`Live::next_as`] yields it.
    ///
    /// # Errors
    /// As [`Live::next_as`].
    #[allow(clippy::should_implement_trait, reason = "this is the name that users of streams know")]
    pub async fn next(&mut self) -> Option<Result<Vec<R::Output>>> {
        self.live.next_as::<Read<R>>().await.map(|rows| rows.map(outputs))
    }
}

/// A statement that returns no rows, checked when the program was compiled, with its parameters.
#[must_use = "it does nothing unless it is run"]
pub struct CheckedExecute {
    sql: &'static str,
    params: Result<Params>,
}

impl CheckedExecute {
    #[doc(hidden)]
    pub fn __new(sql: &'static str, params: Result<Params>) -> Self {
        Self { sql, params }
    }

    /// Runs the statement, as [`Session::execute`] does.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn execute(self, on: &Session) -> Call<ExecuteResult> {
        on.execute(self.sql, self.params)
    }
}
