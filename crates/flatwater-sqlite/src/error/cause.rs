//! The error of the user's code that is the cause of one of SQLite's.
//!
//! Owns: keeping it beside an error that can be compared. Usable on any thread. Leaves out: where it is noted (`hooks::failure`).

use std::fmt;
use std::sync::Arc;

/// An error of the user's code.
pub type Shared = Arc<dyn std::error::Error + Send + Sync>;

/// The cause of an error, if it is code of the user. It is not compared, and its text may have values in it, so it is not shown.
#[derive(Clone, Default)]
pub struct Cause(pub Option<Shared>);

impl PartialEq for Cause {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Cause {}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cause").finish_non_exhaustive()
    }
}
