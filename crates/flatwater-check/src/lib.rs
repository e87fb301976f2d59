//! What a text of SQL returns and takes, found from the migrations of a program before it runs: for the macros of crate `flatwater`
//! and the command of the same name. No API: it may change in any version.
//!
//! - [`Project`]: the databases of a program, as its `flatwater.toml` or `Cargo.toml` names them
//! - [`Schema`]: one of them, built in memory from its migrations; it checks texts
//! - [`Checked`]: the columns and parameters of a text; [`Fault`]: why it cannot run

#![forbid(unsafe_code)]

mod catalogue;
mod declared;
mod fault;
mod infer;
mod kind;
mod label;
mod migrations;
mod schema;
mod table_column;

pub use declared::{Attached, Database, Function, Project};
pub use fault::Fault;
pub use kind::Kind;
pub use label::{Label, Nullability};
pub use schema::{Checked, Column, Parameter, Schema, Table, TableField};
