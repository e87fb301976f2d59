//! The writer: one connection, one queue, thread `fw-writer`.
//!
//! Owns: the queue, which holds the token, and starting the thread. The thread starts with the first request and ends
//! after it has been idle for a while; the connection stays open. Runs on callers' threads and on `fw-writer`.
//! Invariant: only the holder of the slot uses the connection. Leaves out: one round of the thread (`rounds`), and what a
//! round runs (`perform`, `kept`).

pub(crate) mod close_connection;
pub(crate) mod commit;
pub(crate) mod commits_seen;
pub(crate) mod demanded_checkpoint;
pub(crate) mod disk_full;
pub(crate) mod effects;
pub(crate) mod failed_commit;
pub(crate) mod gathering;
pub(crate) mod inline_access;
pub(crate) mod interrupts;
pub(crate) mod known_schema;
pub(crate) mod ongoing;
pub(crate) mod open_state;
pub(crate) mod optimize;
pub(crate) mod park_database;
pub(crate) mod publish;
pub(crate) mod reopen;
pub(crate) mod slot;
pub(crate) mod state;
pub(crate) mod writer_connection;
pub(crate) mod writer_lease;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use ongoing::Ongoing;
pub(crate) use optimize::optimize_again_and_again;
pub(crate) use park_database::Parked;
use slot::HeldConnection;
use writer_connection::WriterConnection;

use crate::queue::bounded::LinePlace;
use crate::queue::metrics::PendingWrite;
use crate::queue::reply::{Reply, reply};
use crate::queue::ticket::{CallOptions, Ticket};
use crate::queue::{Closed, Queue, Start};
use crate::workers::Answer;
use crate::workers::context::Context;
use crate::workers::interfaces::TakesOver;
use crate::workers::interfaces::{ChangeListener, CommitListener};
use crate::workers::request::{ReplyTo, Request};
use crate::workers::work::{InSlot, Ours};
use flatwater_base::error::cause::no_thread;
use flatwater_base::error::{Error, Result};
use flatwater_base::thread::background::{AGAIN, start_worker};
use flatwater_base::time::later;
use flatwater_base::time::recurring::Recurring;
use flatwater_base::time::timer::Deadline;

/// The handle. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Writer(pub(crate) Arc<WriterShared>);

pub(crate) struct WriterShared {
    pub(crate) context: Arc<Context>,
    /// The journal mode, in lower case.
    pub(crate) journal: String,
    pub(crate) queue: Queue<Request, HeldConnection>,
    pub(crate) this: Weak<Self>,
    /// The checkpointer, if there is one. The writer reports commits to it.
    pub(crate) listener: OnceLock<Arc<dyn CommitListener>>,
    /// The live queries. The writer reports changes to them.
    pub(crate) live: OnceLock<Arc<dyn ChangeListener>>,
    pub(crate) lease_watch: writer_lease::Watch,
    /// Goes off when the thread is to be started that could not be started before.
    pub(crate) again: Deadline,
    /// Asks for the statistics of the planner.
    pub(crate) optimizes: Recurring,
    /// Looks whether the open transaction is idle.
    looks: Recurring,
    /// The number of requests that are not answered yet.
    pub(crate) pending_writes: Arc<AtomicU64>,
    /// What a close has to end.
    pub(crate) ongoing: Ongoing,
    /// Set when a close has answered although something runs: from then on nothing is committed.
    pub(crate) is_left: Arc<AtomicBool>,
}

impl Writer {
    /// Opens the writer's connection. Blocks, until `ticket` is given up.
    pub(crate) fn open(context: &Arc<Context>, ticket: &Arc<Ticket>) -> Result<Self> {
        let opened = WriterConnection::open(context, ticket);
        // It may have got the turn of this process for that, and there was no slot with which the turn ends.
        context.turnstile.iter().for_each(|turnstile| turnstile.pass());
        let mut writer = opened?;
        let journal = writer.connection()?.journal.clone();
        // Opening the connection has looked for the tables.
        if context.is_beside_litestream() {
            demanded_checkpoint::append_or_cut(&mut writer);
        }
        Ok(Self(Arc::new_cyclic(|shared| WriterShared {
            is_left: writer.is_left.clone(),
            queue: Queue::new(context.options.queue, HeldConnection::new(writer)),
            this: shared.clone(),
            context: context.clone(),
            journal,
            listener: OnceLock::new(),
            live: OnceLock::new(),
            lease_watch: writer_lease::Watch::default(),
            again: Deadline::default(),
            optimizes: Recurring::default(),
            looks: Recurring::default(),
            pending_writes: Arc::default(),
            ongoing: Ongoing::default(),
        })))
    }

    /// Reports commits to `listener` from now on.
    pub(crate) fn tell(&self, listener: Arc<dyn CommitListener>) {
        // `tell` is called once, before the first request.
        let _ = self.0.listener.set(listener);
    }

    /// Reports changes to `live` from now on.
    pub(crate) fn tell_live(&self, live: Arc<dyn ChangeListener>) {
        // It is called once, before the first request.
        let _ = self.0.live.set(live);
    }

    /// Returns a function that runs a closure between two rounds, before all waiting requests. The function returns
    /// false if the writer is closed. It does not keep the writer alive.
    pub(crate) fn in_slot(&self) -> impl Fn(InSlot) -> bool + Send + Sync + use<> {
        let shared = Arc::downgrade(&self.0);
        move |closure| shared.upgrade().is_some_and(|shared| Self(shared).run_in_slot(closure))
    }

    fn run_in_slot(&self, closure: InSlot) -> bool {
        let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
        match self.0.queue.push_first(Request::new(ticket, Ours::InSlot(closure).into(), ReplyTo::Nobody)) {
            Ok(start) => {
                self.start_for_others(start);
                true
            }
            Err(_) => false,
        }
    }

    /// Pushes a request that runs before all waiting ones.
    fn push_first(&self, request: Request) -> Result<()> {
        match self.0.queue.push_first(request) {
            Ok(start) => self.start(start),
            Err(_) => Err(Error::closed()),
        }
    }

    /// The journal mode, in lower case.
    pub(crate) fn journal(&self) -> &str {
        &self.0.journal
    }

    /// Pushes the request. If the queue is full, the request waits in line for a place.
    ///
    /// # Errors
    /// `Closed`; or the thread cannot be started. The request comes back with it, and its reply has no answer yet.
    pub(crate) fn push(&self, mut request: Request) -> Result<LinePlace, (Error, Box<Request>)> {
        let ticket = request.ticket.clone();
        request.pending = Some(PendingWrite::new(self.0.pending_writes.clone()));
        match self.0.queue.push(request) {
            Err((Closed, request)) => Err((Error::closed(), Box::new(request))),
            Ok((place, start)) => {
                let Err(error) = self.start(start) else { return Ok(place) };
                let take = |request: &Request| Arc::ptr_eq(&request.ticket, &ticket);
                let taken = self.0.queue.leave(place).or_else(|| self.0.queue.take_out(take).pop());
                // Another thread may have taken it meanwhile.
                taken.map_or(Ok(place), |request| Err((error, Box::new(request))))
            }
        }
    }

    /// Removes the request at `place`, because its caller is gone.
    pub(crate) fn leave(&self, place: LinePlace) {
        drop(self.0.queue.leave(place));
    }

    /// Stops accepting requests. When the earlier requests are done, calls `before`, which returns how long the rest of the
    /// WAL may be copied, closes the connection, and calls `after`.
    pub(crate) fn close(&self, before: Box<dyn FnOnce() -> Duration + Send>, after: Box<dyn FnOnce() + Send>) {
        let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
        let Ok(start) = self.0.queue.close(Request::new(ticket, Ours::Close(before, after).into(), ReplyTo::Nobody))
        else {
            return;
        };
        // The start does not fail once the queue is closed.
        let _ = self.start(start);
    }

    /// Returns the number of waiting requests.
    pub(crate) fn waiting(&self) -> usize {
        self.0.queue.len()
    }

    /// Starts the thread for requests that arrived meanwhile. If it cannot be started, they stay in the queue, and an alarm
    /// tries again.
    fn start_for_others(&self, start: Start) {
        let _ = self.start(start);
    }

    /// Starts the thread, if `start` says so. If it cannot be started, a close and the requests before it run on this
    /// thread.
    ///
    /// # Errors
    /// The thread cannot be started. An alarm tries again, for what else is in the queue.
    fn start(&self, start: Start) -> Result<()> {
        if start == Start::No {
            return Ok(());
        }
        let shared = self.0.clone();
        let started = start_worker("fw-writer", move || Self(shared).run());
        let Err(error) = started else { return Ok(()) };
        if self.0.queue.start_failed() {
            self.run();
            return Ok(());
        }
        self.start_later();
        Err(no_thread("the writer's thread", &error))
    }
}

impl Writer {
    fn start_later(&self) {
        self.0.again.set(later(Instant::now(), AGAIN), &self.0, |shared| {
            let start = shared.queue.rouse();
            Self(shared).start_for_others(start);
        });
    }
}

impl TakesOver for Writer {
    fn is_active(&self) -> bool {
        self.0.pending_writes.load(Ordering::SeqCst) != 0
    }

    fn take_over(&self, mut request: Request) {
        request.pending = Some(PendingWrite::new(self.0.pending_writes.clone()));
        // A closed queue drops the request, which its caller notices.
        if let Ok((_, start)) = self.0.queue.push(request)
            && self.start(start).is_err()
        {
            self.run();
        }
    }

    fn unpark(&self, ticket: Arc<Ticket>) -> Result<Reply<Result<Answer>>> {
        let (promise, opened) = reply();
        self.push_first(Request::new(ticket, Ours::Unpark.into(), promise)).map(|()| opened)
    }
}
