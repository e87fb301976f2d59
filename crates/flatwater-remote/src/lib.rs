//! Flatwater's sessions on a database server.
//!
//! A [`Remote`] has the operations of a [`flatwater::Session`], to which it derefs, so a function that takes a `&Session` runs on
//! a file and on a server. What a server cannot promise is not there: snapshots, closures, functions of the program, blobs, and, on a
//! cluster, interactive transactions.
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
//! The server is an [rqlite](https://rqlite.io) cluster: Raft, one leader, every node with the whole database; a write is
//! acknowledged when a majority has it. Or it is a [libSQL server](https://github.com/tursodatabase/libsql): one primary, and replicas to
//! read from; [`Libsql`] has interactive transactions on it. On both a write is applied exactly once, whatever became of the connections
//! on which it was sent: see [`Remote`].

#![forbid(unsafe_code)]

mod address;
mod check;
mod clock;
mod cluster;
mod dialect;
mod each_node;
mod forms;
mod http;
mod levels;
mod libsql;
mod libsql_database;
mod look;
mod messages;
mod migrate;
mod options;
mod pages;
mod reads;
mod remote;
mod request;
mod results;
mod rqlite;
mod seen;
mod shared;
mod thread;
mod tls;
mod transaction;
mod writes;

pub use address::is_address;
pub use libsql_database::Libsql;
pub use options::{Level, RemoteOptions};
pub use remote::Remote;
