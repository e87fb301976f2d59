//! Floor 4: what runs the requests of a database.

pub(crate) mod embedded;
pub(crate) mod handle;
pub(crate) mod inline;
mod registry;
