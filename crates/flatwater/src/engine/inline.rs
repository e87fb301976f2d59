//! Calls on their caller's thread: whose connection a call is tried on, and what is noted of the try.
//!
//! Owns: the step from a call to a stay. Runs on the thread that polls the call, and waits for nothing. Leaves out: what
//! is short enough, which the workers know.

use std::time::Instant;

use crate::engine::{Engine, Server};
use crate::error::Result;
use crate::inline::budget;
use crate::inline::outcome::{Fallback, InlineRun};
use crate::options::inline::Inline;
use crate::queue::reply::Reply;
use crate::queue::ticket::CallOptions;
use crate::thread::park::mark_closure;
use crate::workers::readers;
use crate::workers::request::{Answer, Work};
use crate::workers::session::Inside;
use crate::workers::writer::{Tried, Writer};

/// What came of a call that was tried on its caller's thread.
pub(crate) enum Stayed {
    Answered(Result<Answer>),
    /// It failed, and the writer's thread finds out whether it is committed.
    Unsettled(Reply<Result<Answer>>),
}

impl Engine {
    /// Runs the work on this thread, at once and without waiting for anything, if it is known to be short. `None`: it was
    /// not run, or nothing came of it.
    pub(crate) fn stay(
        &self,
        server: Server,
        inside: Option<&Inside>,
        work: &Work,
        options: CallOptions,
    ) -> Option<Stayed> {
        let Inline::Auto(limits) = &self.options.inline else { return None };
        // Where many write even asking costs: each goes to the queue at once.
        if inside.is_none() && server == Server::Writer && self.writer.as_ref().is_some_and(Writer::prefers_the_queue) {
            self.recorder.inline.queued();
            return None;
        }
        let began = Instant::now();
        let mut unsettled = None;
        // Code of others that runs meanwhile, such as what takes our events, must not wait for this connection.
        let stay = mark_closure(|| match (server, &self.writer, &self.readers, work) {
            _ if let Some(Inside { session, savepoints }) = inside => session.stay(work, savepoints, limits, began),
            (Server::Readers, _, Some(readers), Work::Query { text, params, limit }) => readers
                .stay(readers::Tried { text, params, rows: *limit, limits, began })
                .map(|rows| Ok(Answer::Rows(rows))),
            (Server::Writer, Some(writer), ..) => match writer.stay(work, limits, options, began) {
                Tried::Stay(stay) => stay,
                Tried::Unsettled(reply, took) => {
                    unsettled = Some(reply);
                    InlineRun::FellBack(Fallback::Other, took)
                }
            },
            _ => InlineRun::Ineligible,
        });
        let tallied = server == Server::Readers;
        self.recorder.tried(work.kind(), !work.only_reads(), tallied, &stay);
        budget::spend(stay.took());
        match stay {
            InlineRun::Done(answer, _) => {
                work.text().inspect(|text| text.stayed());
                Some(Stayed::Answered(answer.map_err(|error| error.in_operation(work.kind().name()))))
            }
            InlineRun::FellBack(why, _) => {
                work.text().filter(|_| why.blames_the_text()).inspect(|text| text.moved());
                unsettled.map(Stayed::Unsettled)
            }
            InlineRun::Ineligible => None,
        }
    }

    /// A call suspends once so that other tasks get their turn.
    pub(crate) fn yielded(&self) {
        self.recorder.inline.yielded();
    }
}
