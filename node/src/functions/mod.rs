//! Functions and collations in JavaScript: SQLite calls them on threads of the databases, and a worker thread of Node answers, which
//! has loaded the module that defines them (`docs/design/node.md`).

pub(crate) mod called;
pub(crate) mod modules;
pub(crate) mod request;
pub(crate) mod serve;
pub(crate) mod serves;
pub(crate) mod threw;
pub(crate) mod worker;
