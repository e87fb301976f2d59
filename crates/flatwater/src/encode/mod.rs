//! Sinks, which convert SQLite's rows into the caller's result type.

#[cfg(feature = "serde_json")]
mod embedded;
mod escape;
pub(crate) mod json;
pub(crate) mod rows;
