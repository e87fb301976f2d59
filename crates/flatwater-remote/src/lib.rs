//! Flatwater's sessions on a database server.
//!
//! A [`Remote`] has the operations of a [`flatwater::Session`], to which it derefs, so a function that takes a `&Session` runs on
//! a file and on a cluster. What a server cannot promise is not there: interactive transactions, snapshots, closures, functions of
//! the program, blobs.
//!
//! ```no_run
//! use flatwater::{Result, Session};
//! use flatwater_remote::Remote;
//!
//! async fn balance(of: &Session, account: i64) -> Result<Option<i64>> {
//!     of.query_optional_value("SELECT cents FROM accounts WHERE id = ?", (account,)).await
//! }
//!
//! # async fn example() -> Result<()> {
//! let cluster = Remote::connect("rqlite://10.0.0.1:4001,10.0.0.2:4001,10.0.0.3:4001")?;
//! let cents = balance(&cluster, 1).await?;
//! # Ok(()) }
//! ```
//!
//! The server is an [rqlite](https://rqlite.io) cluster: Raft, one leader, every node with the whole database. A write is
//! acknowledged when a majority has it. It is applied exactly once, whatever became of the connections on which it was sent:
//! see [`Remote`].

#![forbid(unsafe_code)]

mod address;
mod clock;
mod http;
mod levels;
mod migrate;
mod options;
mod remote;
mod rqlite;
mod thread;

pub use options::{Level, RemoteOptions};
pub use remote::Remote;
