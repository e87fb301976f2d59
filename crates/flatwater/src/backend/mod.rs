//! Floor 4: what runs the requests of a database.

pub(crate) mod embedded;
pub(crate) mod handle;
mod inline;
mod registry;
