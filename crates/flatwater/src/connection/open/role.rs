//! What a connection of the engine is for.
//!
//! Owns: the closed list of roles. Leaves out: what follows from a role (`open`, `settings`).

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The engine's first connection, which may create the file.
    Creator,
    Writer,
    /// A connection of a caller's own that may write. What it attaches may be created, and its own file not.
    Own,
    Reader,
    /// Only checkpoints; no statement of the user runs on it.
    Checkpointer,
}

impl Role {
    /// Returns true if writes of the user run on it.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Creator | Self::Writer | Self::Own)
    }
}
