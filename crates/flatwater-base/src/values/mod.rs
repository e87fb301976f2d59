//! The input and output of statements: values, parameters, rows.

pub mod block;
#[cfg(any(feature = "chrono", feature = "jiff", feature = "time"))]
mod calendar;
pub mod column;
pub mod convert;
pub mod difference;
mod foreign_types;
pub mod from_row;
pub mod into_params;
pub mod outcome;
pub mod param_rows;
pub mod params;
pub mod row;
#[cfg(feature = "serde")]
pub mod serde;
#[cfg(feature = "serde")]
mod serde_error;

pub use column::{Column, ColumnIndex};
pub use convert::Rusqlite;
pub use convert::{FromSql, ToSql};
#[cfg(feature = "serde_json")]
pub use foreign_types::Json;
pub use from_row::FromRow;
pub use into_params::IntoParams;
pub use outcome::{ExecuteResult, RunResult};
pub use param_rows::{BatchStatements, ParamRows};
pub use params::Params;
pub use row::RowIter;
pub use row::{Row, Rows};
#[cfg(feature = "serde")]
pub use serde::Serde;
