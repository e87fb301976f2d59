//! The client against its double, and against a libSQL server, which run as processes of their own.

mod cancelled;
mod databases;
mod double;
mod exactly_once;
mod faults;
mod groups;
mod levels;
mod libsql;
mod live;
mod migrations;
mod pages;
mod rqlited;
mod same_calls;
mod sqld;
mod tls;
mod transactions;
