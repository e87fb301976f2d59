//! Serving one request on one reader: the reader answers it, or hands it over to the writer.
//!
//! Owns: opening the connection if there is none yet, handling a panic, and deciding whether a request is handed over.
//! Runs on the thread that borrowed the connection. Invariants: the connection is used again only if it is as it was
//! before; a request is not handed over if its caller gave it up or its deadline passed. Leaves out: the pool, and what
//! the request does (`perform_read`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::Interrupt;

use super::ReadersShared;
use super::perform_read::perform;
use super::read_session::{Purpose, ReadSession};
use super::reader::{Performed, Reader};
use super::running_reads::{Running, look};
use super::serve_session::OpenSession;
use crate::connection::open::access::{is_read_only, of_read};
use crate::events::statement_event::ExecutedOn;
use crate::queue::ticket::{CallOptions, Ticket, left_request};
use crate::workers::Answer;
use crate::workers::interfaces::TakesOver;
use crate::workers::kept::{CursorGuard, SnapshotGuard};
use crate::workers::outbox::Outbox;
use crate::workers::request::Request;
use crate::workers::shared_errors::{opened_to_read, too_late, waits_for_itself};
use flatwater_base::error::{Error, ErrorKind, Result};
use flatwater_base::thread::current::{block_on, mark_closure};
use flatwater_base::time::later;
use flatwater_base::values::row::Rows;
use flatwater_sql::statement_info::StatementInfo;

/// How often a reader that waits for a parked database looks whether opening it failed.
const UNPARK: Duration = Duration::from_millis(2);

/// What became of the connection after a request.
pub(super) enum Served {
    /// `None`: it was closed or never opened.
    Returned(Option<Box<Reader>>),
    /// A read session has it.
    Kept,
}

impl ReadersShared {
    /// Opens another connection, to the same file as the ones before. Waits no longer than the caller of `ticket`.
    /// Returns `None` if the database is parked, so that the writer must open its connection first.
    pub(super) fn open(&self, ticket: &Arc<Ticket>) -> Result<Option<Box<Reader>>> {
        if let Some(watch) = &self.context.watch {
            watch.check_file()?;
        }
        let drain = match &self.context.watch {
            Some(watch) => watch.drains.enter(|| ticket.should_stop()).ok_or_else(|| given_up(ticket))?,
            None => 0,
        };
        if self.context.watch.as_ref().is_some_and(|watch| watch.parked.is_set()) {
            return Ok(None);
        }
        let reader = Reader::open(&self.context, &self.requests, drain, ticket)?;
        // If there is a writer, the watch uses the writer's connection.
        if let Some(watch) = self.context.watch.as_ref().filter(|_| self.context.options.read_only) {
            watch.opened(reader.index());
        }
        Ok(Some(Box::new(reader)))
    }

    /// Opens another connection. If the database is parked, the writer opens its connection first.
    fn open_or_unpark(&self, ticket: &Arc<Ticket>) -> Result<Box<Reader>> {
        loop {
            if let Some(reader) = self.open(ticket)? {
                return Ok(reader);
            }
            // This connection counts already, so the database is not parked again meanwhile.
            self.unpark(ticket)?;
        }
    }

    /// Waits until the database is not parked any more. A write or a transaction may open the writer's connection first,
    /// and last long, so the answer of the writer is not waited for.
    fn unpark(&self, ticket: &Ticket) -> Result<()> {
        let (Some(watch), Some(writer)) = (&self.context.watch, &self.writer) else { return Err(Error::closed()) };
        let timeout = ticket.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let asks = Arc::new(Ticket::new(CallOptions::within(timeout), Instant::now()));
        let opened = writer.unpark(asks.clone())?;
        while watch.parked.is_set() {
            if opened.is_answered() {
                return block_on(opened).unwrap_or_else(|| Err(Error::closed())).map(drop);
            }
            if ticket.should_stop() {
                asks.leave();
                return Err(given_up(ticket));
            }
            watch.parked.wait_for_end(UNPARK);
        }
        Ok(())
    }

    /// Returns true if the connection must be closed and not used again.
    pub(super) fn is_drained(&self, reader: &Reader) -> bool {
        self.context.watch.as_ref().is_some_and(|watch| watch.drains.number() != reader.drain)
    }

    /// Returns `Error::closed` instead of the error of a read that was interrupted because the database closes.
    fn ended(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::Cancelled {
            return error;
        }
        let state = self.lock();
        if state.closed || state.ended { Error::closed() } else { error }
    }

    /// Runs one request, and returns the connection if it can be used again. A panic here is a bug in Flatwater: the
    /// connection is closed, and the promise is dropped without an answer.
    pub(super) fn serve(
        self: &Arc<Self>,
        reader: Option<Box<Reader>>,
        request: Request,
        outbox: &mut Outbox<'_>,
    ) -> Served {
        if !request.ticket.start() {
            abandon(self, request, outbox);
            // `None` here is the right to open a connection, returned unused.
            return Served::Returned(reader);
        }
        let had_active_writes = request.had_active_writes;
        let began = Instant::now();
        // A new connection has waited for no lock yet.
        let waited = || reader.as_ref().map_or(Duration::ZERO, |reader| reader.busy_timeout.waited());
        let started = request.ticket.note_start(ExecutedOn::Reader, waited);
        catch_unwind(AssertUnwindSafe(|| {
            // Another one is opened in its place.
            let reader = reader.filter(|reader| !reader.connection.has_lost_function());
            let mut reader = match reader.map_or_else(|| self.open_or_unpark(&request.ticket), Ok) {
                Ok(reader) => reader,
                Err(error) => {
                    let error = self.ended(request.ticket.timed(error));
                    outbox.finish(request, Err(error));
                    return Served::Returned(None);
                }
            };
            let Request { ticket, work, reply_to, .. } = request;
            let kind = work.describe().kind;
            let text = work.text().cloned();
            let (performed, usable) = mark_closure(|| perform(&mut reader, &self.context, work, &ticket));
            ticket.note_end(started, || reader.busy_timeout.waited());
            let is_half_open = matches!(&performed, Performed::Answered(Err(error)) if is_read_only(error));
            match performed {
                Performed::Answered(answer) => {
                    let answer = if is_half_open { answer.map_err(of_read) } else { answer };
                    outbox.answer(kind, &ticket, reply_to, answer.map_err(|error| self.ended(ticket.timed(error))));
                }
                Performed::Opened(first) => {
                    outbox.answer(kind, &ticket, reply_to, Ok(self.keep(reader, first, text, began)));
                    return Served::Kept;
                }
                Performed::Write(work, error) => {
                    let request = Request { had_active_writes, ..Request::new(ticket, work, reply_to) };
                    self.hand_over(request, error, outbox);
                }
            }
            let usable = usable && !is_half_open;
            if !usable {
                self.context.recorder.replaced_connection();
            }
            Served::Returned((usable && !self.is_drained(&reader)).then_some(reader))
        }))
        .unwrap_or(Served::Returned(None))
    }

    /// Opens a read session for a reader with a cursor, whose first rows these are, or with a snapshot.
    pub(super) fn keep(
        self: &Arc<Self>,
        reader: Box<Reader>,
        first: Option<(Rows, u64)>,
        text: Option<Arc<StatementInfo>>,
        began: Instant,
    ) -> Answer {
        let purpose = if first.is_some() { Purpose::Cursor } else { Purpose::Snapshot };
        let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
        let session = ReadSession::new(self, purpose, ticket, reader, began);
        self.lock().running.push(Running::session(&session, text));
        let pool = Arc::downgrade(self);
        self.looks.by(later(Instant::now(), session.limit()), move || look(&*pool.upgrade()?));
        let at = Arc::new(OpenSession(session));
        match first {
            Some((rows, number)) => Answer::Begun(Box::new((rows, CursorGuard::new(at, number)))),
            None => Answer::Snapshot(SnapshotGuard::new(at)),
        }
    }

    /// Hands the request over to the writer, or answers it with an error. `error` is the reader's error if it could not
    /// prepare the statement.
    fn hand_over(&self, request: Request, error: Option<Error>, outbox: &mut Outbox<'_>) {
        let refused = match self.writer_for(&request, error) {
            Ok(writer) if request.ticket.hand_over() => return writer.take_over(request),
            Ok(_) => too_late(),
            Err(error) => error,
        };
        outbox.finish(request, Err(refused));
    }

    /// Returns the writer, unless the reader's error is final. The error is not final if a write was in progress when
    /// the call began, or is now: that write may create the table that the statement needs.
    fn writer_for(&self, request: &Request, error: Option<Error>) -> Result<&dyn TakesOver> {
        let options = request.ticket.options;
        let writer = self.writer.as_deref().filter(|_| !options.read_only);
        let may_change = |writer: &&dyn TakesOver| error.is_none() || request.had_active_writes || writer.is_active();
        match (writer.filter(may_change), error) {
            (Some(_), _) if options.inside_body => Err(waits_for_itself()),
            (Some(writer), _) => Ok(writer),
            (None, Some(error)) => Err(error),
            (None, None) => Err(opened_to_read(&self.context.options.path)),
        }
    }
}

/// The request is not run: its caller is gone, or has interrupted it.
fn abandon(shared: &ReadersShared, request: Request, outbox: &mut Outbox<'_>) {
    let Request { ticket, work, reply_to, .. } = request;
    let kind = work.describe().kind;
    // Dropping a closure of the user may panic.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
    if ticket.is_interrupted() {
        outbox.answer(kind, &ticket, reply_to, Err(left_request()));
    } else {
        shared.context.recorder.counts.abandoned.count();
    }
}

/// The error of a request whose wait ended because of its caller.
fn given_up(ticket: &Ticket) -> Error {
    if ticket.is_past_deadline() { too_late() } else { left_request() }
}
