//! The input and output of statements: values, parameters, rows.

pub(crate) mod block;
#[cfg(any(feature = "chrono", feature = "time"))]
mod calendar;
pub(crate) mod column;
pub(crate) mod convert;
pub(crate) mod difference;
mod foreign_types;
pub(crate) mod from_row;
pub(crate) mod into_params;
pub(crate) mod outcome;
pub(crate) mod param_rows;
pub(crate) mod params;
pub(crate) mod row;
#[cfg(feature = "serde")]
pub(crate) mod serde;
#[cfg(feature = "serde")]
mod serde_error;
pub(crate) mod sql;

pub use column::{Column, ColumnIndex};
pub(crate) use convert::FromSql;
pub use convert::Rusqlite;
#[cfg(feature = "serde_json")]
pub use foreign_types::Json;
pub(crate) use from_row::FromRow;
pub use into_params::IntoParams;
pub use outcome::{BatchResult, ExecuteResult};
pub(crate) use param_rows::{BatchStatements, ParamRows};
pub(crate) use params::Params;
pub use row::RowIter;
pub(crate) use row::{Row, Rows};
#[cfg(feature = "serde")]
pub use serde::Serde;
