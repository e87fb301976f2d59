//! A call of a front end: one type of result, and polled without a waker.
//!
//! Owns: how such a call is polled and told, and what a poll came to. Runs on the thread of the host's event loop, and
//! never blocks there. Invariants: all parts of a result come before its last one; after an error there are none. Leaves
//! out: making calls (`bindings`).

use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::CheckpointInfo;

use crate::api::blob::Blob;
use crate::api::call::{Call, Leaving, Stepped};
use crate::api::database::Database;
use crate::api::live::LiveRows;
use crate::api::live::row_changes::Change;
use crate::bindings::call_nesting::Unbegun;
use crate::error::Result;
use crate::inline::budget;

use crate::api::snapshot::Snapshot;
use crate::api::transaction::Transaction;
use crate::queue::parts::Parts;
use crate::queue::reply::Mailbox;
use crate::values::executed::{BatchResult, ExecuteResult};
use crate::values::row::Rows;

/// The result of any call.
pub enum Output {
    Executed(ExecuteResult),
    Changes(u64),
    /// All rows, or those that no [`Polled::Part`] had.
    Rows(Rows),
    Json(String),
    Batch(Vec<BatchResult>),
    Done,
    Flag(bool),
    Database(Database),
    Transaction(Transaction<'static>),
    Snapshot(Snapshot),
    Blob(Blob),
    Bytes(Vec<u8>),
    Checkpointed(CheckpointInfo),
    Migrated(Vec<String>),
    /// The newest results of a live query, one for each statement.
    Live(Vec<LiveRows>),
    Change(Change),
}

/// Which rows of a query a call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    All,
    /// The first, if there is one.
    First,
    /// The first, which must be there.
    Row,
    /// The same, for its first value.
    Value,
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
    pub(super) call: Call<Output>,
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
    pub(crate) fn new(call: Call<Output>) -> Self {
        Self { call, parts: None }
    }

    /// A query whose worker hands over parts.
    pub(crate) fn in_parts(call: Call<Output>, parts: Arc<Parts<Rows>>) -> Self {
        Self { call, parts: Some(Box::new(InParts { parts, end: None })) }
    }

    /// Polls the call. Without a mailbox it only looks. If the call waits, it is polled with one at once; the mailbox
    /// is then told, with the token, when the call is to be polled once more.
    pub fn poll(&mut self, mailbox: Option<(&Arc<dyn Mailbox>, u64)>) -> Polled {
        let Some(InParts { parts, end }) = self.parts.as_deref_mut() else { return step(&mut self.call, mailbox) };
        if end.is_none() {
            // Before the parts are looked at: what was handed over before the reply is found there.
            match step(&mut self.call, mailbox) {
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
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { call: self.call.timeout(timeout), ..self }
    }
}

fn step(call: &mut Call<Output>, mailbox: Option<(&Arc<dyn Mailbox>, u64)>) -> Polled {
    let stepped = call.step(|reply| match mailbox {
        Some((mailbox, token)) => reply.poll_for(mailbox, token),
        None => reply.look(),
    });
    let polled = match stepped {
        Stepped::Ready(answer) => {
            return Polled::Ready(call.finish(answer).map_err(|error| error.in_operation(call.operation)));
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
