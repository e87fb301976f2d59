//! The writer: one connection, one queue, thread `fw-writer`.
//!
//! Owns: the queue with the token, the thread, and the order of things in one turn: take requests, run them, answer,
//! give the token back, wake callers. The thread starts with the first request and ends when there has been none for a
//! while; the connection stays. Invariant: whatever panics, the token comes back and nobody waits for ever. Leaves out:
//! what a turn does (`alone`, `group`, `transaction`).

mod alone;
mod choice;
mod commit;
mod group;
mod outcome;
mod perform;
mod seat;
mod transaction;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use choice::{Candidate, Choice};
use seat::Seat;

use crate::connection::catalogue::Catalogue;
use crate::file::watch::Watch;
use crate::stats::Recorder;
use crate::types::error::{Error, Kind, Result};
use crate::types::options::Options;
use crate::types::request::{CallOptions, Ticket};
use crate::waiting::bounded::Place;
use crate::waiting::park::{mark_closure, mark_own_thread};
use crate::waiting::patience::Patience;
use crate::waiting::queue::{Closed, Queue, Start};
use crate::waiting::reply::reply;
use crate::workers::request::{Answer, OnItsWay, Outbox, Request, Work};
use crate::workers::session::{End, Session};

/// The thread ends after this long without a request.
const IDLE: Duration = Duration::from_secs(10);
/// A member is expected to be shorter than this.
const SHORT: Duration = Duration::from_millis(1);
/// An `execute_many` or `batch` of more statements is not a member.
const MEMBER_STATEMENTS: usize = 32;

/// The handle. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Writer(Arc<Shared>);

pub(super) struct Shared {
    options: Arc<Options>,
    catalogue: Arc<Catalogue>,
    recorder: Arc<Recorder>,
    /// The journal mode, in lower case.
    journal: String,
    queue: Queue<Request, Box<Seat>>,
    /// Requests that are not answered yet.
    on_their_way: Arc<AtomicU64>,
    /// The open transaction, for ending it from outside.
    open: Mutex<OpenTransaction>,
}

#[derive(Default)]
struct OpenTransaction {
    session: Weak<Session>,
    /// No transaction may stay open any more.
    ended: bool,
    /// The single request that runs.
    running: Weak<Ticket>,
}

impl Writer {
    /// Opens the connection. Blocks.
    pub(crate) fn open(
        options: Arc<Options>,
        catalogue: Arc<Catalogue>,
        recorder: Arc<Recorder>,
        watch: Option<Arc<Watch>>,
    ) -> Result<Self> {
        let mut seat = Box::new(Seat::open(options.clone(), watch)?);
        let journal = seat.journal()?;
        Ok(Self(Arc::new(Shared {
            queue: Queue::new(options.queue, seat),
            options,
            catalogue,
            recorder,
            journal,
            on_their_way: Arc::default(),
            open: Mutex::new(OpenTransaction::default()),
        })))
    }

    /// The journal mode, in lower case.
    pub(crate) fn journal(&self) -> &str {
        &self.0.journal
    }

    /// Pushes the request; one that finds no place waits for it in line.
    pub(crate) fn push(&self, mut request: Request) -> Result<Place> {
        request.on_its_way = Some(OnItsWay::new(&self.0.on_their_way));
        match self.0.queue.push(request) {
            Err((Closed, _)) => Err(Error::closed()),
            Ok((place, start)) => self.start(start).map(|()| place),
        }
    }

    /// The caller behind `place` is gone.
    pub(crate) fn leave(&self, place: Place) {
        drop(self.0.queue.leave(place));
    }

    /// Runs the request on this thread, which may block, if the token is free and nobody waits. Otherwise it comes back.
    pub(crate) fn run_here(&self, mut request: Request) -> Option<Request> {
        if matches!(request.work, Work::Begin | Work::Close(..)) {
            return Some(request);
        }
        let Some(mut seat) = self.0.queue.borrow_idle() else { return Some(request) };
        request.on_its_way = Some(OnItsWay::new(&self.0.on_their_way));
        let mut outbox = Outbox::new(self.0.recorder.clone());
        let mut batch = vec![request];
        self.0.guarded_turn(&mut seat, &mut batch, &mut outbox);
        let start = self.0.queue.give_back(seat);
        outbox.wake();
        // Without a thread the requests that came meanwhile stay; the next push tries again.
        let _ = self.start(start);
        None
    }

    /// Takes no more requests. When those before are done, calls `before`, closes the connection, calls `after`.
    pub(crate) fn close(&self, before: Box<dyn FnOnce() + Send>, after: Box<dyn FnOnce() + Send>) {
        let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
        // Nobody waits for this answer: `after` tells.
        let (promise, _) = reply();
        let Ok(start) = self.0.queue.close(Request::new(ticket, Work::Close(before, after), promise)) else { return };
        if self.start(start).is_err() {
            // No thread to be had: close on this one rather than not at all.
            self.0.run();
        }
    }

    /// The time that a close gives is over: an open transaction ends as soon as what it was asked before is served, and
    /// so does every one that begins from now on.
    pub(crate) fn end_transactions(&self) {
        let mut open = self.0.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.ended = true;
        let session = open.session.upgrade();
        // A read ends early; a write has no ear for this.
        open.running.upgrade().inspect(|ticket| ticket.cancel());
        drop(open);
        if let Some(session) = session {
            session.end(End::Closed);
        }
    }

    /// Whether a write is queued or running.
    pub(crate) fn is_active(&self) -> bool {
        self.0.on_their_way.load(Ordering::SeqCst) != 0
    }

    /// Requests that wait now.
    pub(crate) fn waiting(&self) -> usize {
        self.0.queue.len()
    }

    fn start(&self, start: Start) -> Result<()> {
        if start == Start::No {
            return Ok(());
        }
        let shared = self.0.clone();
        let spawned = std::thread::Builder::new().name("fw-writer".into()).spawn(move || {
            mark_own_thread();
            shared.run();
        });
        spawned.map(drop).map_err(|error| {
            self.0.queue.start_failed();
            Error::new(Kind::Io, format!("the writer's thread cannot be started: {error}"))
        })
    }
}

impl Shared {
    /// The thread.
    fn run(&self) {
        let mut outbox = Outbox::new(self.recorder.clone());
        let mut batch = Vec::new();
        let mut patience = Patience::new();
        let mut free_since = Instant::now();
        while let Some(mut seat) = self.queue.wait(IDLE) {
            patience.waited(free_since.elapsed());
            let mut choice = Choice::new(self.options.group);
            self.queue.take_while(&mut batch, |request| choice.takes(self.candidate(request)));
            let closed = self.guarded_turn(&mut seat, &mut batch, &mut outbox);
            if closed {
                // The token is not given back: nothing runs after the last request.
                drop(seat);
                outbox.wake();
                return;
            }
            // The thread is known to be here, so giving back never asks to start one.
            let _ = self.queue.give_back(seat);
            outbox.wake();
            free_since = Instant::now();
            patience.look(|| self.on_their_way.load(Ordering::Relaxed) != 0);
        }
    }

    /// One turn; true if it was the last. A panic, which only a fault of ours can be, costs the requests of this turn:
    /// their callers are told, and the connection is replaced.
    fn guarded_turn(&self, seat: &mut Seat, batch: &mut Vec<Request>, outbox: &mut Outbox) -> bool {
        let turn = catch_unwind(AssertUnwindSafe(|| mark_closure(|| self.turn(seat, batch, outbox))));
        turn.unwrap_or_else(|_| {
            batch.clear();
            seat.replace();
            self.recorder.replaced_connection();
            false
        })
    }

    fn turn(&self, seat: &mut Seat, batch: &mut Vec<Request>, outbox: &mut Outbox) -> bool {
        batch.retain(|request| {
            let starts = request.ticket.start();
            if !starts {
                self.recorder.abandoned();
            }
            starts
        });
        if let Some(refusal) = seat.refusal() {
            self.refuse_writes(batch, outbox, &refusal);
        }
        match (batch.len(), self.options.group) {
            (0, _) => {}
            (2.., Some(limits)) => group::run_group(seat, self, limits, batch, outbox),
            _ => {
                for request in batch.drain(..) {
                    if self.single(seat, request, outbox) {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn single(&self, seat: &mut Seat, request: Request, outbox: &mut Outbox) -> bool {
        if matches!(request.work, Work::Begin) {
            transaction::serve(seat, self, request, outbox);
            return false;
        }
        let Request { ticket, work, promise, lock_since, must_be_alone: _, on_its_way } = request;
        if let Work::Close(before, after) = work {
            before();
            seat.close();
            after();
            return true;
        }
        let kind = work.kind();
        let since = lock_since.unwrap_or_else(Instant::now);
        self.note_running(&ticket);
        let result = alone::run_alone(seat, self, work, &ticket, since).map_err(|error| self.ended(error));
        drop(on_its_way);
        outbox.answer(kind, &ticket, promise, result);
        false
    }

    fn refuse_writes(&self, batch: &mut Vec<Request>, outbox: &mut Outbox, refusal: &Error) {
        let passes = |request: &mut Request| request.work.only_reads() || matches!(request.work, Work::Close(..));
        let refused: Vec<_> = batch.extract_if(.., |request| !passes(request)).collect();
        for request in refused {
            self.answer(outbox, request, Err(refusal.clone()));
        }
    }

    fn answer(&self, outbox: &mut Outbox, request: Request, result: Result<Answer>) {
        drop(request.on_its_way);
        outbox.answer(request.work.kind(), &request.ticket, request.promise, result);
    }

    /// Lets a close find what runs. One that begins when its time is over ends at once, if it can.
    fn note_running(&self, ticket: &Arc<Ticket>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.running = Arc::downgrade(ticket);
        if open.ended {
            ticket.cancel();
        }
    }

    /// A read that was interrupted because the database closes is told so.
    fn ended(&self, error: Error) -> Error {
        let is_ended = || self.open.lock().unwrap_or_else(PoisonError::into_inner).ended;
        if error.kind() == Kind::Cancelled && is_ended() { Error::closed() } else { error }
    }

    fn open_session(&self, session: &Arc<Session>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.session = Arc::downgrade(session);
        let ended = open.ended;
        drop(open);
        if ended {
            session.end(End::Closed);
        }
    }

    /// What matters of a request for the choice of a group.
    fn candidate(&self, request: &Request) -> Candidate {
        let epoch = self.catalogue.epoch();
        let options = request.ticket.options;
        let may_be_member = !request.must_be_alone && !options.alone && !options.read_only;
        let (groupable, bytes) = match &request.work {
            Work::Execute { text, params } | Work::Query { text, params, .. } => {
                (text.is_groupable(epoch, SHORT), params.heap_bytes())
            }
            Work::Many { text, rows } if rows.len() <= MEMBER_STATEMENTS => {
                (text.is_groupable(epoch, SHORT), rows.iter().map(|row| row.heap_bytes()).sum())
            }
            Work::Batch(statements) if statements.len() <= MEMBER_STATEMENTS => (
                statements.iter().all(|(text, _)| text.is_groupable(epoch, SHORT)),
                statements.iter().map(|(_, params)| params.heap_bytes()).sum(),
            ),
            _ => (false, 0),
        };
        Candidate { groupable: groupable && may_be_member, bytes }
    }
}
