//! Systems without locks of a descriptor and without futexes: there is no file, and processes only poll.
//!
//! Owns: saying so, in the interface of `linux`.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{Counters, Word};

/// Cannot be made on this system.
#[derive(Debug)]
pub struct TurnFile(Infallible);

#[allow(missing_docs, clippy::missing_errors_doc, clippy::must_use_candidate)]
impl TurnFile {
    pub fn open(_: &Path, _: &Path, _: bool) -> io::Result<Option<Self>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn is_at(&self, _: &Path) -> bool {
        match self.0 {}
    }

    pub fn counters(&self) -> io::Result<Counters> {
        match self.0 {}
    }

    pub fn set(&self, _: Word, _: u32) -> io::Result<()> {
        match self.0 {}
    }

    pub fn lock(&self, _: u32) -> io::Result<bool> {
        match self.0 {}
    }

    pub fn unlock(&self, _: u32) {
        match self.0 {}
    }

    pub fn is_held(&self, _: u32, _: u32) -> io::Result<bool> {
        match self.0 {}
    }

    pub fn follow(&self) -> io::Result<()> {
        match self.0 {}
    }

    pub fn follow_no_more(&self) {
        match self.0 {}
    }

    pub fn has_followers(&self) -> io::Result<bool> {
        match self.0 {}
    }

    pub fn wait(&self, _: Word, _: u32, _: u32, _: Duration) -> io::Result<bool> {
        match self.0 {}
    }

    pub fn wake(&self, _: Word, _: u32) {
        match self.0 {}
    }

    pub fn remove_if_last(&self, _: &Path) {
        match self.0 {}
    }
}

/// Does nothing on this system.
pub fn precise_pauses() {}
