//! Functions and collations in JavaScript: SQLite calls them on threads of the databases, and a thread of Node answers: a worker that
//! has loaded the module which defines them, or the program's own, on its loop (`docs/design/node.md`).

pub(crate) mod called;
pub(crate) mod definition;
pub(crate) mod modules;
pub(crate) mod request;
pub(crate) mod serve;
pub(crate) mod serves;
pub(crate) mod threw;
pub(crate) mod worker;
