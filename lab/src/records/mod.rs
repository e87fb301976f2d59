//! The records of experiments.

pub mod aggregates;
pub mod record;
