//! Floor 2: sinks. How the rows of SQLite become what a caller gets.

pub(crate) mod rows;
