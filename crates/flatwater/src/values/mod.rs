//! The input and output of statements: values, parameters, rows.

pub(crate) mod batch_statements;
pub(crate) mod block;
#[cfg(any(feature = "chrono", feature = "time"))]
mod calendar;
#[cfg(feature = "chrono")]
mod chrono;
pub(crate) mod column;
pub(crate) mod convert;
pub(crate) mod decoded;
pub(crate) mod difference;
pub(crate) mod document;
pub(crate) mod executed;
pub(crate) mod from_row;
pub(crate) mod into_params;
pub(crate) mod mismatch;
pub(crate) mod param_rows;
pub(crate) mod params;
mod read;
pub(crate) mod row;
pub(crate) mod row_iter;
#[cfg(feature = "serde")]
pub(crate) mod serde;
#[cfg(feature = "serde")]
mod serde_error;
pub(crate) mod sql;
#[cfg(feature = "serde_json")]
pub(crate) mod stored_json;
#[cfg(feature = "time")]
mod time;
#[cfg(feature = "uuid")]
mod uuid;

pub use column::{Column, ColumnIndex};
pub use convert::Rusqlite;
pub use executed::{BatchResult, ExecuteResult};
pub use into_params::IntoParams;
pub use row_iter::RowIter;
#[cfg(feature = "serde")]
pub use serde::Serde;
#[cfg(feature = "serde_json")]
pub use stored_json::Json;
