//! Calls that go on, by token: they wait for a reply, or there is more of their result.
//!
//! Owns: polling a call, and what is left of its rows. Runs on the loop's thread, and never waits there. Invariants: what a worker
//! has answered is not lost: the call is polled with its mailbox before it waits; after an error nothing of the call is left. Leaves
//! out: how a result goes to JavaScript (`answers`).

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use flatwater::bindings::{FrontCall, Held, Mailbox, Output, Polled};
use flatwater_bridge::waker;

use crate::handles::Handles;
use crate::lines::{Lines, Spot};
use crate::lists::Lists;
use crate::reading_as::ReadAs;

pub(crate) struct Waiting {
    pub(crate) source: Source,
    pub(crate) read_as: ReadAs,
    /// What JavaScript has not taken of the rows that are there.
    pub(crate) rest: Option<Lists>,
    /// It was given up, and its outcome is awaited: what it would hold is dropped.
    pub(crate) is_cancelled: bool,
    /// Its answer holds a connection.
    pub(crate) holds: bool,
    /// The transaction inside of which it was made.
    pub(crate) place: f64,
    /// It was made and is not to begin yet.
    pub(crate) held: Option<Box<InLine>>,
}

/// The place of a call that was not begun.
pub(crate) struct InLine {
    pub(crate) spot: Spot,
    /// `None` for what has no deadline.
    held: Option<Held>,
}

/// Where more comes from. Most are calls, so that one is not boxed.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Source {
    Call(FrontCall),
    /// The next part of batches or of a live query, by its number.
    Next(f64),
    /// From nowhere: only rows are left.
    Over,
}

/// What a poll came to.
pub(crate) enum Step {
    Ready(flatwater::Result<Output>),
    Lists(Lists),
    Yields,
    Waits,
}

impl Waiting {
    pub(crate) fn new(source: Source, read_as: ReadAs) -> Self {
        Self { source, read_as, rest: None, is_cancelled: false, holds: false, place: -1.0, held: None }
    }

    /// The queue in which it takes its place, unless it has begun.
    pub(crate) fn line(&mut self, handles: &Handles) -> Option<usize> {
        match &mut self.source {
            Source::Call(call) => call.line(),
            Source::Next(number) => handles.get(*number)?.line(),
            Source::Over => None,
        }
    }

    /// Holds it: it has this place, and is told under the token.
    pub(crate) fn hold(&mut self, spot: Spot, mailbox: &Arc<dyn Mailbox>, token: u64) {
        let held = if let Source::Call(call) = &self.source { Some(call.hold(mailbox, token)) } else { None };
        self.held = Some(Box::new(InLine { spot, held }));
    }

    /// Returns the place of one that is to begin now: its turn has come, or its deadline. `Err` if it is to wait.
    pub(crate) fn release(&mut self, lines: &Lines) -> Result<Option<Spot>, ()> {
        let is_late = |held: &Held| held.is_late();
        let is_due = |of: &InLine| lines.is_first(of.spot) || of.held.as_ref().is_some_and(is_late);
        if self.held.as_deref().is_some_and(|of| !is_due(of)) {
            return Err(());
        }
        let Some(InLine { spot, held }) = self.held.take().map(|of| *of) else { return Ok(None) };
        if let (Source::Call(call), Some(held)) = (&mut self.source, held) {
            call.release(&held);
        }
        Ok(Some(spot))
    }

    /// Polls it. Without a mailbox it only looks.
    pub(crate) fn poll(&mut self, handles: &Handles, mailbox: Option<(&Arc<dyn Mailbox>, u64)>) -> Step {
        if let Some(lists) = self.rest.take() {
            return Step::Lists(lists);
        }
        match &mut self.source {
            Source::Call(call) => match call.poll(mailbox) {
                Polled::Ready(result) => Step::Ready(result),
                Polled::Part(rows) => Step::Lists(Arc::new(rows).into()),
                Polled::Yields => Step::Yields,
                Polled::Waits => Step::Waits,
            },
            Source::Next(number) => {
                let waker =
                    mailbox.map_or_else(|| Waker::noop().clone(), |(mailbox, token)| waker(mailbox.clone(), token));
                let next = handles.get(*number).and_then(|mut of| of.poll_next(&mut Context::from_waker(&waker)));
                match next {
                    Some(Poll::Ready(result)) => Step::Ready(result),
                    Some(Poll::Pending) => Step::Waits,
                    None => Step::Ready(Ok(Output::Done(()))),
                }
            }
            Source::Over => Step::Ready(Ok(Output::Done(()))),
        }
    }

    /// Gives it up. Returns true if it may have written, or may still: it then goes on until its outcome is known, and returns
    /// that.
    pub(crate) fn give_up(&mut self) -> bool {
        self.is_cancelled = true;
        if matches!(self.source, Source::Over) && self.rest.as_ref().is_some_and(Lists::is_of_write) {
            return true;
        }
        self.rest = None;
        if let Source::Call(call) = &mut self.source { call.interrupt() } else { false }
    }
}
