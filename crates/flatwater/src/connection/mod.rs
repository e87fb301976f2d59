//! One connection of the engine, over floor 0's.

pub(crate) mod exclusive;
pub(crate) mod learn;
pub(crate) mod open;
pub(crate) mod run;
