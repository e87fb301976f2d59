//! What a text of SQL is, what the program that SQLite makes of it does, and what follows from it: its class, what it may do, whether it
//! may run in a group or on a caller's thread, and what is remembered of it.
//!
//! Not for programs: it may change in any version. Nothing here runs a statement or knows a database.

#![forbid(unsafe_code)]
// It is the engine's own, and no API.
#![allow(clippy::len_without_is_empty, clippy::new_without_default)]

pub mod bytecode;
pub mod catalogue;
pub mod change_functions;
pub mod class;
pub mod dependencies;
pub mod grouping;
pub mod lru;
pub mod policy;
pub mod pragma;
pub mod stable_form;
pub mod statement_info;
pub mod text;
pub mod tokens;
