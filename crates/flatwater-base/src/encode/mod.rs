//! Sinks, which convert SQLite's rows into the caller's result type.

#[cfg(feature = "serde_json")]
mod embedded;
pub mod json;
pub mod json_options;
pub mod rows;

/// How large a result may be in memory.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Its cells with their texts and blobs, or its JSON.
    pub bytes: usize,
    /// The statement writes, and so runs to its end: what it returns is dropped.
    pub runs_to_end: bool,
}
