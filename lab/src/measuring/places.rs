//! Where a measurement finds and leaves things.
//!
//! Owns: these paths. Leaves out: making the folders (`run`, `ab`).

use std::path::Path;

use crate::measuring::repository::Repository;

/// Where a measurement finds and leaves things.
pub struct Places<'a> {
    /// The working tree.
    pub repository: &'a Repository,
    /// Where the trials' folders are created.
    pub trials: &'a Path,
    /// Where the floor is described, if it is no side itself.
    pub peers: &'a Path,
    /// Where it is built.
    pub target: &'a Path,
}
