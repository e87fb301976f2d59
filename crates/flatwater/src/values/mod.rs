//! Floor 1: what goes in and comes out. Values, parameters, rows.

pub(crate) mod block;
pub(crate) mod executed;
pub(crate) mod into_params;
pub(crate) mod param_rows;
pub(crate) mod params;
pub(crate) mod row;
pub(crate) mod value;
