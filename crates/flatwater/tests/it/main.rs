//! The integration tests of the engine: one program, a folder for each subject.

mod calls;
mod checkpoints;
mod connections;
#[cfg(feature = "sqlcipher")]
mod encryption;
mod errors;
mod files;
mod functions;
mod inline;
mod lifetimes;
mod live;
mod place;
mod processes;
mod reads;
mod sql;
mod structure;
mod support;
mod transactions;
mod values;
mod writes;
