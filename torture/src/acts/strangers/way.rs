//! The ways in which a damaged file is opened: Flatwater's options, and the equivalent for plain SQLite.

use std::path::Path;
use std::time::Duration;

use flatwater::Options;
use flatwater::bindings::Internals as _;
use flatwater::options::{Checkpoint, Durability, Inline, Journal};
use rand::RngExt;
use rand::rngs::StdRng;

/// The wait for locks; no other process has the file open.
const LOCK_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Default,
    /// No inline runs and no leases.
    Plain,
    /// Keeps the journal mode.
    Kept,
    ReadOnly,
    /// Each write runs alone and is synced, and another program checkpoints the WAL.
    Full,
    /// Reads from a memory mapping.
    Mapped,
    /// Reads without locks, and ignores the files beside the database.
    Immutable,
    /// Reads it as a file that is not trusted.
    Untrusted,
}

const ALL: &[Way] =
    &[Way::Default, Way::Plain, Way::Kept, Way::ReadOnly, Way::Full, Way::Mapped, Way::Immutable, Way::Untrusted];
const MAPPED_BYTES: usize = 32 << 20;

impl Way {
    pub(super) fn any(rng: &mut StdRng) -> Self {
        ALL[rng.random_range(0..ALL.len())]
    }

    pub(super) fn options(self, path: &Path) -> Options {
        // What is compared has no statistics.
        let several = Options::new(path).busy_timeout(LOCK_WAIT).create(false).optimize_every(None);
        let options = several.clone().readers(1);
        match self {
            Self::Default => several,
            Self::Plain => options.tuning(|t| t.inline(Inline::Never).leases(false).no_group()),
            Self::Kept => options.journal(Journal::Keep),
            Self::ReadOnly => options.read_only(true),
            Self::Full => {
                options.durability(Durability::Full).checkpoint(Checkpoint::External).tuning(|t| t.no_group())
            }
            Self::Mapped => options.tuning(|t| t.mmap_bytes(MAPPED_BYTES)),
            Self::Immutable => options.tuning(|t| t.assume_immutable(true)),
            Self::Untrusted => options.tuning(|t| t.untrusted()),
        }
    }

    pub(super) fn only_reads(self) -> bool {
        matches!(self, Self::ReadOnly | Self::Immutable | Self::Untrusted)
    }

    pub(super) fn switches_to_wal(self) -> bool {
        !self.only_reads() && self != Self::Kept
    }

    pub(super) fn mapped_bytes(self) -> usize {
        if self == Self::Mapped { MAPPED_BYTES } else { 0 }
    }
}
