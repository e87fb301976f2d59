//! Sinks, which convert SQLite's rows into the caller's result type.

#[cfg(feature = "serde_json")]
mod embedded;
pub(crate) mod json;
pub(crate) mod rows;

/// How large a result may be in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Its cells with their texts and blobs, or its JSON.
    pub(crate) bytes: usize,
    /// The statement writes, and so runs to its end: what it returns is dropped.
    pub(crate) runs_to_end: bool,
}
