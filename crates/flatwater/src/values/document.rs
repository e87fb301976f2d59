//! A result as JSON, from its first row until its caller has it.
//!
//! Owns: its text. Runs on any thread. Invariant: the thread that drops a large document is not held by that. Leaves
//! out: writing it, which a sink does.

use std::ops::{Deref, DerefMut};

use super::block::LARGE;
use crate::thread::background::dispose;

/// A JSON document.
#[derive(Debug)]
pub(crate) struct Document {
    text: String,
    /// How many rows it has.
    pub(crate) rows: usize,
}

impl Document {
    /// Creates an empty document with capacity for so many bytes.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), rows: 0 }
    }

    /// Returns the text, which is the caller's to drop.
    pub(crate) fn into_text(mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

impl Deref for Document {
    type Target = String;

    fn deref(&self) -> &String {
        &self.text
    }
}

impl DerefMut for Document {
    fn deref_mut(&mut self) -> &mut String {
        &mut self.text
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        if self.text.capacity() > LARGE {
            dispose(std::mem::take(&mut self.text));
        }
    }
}
