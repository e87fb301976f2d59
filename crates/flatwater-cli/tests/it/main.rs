//! The command, as a process: each file has the tests of some subcommands.

mod care;
mod check_sql;
mod files;
mod guide;
mod live;
mod migrations;
mod queries;
mod shell;
mod support;
mod terminal;
mod top;
mod types;
