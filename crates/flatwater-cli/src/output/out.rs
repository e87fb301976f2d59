//! The output: a buffer that the formats write into, and where it goes.
//!
//! Owns: when the buffer is written. Invariant: it is written in large pieces, and at the end of each result, so that a reader sees
//! all of it. Leaves out: its contents.

use std::io::{self, Write};

use crate::failure::{Failure, Outcome};

/// The buffer is written when it is this long.
const LENGTH: usize = 256 << 10;

pub(crate) struct Out {
    pub(crate) buffer: Vec<u8>,
    to: Box<dyn Write>,
}

impl Out {
    pub(crate) fn new(to: impl Write + 'static) -> Self {
        Self { buffer: Vec::with_capacity(LENGTH + LENGTH / 4), to: Box::new(to) }
    }

    pub(crate) fn stdout() -> Self {
        Self::new(io::stdout())
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    /// Writes the buffer if it is long.
    pub(crate) fn spill(&mut self) -> Outcome {
        if self.buffer.len() < LENGTH { Ok(()) } else { self.write() }
    }

    /// Writes what is in the buffer, and has it reach its reader.
    pub(crate) fn flush(&mut self) -> Outcome {
        self.write()?;
        self.to.flush().map_err(Failure::system("writing the output"))
    }

    fn write(&mut self) -> Outcome {
        let written = self.to.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(Failure::system("writing the output"))
    }
}
