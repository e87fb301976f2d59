//! What a compiled statement may do, read from its instructions (pure).

pub mod analysis;
pub mod graph;
mod opcodes;
#[cfg(test)]
mod progress_tests;
#[cfg(test)]
mod shape_tests;
