//! The writer slot: the only way to hold the writer's connection, on any thread.
//!
//! Owns: the order of steps from taking the connection out of the queue to giving it back:
//!
//! ```text
//! acquire -> run -> leave: what it left is noted, the checkpointer and the live queries are told
//!         -> release -> start the live queries, deliver answers, wake callers
//! ```
//!
//! Runs on the thread that takes the token. Invariants: however the code in the slot ends, the slot is released, and
//! after a panic with another connection; answers are delivered, and a thread is started for waiting requests, when the
//! slot is free and no lock is held. Leaves out: the queue that has the token (`queue`), and what runs in it.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use flatwater_sqlite::{WalHeader, WalState};

use super::Writer;
use super::close_connection::renew_if_spoilt;
use super::commits_seen::{Committed, leave_at, take_new_commits};
use super::inline_access::unlimit;
use super::known_schema::see_functions;
use super::open_state::WriterTransaction;
use super::writer_connection::WriterConnection;
use crate::turnstile::{LeftTurn, Turnstile};
use crate::workers::outbox::Outbox;
use crate::workers::request::Request;
use crate::workers::work::Work;
use flatwater_base::thread::background::Linger;

/// The token: the connection, unless an open transaction or a connection of a caller has it: then nothing else runs.
pub(crate) enum HeldConnection {
    Here(Box<WriterConnection>),
    /// It is lent, and who has it gives it back.
    Lent,
    /// The open transaction that has it is to be served.
    LentTo(Arc<WriterTransaction>),
}

impl HeldConnection {
    pub(crate) fn new(connection: WriterConnection) -> Self {
        Self::Here(Box::new(connection))
    }

    /// Lends the connection, until `put_back`.
    pub(crate) fn lend(&mut self) -> Box<WriterConnection> {
        self.take().expect(NOT_LENT)
    }

    fn take(&mut self) -> Option<Box<WriterConnection>> {
        match std::mem::replace(self, Self::Lent) {
            Self::Here(connection) => Some(connection),
            Self::Lent | Self::LentTo(_) => None,
        }
    }

    /// The open transaction that is to be served.
    pub(crate) fn lent_to(&self) -> Option<&Arc<WriterTransaction>> {
        if let Self::LentTo(transaction) = self { Some(transaction) } else { None }
    }

    pub(crate) fn is_lent(&self) -> bool {
        !matches!(self, Self::Here(_))
    }

    pub(crate) fn put_back(&mut self, connection: Box<WriterConnection>) {
        *self = Self::Here(connection);
    }
}

const NOT_LENT: &str = "an open transaction gives the connection back before anything else runs";

impl Deref for HeldConnection {
    type Target = WriterConnection;

    fn deref(&self) -> &WriterConnection {
        if let Self::Here(connection) = self { connection } else { unreachable!("{NOT_LENT}") }
    }
}

impl DerefMut for HeldConnection {
    fn deref_mut(&mut self) -> &mut WriterConnection {
        if let Self::Here(connection) = self { connection } else { unreachable!("{NOT_LENT}") }
    }
}

pub(crate) struct Slot<'a> {
    writer: &'a Writer,
    /// Empty after `close`, `lend` and `hand_over`.
    held: HeldConnection,
    outbox: Outbox<'a>,
    /// False while something runs in the slot, and after it panicked.
    is_sound: bool,
    /// The writer's thread has the slot.
    is_writers_thread: bool,
}

impl<'a> Slot<'a> {
    /// Waits for a request that need not be delayed any more, on the writer's thread. Returns `None` if none arrived
    /// while the thread may linger: then it must end.
    pub(crate) fn wait(writer: &'a Writer) -> Option<Self> {
        let shared = &writer.0;
        let (mut linger, mut held_since) = (None, None);
        let turnstile = shared.context.turnstile.as_ref();
        let waits_for_turn = Cell::new(false);
        let idle = || {
            let rests_in = turnstile.and_then(Turnstile::rests_in);
            waits_for_turn.set(rests_in.is_some());
            rests_in.unwrap_or_else(|| linger.get_or_insert_with(Linger::begin).time())
        };
        // After a turn it has not lingered yet.
        let rests = || turnstile.is_some_and(Turnstile::rests) || waits_for_turn.get();
        let connection = shared.queue.wait(idle, rests, |request| {
            let now = Instant::now();
            let delay = shared.delay(&request.work, now);
            held_since = held_since.or(delay.map(|_| now));
            delay
        })?;
        if let Some((listener, since)) = shared.listener.get().zip(held_since) {
            listener.delayed(since.elapsed());
        }
        Some(Self::new(writer, connection, true))
    }

    /// Returns the slot, on any other thread, if it is free and no request waits for it.
    pub(crate) fn acquire_idle(writer: &'a Writer) -> Option<Self> {
        writer.0.queue.borrow_idle().map(|held| Self::new(writer, held, false))
    }

    /// Returns the slot that `lend` kept for an open transaction, which is over and gives the connection back.
    pub(crate) fn lent_back(writer: &'a Writer, connection: Box<WriterConnection>) -> Self {
        Self::new(writer, HeldConnection::Here(connection), false)
    }

    fn new(writer: &'a Writer, held: HeldConnection, is_writers_thread: bool) -> Self {
        let outbox = Outbox::passing_on(&writer.0.context.recorder);
        Self { writer, held, outbox, is_sound: true, is_writers_thread }
    }

    /// Lends the connection to an open transaction, or to a connection of a caller. Nobody else gets the slot before `lent_back`.
    pub(crate) fn lend(mut self) -> Box<WriterConnection> {
        self.held.lend()
    }

    /// Lets the writer's thread go on with the open transaction that the connection is lent to.
    pub(crate) fn hand_over_lent(writer: &'a Writer, transaction: Arc<WriterTransaction>, request: Request) {
        let start = writer.0.queue.hand_over(HeldConnection::LentTo(transaction), request);
        writer.start_for_others(start);
    }

    /// Runs `f` on the connection. If `f` panics, the slot is released with another connection.
    pub(crate) fn run<T>(&mut self, f: impl FnOnce(&mut HeldConnection, &mut Outbox<'a>) -> T) -> T {
        self.is_sound = false;
        let result = f(&mut self.held, &mut self.outbox);
        self.is_sound = true;
        result
    }

    /// Closes the connection for good: the slot is not released.
    pub(crate) fn close(mut self) {
        drop(self.held.take());
    }

    /// Releases the slot to the writer's thread, which runs `request` before anything else.
    pub(crate) fn hand_over(mut self, request: Request) {
        let Some(mut connection) = self.held.take() else { return };
        connection.end_lease();
        let start = self.writer.0.queue.hand_over(HeldConnection::Here(connection), request);
        self.writer.0.start_live();
        self.writer.start_for_others(start);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let left = self.held.take().map(|mut connection| {
            if !self.is_sound {
                connection.replace();
            }
            self.writer.watch_lease(&connection);
            let turn = leave_turn(&self.writer.0, &mut connection, self.is_writers_thread);
            (turn, self.writer.0.queue.give_back(HeldConnection::Here(connection)))
        });
        self.writer.0.start_live();
        self.outbox.deliver();
        let Some((turn, start)) = left else { return };
        self.writer.start_for_others(start);
        if turn == LeftTurn::Kept {
            tell_of_turn(self.writer);
        }
    }
}

impl super::WriterShared {
    /// Returns how long the work must wait before it gets the slot, because the WAL grows too fast.
    fn delay(&self, work: &Work, now: Instant) -> Option<Duration> {
        if work.describe().grows_wal() { self.listener.get()?.delay(now) } else { None }
    }

    /// Returns true if a write that begins now has to wait, because the WAL grows too fast: then it goes through the queue,
    /// where it does.
    pub(crate) fn delays_writes(&self, now: Instant) -> bool {
        self.listener.get().is_some_and(|listener| listener.delay(now).is_some())
    }

    /// The same for a write that may not block this thread, and so may not wait for its turn either.
    pub(crate) fn pauses_writes(&self, now: Instant) -> bool {
        self.delays_writes(now) || self.context.turnstile.as_ref().is_some_and(|turnstile| !turnstile.may_write(now))
    }

    /// Called when the code in the slot is over and has left the WAL like this: records that, and tells the
    /// checkpointer and the live queries.
    pub(crate) fn leave(&self, connection: &mut WriterConnection, left: Option<&(WalState, WalHeader)>, now: Instant) {
        let Some((state, header)) = left else { return self.publish_unseen(connection) };
        let committed = tell_of_commits(self, connection, state, header, now);
        self.publish(connection, committed);
    }
}

/// Ends this process' turn, unless it is kept for the next slot.
fn leave_turn(shared: &super::WriterShared, connection: &mut WriterConnection, is_writers_thread: bool) -> LeftTurn {
    let Some(turnstile) = &shared.context.turnstile else { return LeftTurn::Same };
    let left = turnstile.left_slot(is_writers_thread, || shared.queue.len() > 0);
    if left == LeftTurn::Over {
        connection.end_lease();
    }
    left
}

/// Has the writer's thread end a turn that is kept, if nothing comes. If there is no such thread, the turn ends now.
fn tell_of_turn(writer: &Writer) {
    let start = writer.0.queue.stir();
    if writer.start(start).is_err() {
        writer.0.context.turnstile.iter().for_each(|turnstile| turnstile.pass());
    }
}

/// The same as `leave` for a connection of a caller, beside the connection of the slot, which ran nothing.
pub(crate) fn leave_beside(
    shared: &super::WriterShared,
    connection: &mut WriterConnection,
    own: &mut WriterConnection,
    now: Instant,
) {
    let left = connection.wal_now();
    let Some((state, header)) = &left else { return shared.publish_unseen(connection) };
    connection.commits_beside = connection.commits_beside.wrapping_add(take_new_commits(own));
    let committed = tell_of_commits(shared, connection, state, header, now);
    shared.publish(own, committed);
    shared.publish(connection, Committed::Nothing);
}

/// Records in which state the WAL is left, and tells the checkpointer and the other processes.
fn tell_of_commits(
    shared: &super::WriterShared,
    connection: &mut WriterConnection,
    state: &WalState,
    header: &WalHeader,
    now: Instant,
) -> Committed {
    if let Some(listener) = shared.listener.get() {
        listener.grew(header, now);
    }
    let committed = leave_at(connection, state, &shared.context.catalogue.left);
    if committed == Committed::Ours
        && let Some(turnstile) = &shared.context.turnstile
    {
        turnstile.committed(header.change);
    }
    committed
}

/// Called by a worker before it uses the slot.
pub(crate) fn enter(shared: &super::WriterShared, writer: &mut WriterConnection) {
    writer.end_lease();
    unlimit(writer);
    renew_if_spoilt(writer, false);
    see_functions(writer);
    shared.record(writer);
    if let Some(listener) = shared.listener.get() {
        writer.limit_pages(listener.page_limit());
    }
}
