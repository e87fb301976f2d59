//! The rest of a result that a server hands over in parts. Part of the interface that `bindings` is, and with it not for programs.
//!
//! Owns: a caller's right to the rest. Runs on callers' threads, and on those of the crate that reaches the server. Invariant: when nobody
//! wants the rest any more, the crate is told once. Leaves out: fetching it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::server::Asked;
use crate::error::{Error, Result, TimeoutEffect};
use crate::queue::reply::Teller;
use crate::values::row::Rows;
use crate::workers::Answer;
use crate::workers::kept::connection::{CursorGuard, KeptConnection};
use crate::workers::request::Request;
use crate::workers::work::{Wanted, Work};

/// What comes for the rest of a result.
pub enum Rest {
    /// The next part is wanted.
    Next(Asked),
    /// Nobody wants the rest.
    Ended,
}

/// Takes what comes, and returns false if the rest is not there any more.
type Tell = Box<dyn Fn(Rest) -> bool + Send + Sync>;

struct Cursor {
    tell: Tell,
    has_ended: AtomicBool,
}

impl KeptConnection for Cursor {
    fn send(&self, request: Request) -> Result<()> {
        if (self.tell)(Rest::Next(Asked { request, changes: None, kept: None })) {
            return Ok(());
        }
        let message = "the rest of the result was given up, because none of it was fetched for too long";
        Err(Error::timeout(message, TimeoutEffect::No))
    }

    fn end_cursor(&self, _: u64) {
        self.end();
    }

    fn end(&self) {
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            (self.tell)(Rest::Ended);
        }
    }

    fn touch(&self) {}
}

impl Asked {
    /// Returns true for a query whose rows are wanted in parts.
    #[must_use]
    pub fn wants_parts(&self) -> bool {
        matches!(self.request.work, Work::Query { wanted: Wanted::Batches, .. })
    }

    /// Answers it with the first part of its rows, after which there are more.
    pub fn answer_first(self, rows: Rows, tell: impl Fn(Rest) -> bool + Send + Sync + 'static) {
        let cursor = Arc::new(Cursor { tell: Box::new(tell), has_ended: AtomicBool::new(false) });
        let first = Answer::Begun(Box::new((rows, CursorGuard::new(cursor, 0))));
        self.request.reply_to.fill(Ok(first), &mut Teller::default());
    }

    /// Answers a further part, and whether there are more.
    pub fn answer_next(self, part: Result<(Rows, bool)>) {
        let answer = part.map(|part| Answer::Fetched(Box::new(part)));
        self.request.reply_to.fill(answer, &mut Teller::default());
    }
}
