//! Floor 1: the input and output of statements. Values, parameters, rows.

pub(crate) mod block;
pub(crate) mod columns;
pub(crate) mod decoded;
pub(crate) mod document;
pub(crate) mod executed;
pub(crate) mod into_params;
pub(crate) mod param_rows;
pub(crate) mod params;
pub(crate) mod row;
pub(crate) mod sql;
pub(crate) mod value;
