//! The structure of the sources: what imports what, and how large files, folders and types may be.

mod floors;
mod kernel;
mod sizes;
mod type_sizes;
