//! Live queries.

mod cancel;
mod changes;
mod changes_random;
mod edges;
mod groups;
mod queries;
mod random;
mod slow;
