//! The commands: each reads its arguments, and prints or writes what it found.

pub mod ab;
pub mod busy;
pub mod experiment;
pub mod list;
pub mod readme;
pub mod report;
mod rest;
pub mod run;
