//! The number of processors that the process may use.
//!
//! Owns: this number. Any thread may ask; the first one blocks for a few reads of small files of the system. Leaves out:
//! changes of it while the process runs.

use std::sync::OnceLock;
use std::thread::available_parallelism;

/// Returns the number of processors; `None` if the system does not tell. It is counted once, because on Linux this reads
/// the files of the process's control group.
pub(crate) fn cores() -> Option<usize> {
    static CORES: OnceLock<Option<usize>> = OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().ok().map(std::num::NonZero::get))
}
