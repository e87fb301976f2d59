//! What a compiled statement may do, read from its instructions (pure).

pub(crate) mod analysis;
#[cfg(test)]
mod gaps;
pub(crate) mod graph;
mod opcodes;
#[cfg(test)]
mod shapes;
