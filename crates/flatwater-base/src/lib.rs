//! The lowest floors of Flatwater above SQLite: what goes into a statement and comes out of it, errors, threads, time, and what may
//! run on a caller's thread.
//!
//! Not for programs: crate `flatwater` has all that is public of it, and may change the rest in any version. Nothing here knows a
//! database, a connection or a worker.

#![forbid(unsafe_code)]
// It is the engine's own, and no API.
#![allow(clippy::len_without_is_empty, clippy::new_without_default)]

pub mod busy_handler;
pub mod encode;
pub mod error;
pub mod growth_counter;
pub mod inline;
pub mod thread;
pub mod time;
pub mod values;

pub use error::Error;
pub use values::convert::{FromSql, ToSql};
pub use values::from_row::FromRow;
pub use values::params::Params;
