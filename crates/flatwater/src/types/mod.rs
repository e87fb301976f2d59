//! Floor 1: plain data. Nothing here waits, opens or runs.

pub(crate) mod block;
mod choices;
mod code;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod executed;
pub(crate) mod inline;
pub(crate) mod into_params;
pub(crate) mod kind;
pub(crate) mod options;
pub(crate) mod param_rows;
pub(crate) mod params;
pub(crate) mod request;
pub(crate) mod resolve;
pub(crate) mod row;
pub(crate) mod system;
pub(crate) mod time;
pub(crate) mod uri;
pub(crate) mod value;
