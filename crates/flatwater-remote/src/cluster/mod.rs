//! The nodes that are asked, and asking until it is known what became of a request.

pub(crate) mod ask;
pub(crate) mod nodes;
