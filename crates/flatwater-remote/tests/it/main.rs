//! The cluster client against its double, which runs as a process of its own.

mod cancelled;
mod double;
mod exactly_once;
mod faults;
mod groups;
mod levels;
mod migrations;
mod same_calls;
