//! Where a call stands, from before its first poll until it is answered.
//!
//! Owns: the stages, and what a call keeps of its request. Belongs to the call's future. Leaves out: the steps from one stage
//! to the next (`call`).

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Server;
use crate::error::{Error, Result};
use crate::queue::bounded::Place;
use crate::queue::reply::Reply;
use crate::queue::ticket::Ticket;
use crate::time::timer::Alarm;
use crate::workers::request::{Answer, Work};

/// What a call keeps of its request. In a box, so that a call that is answered at once is small.
pub(crate) struct Asked {
    pub(crate) ticket: Arc<Ticket>,
    /// Goes off at the deadline.
    pub(crate) alarm: Option<Alarm>,
    /// A write was on its way when the call began.
    pub(crate) had_active_writes: bool,
}

/// A call with less time than this is not tried on its caller's thread.
pub(crate) const SHORTEST: Duration = Duration::from_millis(1);

/// Where a call stands.
pub(crate) enum Stage {
    Refused(Error),
    New(Work),
    /// Its request stands in the server's line, or is in, or runs.
    Waiting {
        server: Server,
        place: Place,
        reply: Reply<Result<Answer>>,
    },
    /// It was answered at once, and tells so after the others' turn.
    Held(Result<Answer>),
    Done,
}

/// Work that panicked is not tried again.
pub(crate) struct DoneAfterPanic<'a>(pub(crate) &'a mut Stage);

impl Drop for DoneAfterPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0 = Stage::Done;
        }
    }
}

impl Stage {
    /// It failed, and the writer's thread finds out whether it is committed. There is no line to leave, and its deadline is
    /// the writer's to keep.
    pub(crate) fn unsettled(reply: Reply<Result<Answer>>) -> Self {
        Self::Waiting { server: Server::Writer, place: None, reply }
    }
}
