//! The kernel of Flatwater alone: its sources, compiled without those of the features that hang on it.
//!
//! The kernel is the queue, the slot, readers, kept connections, short runs, checkpoints and the connection, with what they stand on. Where it
//! names a feature, there is a file in `absent` instead, which is all that the kernel needs of the feature: types that cannot be made, so that the
//! compiler shows that nothing of it is reached, and answers of "there is none". The unit tests of the kernel run here once more, and
//! `core` uses it without an engine.

#[cfg(test)]
mod core;

#[path = "../../../src/connection/mod.rs"]
mod connection;
#[path = "../../../src/events/mod.rs"]
mod events;
#[path = "../../../src/file/mod.rs"]
mod file;
#[path = "../../../src/lease.rs"]
mod lease;
#[path = "absent/migrations.rs"]
mod migrations;
#[path = "../../../src/options/mod.rs"]
mod options;
#[path = "../../../src/queue/mod.rs"]
mod queue;
#[path = "../../../src/stats/mod.rs"]
mod stats;
#[path = "absent/turnstile.rs"]
mod turnstile;
#[path = "../../../src/workers/mod.rs"]
mod workers;
