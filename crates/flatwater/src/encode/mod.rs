//! Floor 2: sinks, which convert SQLite's rows into the caller's result type.

pub(crate) mod rows;
