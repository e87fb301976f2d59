//! Measuring: peers, their processes, and the sources that they are built from.

pub mod layouts;
pub mod pace;
pub mod peer;
pub mod places;
pub mod plan;
pub mod process;
pub mod repository;
pub mod session;
