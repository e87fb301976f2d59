//! What was measured: result files, the metrics in them, and their statistics.

pub mod floor;
pub mod lines;
pub mod machine;
pub mod metric;
pub mod result;
pub mod statistics;
