//! A call of a front end: any call of the API, with one type of result, and polled without a waker; and what goes on beside such polls:
//! calls that are held back because one that was made before is not complete yet, the next part of a result, and the turn of other
//! tasks, which a front end gives them then.
//!
//! Owns: which results there are, how such a call is polled and told, what a front end says of the flow of the program that begins it,
//! which calls have an order, and the deadline of one that is held. Runs on the thread of the host's event loop, and never blocks
//! there. Invariants: it does what the call of the API does; all parts of a result come before its last one; after an error there are
//! none; a call that has begun is not moved into another transaction; one that is held has not begun, and its deadline counts from
//! when it was made. Leaves out: what calls do (`api`); knowing the flow, the order of calls, and suspending a task, which the host does.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use flatwater_sqlite::CheckpointInfo;

use super::Target;
use crate::api::blob::Blob;
use crate::api::call::{Call, Read};
use crate::api::database::Database;
use crate::api::live::row_changes::Change;
use crate::api::live::{Live, LiveRows};
use crate::api::pending::{Leaving, Pending, Stepped};
use crate::api::stream::Batches;
use crate::api::transaction::{Snapshot, Transaction};
use crate::engine::caller::Caller;
use crate::queue::reply::{Mailbox, Parts};
use crate::workers::Answer;
use flatwater_base::error::Result;
use flatwater_base::inline::budget;
use flatwater_base::time::later;
use flatwater_base::time::timer::{self, Alarm};
use flatwater_base::values::{ExecuteResult, Rows, RunResult};

/// Defines the results, and for each that a call of the API has how it is read.
macro_rules! outputs {
    (of calls: { $($(#[$note:meta])* $name:ident($type:ty),)* } $($(#[$also_note:meta])* $also:ident($also_type:ty),)*) => {
        /// The result of any call.
        pub enum Output {
            $($(#[$note])* $name($type),)*
            $($(#[$also_note])* $also($also_type),)*
        }

        /// How the call that was made reads its answer.
        enum ReadAs {
            $($name(Read<$type>),)*
        }

        impl ReadAs {
            fn read(&self, answer: Answer, caller: Option<&Caller>) -> Result<Output> {
                match self {
                    $(Self::$name(read) => read(answer, caller).map(Output::$name),)*
                }
            }
        }

        $(impl From<Call<$type>> for FrontCall {
            fn from(Call { pending, read }: Call<$type>) -> Self {
                Self::new(pending, ReadAs::$name(read))
            }
        })*
    };
}

outputs! {
    of calls: {
        Executed(ExecuteResult),
        Changes(u64),
        /// All rows, or those that no [`Polled::Part`] had.
        Rows(Rows),
        Json(String),
        Batch(Vec<RunResult>),
        Ran(RunResult),
        Done(()),
        Flag(bool),
        Database(Database),
        Transaction(Transaction<'static>),
        Snapshot(Snapshot),
        Blob(Blob),
        Bytes(Vec<u8>),
        Checkpointed(CheckpointInfo),
        Migrated(Vec<String>),
    }
    /// The newest results of a live query, one for each statement.
    Live(Vec<LiveRows>),
    Change(Change),
}

/// What a poll came to.
pub enum Polled {
    /// The call is over.
    Ready(Result<Output>),
    /// The next rows of the result. There may be more at once, so the call is polled again before it is waited for.
    Part(Rows),
    /// The result is there, and the next poll returns it: other tasks get their turn before.
    Yields,
    /// The call waits for its reply.
    Waits,
}

/// A call of a front end. It begins when it is first polled.
pub struct FrontCall {
    pub(super) call: Pending,
    read: ReadAs,
    /// Present if the result may come in parts. Boxed, because most calls have none.
    parts: Option<Box<InParts>>,
}

/// What a call with parts has besides.
struct InParts {
    parts: Arc<Parts<Rows>>,
    /// The end of the call, while there are parts that come before it.
    end: Option<Result<Output>>,
}

impl FrontCall {
    fn new(mut call: Pending, read: ReadAs) -> Self {
        call.keep_nested();
        Self { call, read, parts: None }
    }

    /// The same of a query whose worker hands over parts.
    pub(super) fn in_parts(self, parts: Arc<Parts<Rows>>) -> Self {
        Self { parts: Some(Box::new(InParts { parts, end: None })), ..self }
    }

    /// The same, which a front end calls by another name.
    pub(super) fn named(mut self, operation: &'static str) -> Self {
        self.call.operation = operation;
        self
    }

    /// Polls the call. Without a mailbox it only looks. If the call waits, it is polled with one at once; the mailbox
    /// is then told, with the token, when the call is to be polled once more.
    pub fn poll(&mut self, mailbox: Option<(&Arc<dyn Mailbox>, u64)>) -> Polled {
        let Some(InParts { parts, end }) = self.parts.as_deref_mut() else {
            return step(&mut self.call, &self.read, mailbox);
        };
        if end.is_none() {
            // Before the parts are looked at: what was handed over before the reply is found there.
            match step(&mut self.call, &self.read, mailbox) {
                Polled::Ready(Ok(output)) => *end = Some(Ok(output)),
                Polled::Waits => return parts.take(mailbox).map_or(Polled::Waits, Polled::Part),
                polled => return polled,
            }
        }
        match parts.take(None) {
            Some(part) => Polled::Part(part),
            None => end.take().map_or(Polled::Waits, Polled::Ready),
        }
    }

    /// Gives the call up. Returns true if its write runs: it is polled on, until its outcome is known, which is soon for one
    /// that is interrupted. What opens or closes a database has no such outcome.
    pub fn give_up(&mut self) -> bool {
        self.call.give_up(Leaving::AfterWrite);
        self.call.waits()
    }

    /// The same, for a caller that is told the outcome of what may write: a call that has ended is polled on too, and returns
    /// its result.
    pub fn interrupt(&mut self) -> bool {
        self.call.give_up(Leaving::WithOutcome);
        self.call.waits()
    }

    /// Where the call is to begin, unless it has begun.
    pub fn unbegun(&mut self) -> Option<Unbegun<'_>> {
        self.call.unbegun().map(Unbegun)
    }

    /// See [`Call::timeout`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.call.set_option(|options| options.set_timeout(timeout));
        self
    }

    /// Returns a number of the queue in which the call takes its place behind the writes before it: that of its transaction, or
    /// of the writer. `None` for a read that has a reader of its own, and for a call that has begun.
    pub fn line(&mut self) -> Option<usize> {
        self.call.line()
    }

    /// Holds a call that was not begun. At its deadline the mailbox is told, with the token.
    #[must_use]
    pub fn hold(&self, mailbox: &Arc<dyn Mailbox>, token: u64) -> Held {
        let since = Instant::now();
        let timeout = self.call.caller.as_ref().and_then(|caller| caller.options.time.left());
        let deadline = timeout.map(|timeout| later(since, timeout));
        let alarm = deadline.map(|deadline| {
            let mailbox = mailbox.clone();
            timer::at(deadline, move || {
                mailbox.ready(token);
                mailbox.flush();
            })
        });
        Held { since, deadline, _alarm: alarm }
    }

    /// The call is held no more: its next poll begins it.
    pub fn release(&mut self, held: &Held) {
        let waited = held.since.elapsed();
        self.call.set_option(|options| options.time = options.time.after(waited));
    }
}

fn step(call: &mut Pending, read: &ReadAs, mailbox: Option<(&Arc<dyn Mailbox>, u64)>) -> Polled {
    let stepped = call.step(|reply| match mailbox {
        Some((mailbox, token)) => reply.poll_for(mailbox, token),
        None => reply.look(),
    });
    let polled = match stepped {
        Stepped::Ready(answer) => {
            let output = call.end(answer).and_then(|answer| read.read(answer, call.caller.as_ref()));
            return Polled::Ready(output.map_err(|error| error.in_operation(call.operation)));
        }
        Stepped::Yields => Polled::Yields,
        Stepped::Waits => Polled::Waits,
    };
    if mailbox.is_some() && matches!(polled, Polled::Waits) {
        // A task of a host polls nothing besides: it suspends.
        budget::renew();
    }
    polled
}

/// A call that was not begun yet.
pub struct Unbegun<'a>(pub(crate) &'a mut Caller);

impl Unbegun<'_> {
    /// The number that identifies the open database, for a call that belongs to no transaction, snapshot or cursor.
    pub fn database(&self) -> Option<usize> {
        (self.0.inside.is_none() && self.0.kept.is_none()).then(|| self.0.handle.id())
    }

    /// The number that identifies the open database.
    pub fn open_database(&self) -> usize {
        self.0.handle.id()
    }

    /// True for a call that belongs to no transaction: it may wait for the end of one.
    pub fn is_outside(&self) -> bool {
        self.0.inside.is_none()
    }

    /// True for a call of a transaction in which nested ones were begun.
    pub fn may_be_nested(&self) -> bool {
        self.0.inside.as_ref().is_some_and(|inside| inside.transaction.savepoints_begun() > 0)
    }

    /// The flow that begins the call has a transaction open on the same database. If the call would wait for the end of
    /// that, it is refused.
    pub fn set_inside_body(&mut self) {
        self.0.options.inside_body = true;
    }

    /// The flow that begins the call is inside this nested transaction: a call of one around it runs there too. Returns
    /// false for a nested transaction of another one.
    pub fn set_nested(&mut self, nested: &Transaction<'_>) -> bool {
        let (Some(own), Some(nested)) = (&self.0.inside, &nested.session.0.inside) else { return false };
        if !Arc::ptr_eq(&own.transaction, &nested.transaction) {
            return false;
        }
        if nested.savepoints.starts_with(&own.savepoints) {
            self.0.inside = Some(nested.clone());
        }
        true
    }
}

/// A call that was made at this time, and is held.
pub struct Held {
    since: Instant,
    deadline: Option<Instant>,
    /// Notes the token at the deadline.
    _alarm: Option<Alarm>,
}

impl Held {
    /// Returns true if the call is to begin, because it then fails with a timeout.
    pub fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl Target {
    /// As [`FrontCall::line`], for a write.
    pub fn line(&self) -> Option<usize> {
        self.0.0.line()
    }
}

/// As [`FrontCall::line`].
pub fn line_of(batches: &mut Batches) -> Option<usize> {
    batches.line()
}

/// Polls for the next batch of rows, as [`Batches::next`] does. The front end gives other tasks their turn.
pub fn poll_batch(batches: &mut Batches, context: &mut Context<'_>) -> Poll<Result<Option<Rows>>> {
    batches.poll_batch(context)
}

/// Polls for the next item of a live query, as [`Live::next`] does. The front end gives other tasks their turn.
pub fn poll_live<T>(live: &mut Live<T>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
    live.poll_item(Instant::now(), context)
}

/// Counts something that was there at once and that no call returns. Returns true if this thread has used up its share:
/// other tasks are to have their turn, and then [`turn_was_given`](super::turn_was_given) is called.
#[must_use]
pub fn turn_is_due() -> bool {
    budget::count(Instant::now());
    budget::is_spent()
}
