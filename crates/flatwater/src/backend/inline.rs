//! Calls on their caller's thread: whose connection a call is tried on, and what is noted of the try.
//!
//! Owns: the step from a call to a stay. Runs on the thread that polls the call, and waits for nothing. Leaves out: what
//! is short enough, which the workers know.

use std::time::Instant;

use super::embedded::{Engine, Server};
use crate::types::error::Result;
use crate::types::inline::{Inline, Stay};
use crate::waiting::fairness;
use crate::waiting::park::mark_closure;
use crate::workers::readers::Tried;
use crate::workers::request::{Answer, Work};
use crate::workers::session::Inside;
use crate::workers::writer::Writer;

impl Engine {
    /// Runs the work on this thread, at once and without waiting for anything, if it is known to be short. `None`: it was
    /// not run, or nothing came of it.
    pub(super) fn stay(&self, server: Server, inside: Option<&Inside>, work: &Work) -> Option<Result<Answer>> {
        let Inline::Auto(limits) = &self.options.inline else { return None };
        // Where many write even asking costs: each goes to the queue at once.
        if inside.is_none() && server == Server::Writer && self.writer.as_ref().is_some_and(Writer::prefers_the_queue) {
            self.recorder.inline.queued();
            return None;
        }
        let began = Instant::now();
        // Code of others that runs meanwhile, such as what takes our events, must not wait for this connection.
        let stay = mark_closure(|| match (server, &self.writer, &self.readers, work) {
            _ if let Some(Inside { session, savepoints }) = inside => session.stay(work, savepoints, limits, began),
            (Server::Readers, _, Some(readers), Work::Query { text, params, limit }) => {
                readers.stay(Tried { text, params, rows: *limit, limits, began }).map(|rows| Ok(Answer::Rows(rows)))
            }
            (Server::Writer, Some(writer), ..) => writer.stay(work, limits, began),
            _ => Stay::Unfit,
        });
        let tallied = server == Server::Readers;
        self.recorder.tried(work.kind(), !work.only_reads(), tallied, &stay);
        fairness::spend(stay.took());
        match stay {
            Stay::Done(answer, _) => {
                work.text().inspect(|text| text.stayed());
                Some(answer.map_err(|error| error.in_operation(work.kind().name())))
            }
            Stay::Moved(..) => {
                work.text().inspect(|text| text.moved());
                None
            }
            Stay::Unfit => None,
        }
    }

    /// A call suspends once so that other tasks get their turn.
    pub(crate) fn yielded(&self) {
        self.recorder.inline.yielded();
    }
}
