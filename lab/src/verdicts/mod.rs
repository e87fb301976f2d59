//! What figures mean: verdicts, comparisons, and the forms in which they are shown.

pub mod chart;
pub mod compare;
pub mod summary;
pub mod table;
pub mod verdict;
