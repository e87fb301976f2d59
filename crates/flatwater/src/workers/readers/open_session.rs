//! The caller's side of a read session.
//!
//! Owns: how a snapshot or a cursor is used by its caller: by messages, or at once (`inline_snapshot`). Runs on callers' threads.
//! Leaves out: what is done with the messages (`read_session`, `serve_session`).

use std::sync::Arc;

use super::inline_read::InlineQuery;
use super::read_session::{EndCursor, Message, Purpose, ReadSession};
use crate::error::Result;
use crate::inline::outcome::{InlineRun, NotTried};
use crate::inline::permit::Permit;
use crate::queue::ticket::CallOptions;
use crate::workers::kept::KeptConnection;
use crate::workers::kept::inbox::End;
use crate::workers::request::Request;
use crate::workers::tried::Tried;
use crate::workers::work::Work;

pub(super) struct OpenSession(pub(super) Arc<ReadSession>);

impl KeptConnection for OpenSession {
    fn send(&self, request: Request) -> Result<()> {
        self.0.post(Message::Request(Box::new(request), ()))
    }

    fn end_cursor(&self, number: u64) {
        // A session that has ended has no cursors.
        let _ = self.0.post(Message::Aside(EndCursor(number)));
    }

    fn end(&self) {
        if self.0.purpose == Purpose::Cursor || !self.0.end_inline() {
            self.0.finish(End::Finished);
        }
    }

    fn runs_inline(&self) -> bool {
        self.0.purpose == Purpose::Snapshot
    }

    fn run_inline(&self, work: &Work, permit: &Permit<'_>, _: CallOptions) -> Tried {
        let Work::Query { text, params, .. } = work else { return Tried::Ran(InlineRun::Ineligible(NotTried::Other)) };
        let (output, cookie) = (work.output(), None);
        let query = InlineQuery { text, params, output, permit, cookie, calls_timed: false };
        Tried::Ran(self.0.run_inline(query))
    }

    fn touch(&self) {
        self.0.touch();
    }
}
