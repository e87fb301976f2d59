//! Moves a database from a file to a server, from a server to a file, or from one server to another, while programs write to it.
//!
//! ```no_run
//! use flatwater::Database;
//! use flatwater_move::Move;
//! use flatwater_remote::{Level, Remote};
//!
//! # async fn example() -> flatwater::Result<()> {
//! let (file, cluster) = (Database::open("app.db").await?, Remote::connect("rqlite://10.0.0.1:4001")?.with_level(Level::Linearizable));
//! let moving = Move::new(&file, &cluster);
//! moving.copy().await?;
//! // From here on the file refuses writes.
//! moving.switch(cluster.name()).await?;
//! # Ok(()) }
//! ```
//!
//! The design is in `docs/design/moving.md`.

#![forbid(unsafe_code)]

mod apply;
mod bound;
mod catch_up;
mod compare;
mod log;
mod moving;
mod rows;
mod schema;
mod sides;
mod table;

pub use moving::{Copied, Move, Switched};
