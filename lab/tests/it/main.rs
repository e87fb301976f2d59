//! The tool as its users meet it: the program is run, on peers that measure nothing.

mod abs;
mod committed;
mod comparing;
mod pacing;
mod planted;
mod readme;
mod records;
mod running;
mod support;
