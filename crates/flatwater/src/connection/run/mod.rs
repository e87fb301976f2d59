//! Preparing statements and running them, and what is said of those that fail.

pub(crate) mod cursors;
pub(crate) mod execute;
pub(crate) mod failed_writes;
pub(crate) mod hidden_values;
pub(crate) mod hints;
pub(crate) mod in_parts;
pub(crate) mod inline_run;
pub(crate) mod prepare;
pub(crate) mod recording;
pub(crate) mod statement_cache;
