//! The rounds of the writer's thread: which requests are taken, alone or as a group, and how they run.

mod alone;
mod choice;
mod group;
mod round;
mod taken;
