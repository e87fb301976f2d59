//! What a round found.
//!
//! Owns: the sentence, and what led to it. Leaves out: finding it (`acts`).

use serde::{Deserialize, Serialize};

/// A violation that a round found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// What is wrong, in one sentence.
    pub(crate) what: String,
    /// The shortest history that still shows it, or what is known about its cause.
    pub(crate) history: String,
}

impl Finding {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), history: String::new() }
    }

    pub(crate) fn with_history(self, history: impl Into<String>) -> Self {
        Self { history: history.into(), ..self }
    }
}

impl<E: std::error::Error> From<E> for Finding {
    /// Converts an error where no error is allowed.
    fn from(error: E) -> Self {
        Self::new(format!("unexpected error: {error}"))
    }
}
