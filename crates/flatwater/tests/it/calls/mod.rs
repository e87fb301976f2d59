//! A call from its first poll to its end: what its caller sees, how it is woken, and what ends it early.

mod basics;
mod cancel;
mod deadlines;
mod edges;
mod ends;
mod foreign_code;
mod limits;
mod others_turns;
mod runtimes;
mod statement_events;
mod waits;
mod wakers;
mod woken;
