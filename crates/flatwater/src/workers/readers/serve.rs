//! One request on one reader: it is answered there, or handed over to the writer.
//!
//! Owns: opening the connection if there is none yet, what a panic costs, and whether a request is handed over. Runs on the
//! thread that borrowed the connection. Invariants: the connection is used again only if it is as it was; a request whose
//! caller left, or whose deadline passed, is not handed over. Leaves out: the pool, and what the request does (`reader`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use super::Shared;
use super::reader::{Performed, Reader};
use crate::connection::writable::{is_read_only, of_read};
use crate::error::{Applied, Error, Kind, Result};
use crate::thread::park::mark_closure;
use crate::workers::refusals::{opened_to_read, waits_for_itself};
use crate::workers::request::{Outbox, Request, TakesOver};

impl Shared {
    /// Another connection, to the same file as the ones before. Locks are waited for until the deadline at most.
    pub(super) fn open(&self, deadline: Option<Instant>) -> Result<Box<Reader>> {
        if let Some(watch) = &self.watch {
            watch.check_file()?;
        }
        let recall = self.watch.as_ref().map_or(0, |watch| watch.recalls.enter());
        let reader = Reader::open(&self.options, &self.requests, &self.recorder, recall, deadline)?;
        // With a writer it is the writer's connection that is watched.
        if let Some(watch) = self.watch.as_ref().filter(|_| self.options.read_only) {
            watch.opened(reader.index());
        }
        Ok(Box::new(reader))
    }

    /// Whether the connection is to be closed and not used again.
    pub(super) fn is_recalled(&self, reader: &Reader) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.recalls.number() != reader.recall)
    }

    /// A read that was interrupted because the database closes is told so.
    fn ended(&self, error: Error) -> Error {
        if error.kind() == Kind::Cancelled && self.lock().closed { Error::closed() } else { error }
    }

    /// Runs one request, and answers the connection if it may be used again. A panic, which only a fault of ours can
    /// be, costs the connection and breaks the promise to the caller.
    pub(super) fn serve(
        &self,
        reader: Option<Box<Reader>>,
        request: Request,
        outbox: &mut Outbox<'_>,
    ) -> Option<Box<Reader>> {
        if !request.ticket.start() {
            self.recorder.abandoned();
            // A closure of the user may panic where it is dropped.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(request)));
            // The right to open a connection goes back unused.
            return reader;
        }
        let had_active_writes = request.had_active_writes;
        catch_unwind(AssertUnwindSafe(|| {
            let mut reader = match reader.map_or_else(|| self.open(request.ticket.deadline), Ok) {
                Ok(reader) => reader,
                Err(error) => {
                    outbox.answer(request.work.kind(), &request.ticket, request.promise, Err(error));
                    return None;
                }
            };
            let Request { ticket, work, promise, .. } = request;
            let kind = work.kind();
            let (performed, usable) = mark_closure(|| reader.perform(&self.options, &self.catalogue, work, &ticket));
            let is_half_open = matches!(&performed, Performed::Answered(Err(error)) if is_read_only(error));
            match performed {
                Performed::Answered(answer) => {
                    let answer = if is_half_open { answer.map_err(of_read) } else { answer };
                    outbox.answer(kind, &ticket, promise, answer.map_err(|error| self.ended(error.timed(&ticket))));
                }
                Performed::Write(work, error) => {
                    let request = Request { had_active_writes, ..Request::new(ticket, work, promise) };
                    self.hand_over(request, error, outbox);
                }
            }
            let usable = usable && !is_half_open;
            if !usable {
                self.recorder.replaced_connection();
            }
            (usable && !self.is_recalled(&reader)).then_some(reader)
        }))
        .unwrap_or(None)
    }

    /// `error` is the reader's own, if it could not even prepare the text.
    fn hand_over(&self, request: Request, error: Option<Error>, outbox: &mut Outbox<'_>) {
        let kind = request.work.kind();
        let refused = match self.writer_for(&request, error) {
            Ok(writer) if request.ticket.hand_over() => return writer.take_over(request),
            Ok(_) => Error::timeout("the deadline of the call passed while it waited", Applied::No),
            Err(error) => error,
        };
        outbox.answer(kind, &request.ticket, request.promise, Err(refused));
    }

    /// The writer, unless the reader's error is final. It is if no write can change it any more: the table that it misses may
    /// be on its way.
    fn writer_for(&self, request: &Request, error: Option<Error>) -> Result<&dyn TakesOver> {
        let options = request.ticket.options;
        let writer = self.writer.as_deref().filter(|_| !options.read_only);
        let may_change = |writer: &&dyn TakesOver| error.is_none() || request.had_active_writes || writer.is_active();
        match (writer.filter(may_change), error) {
            (Some(_), _) if options.inside_body => Err(waits_for_itself()),
            (Some(writer), _) => Ok(writer),
            (None, Some(error)) => Err(error),
            (None, None) => Err(opened_to_read(&self.options.path)),
        }
    }
}
