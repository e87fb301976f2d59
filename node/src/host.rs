//! The state of one environment: a main thread or a worker thread of Node.
//!
//! Owns: the inbox of its loop, the calls that wait, and what its objects stand for. Runs on the loop's thread. Invariants: nothing is
//! borrowed while code of JavaScript may run; a call that waits has been polled with the mailbox. Leaves out: making calls (`calls`).

use std::cell::RefCell;
use std::sync::Arc;

use flatwater::bindings::{FrontCall, Mailbox, host_tells_of_turns};
use flatwater_bridge::{Flat, Inbox, Tokens};

use crate::capi::cells::Cells;
use crate::capi::value::{Env, Result, Value};
use crate::capi::wake::Wake;
use crate::codes::{DONE, YIELDS};
use crate::events::Events;
use crate::failure::Failure;
use crate::functions::serves::Serves;
use crate::handles::{Handles, token};
use crate::lines::{Lines, Spot};
use crate::reading_as::ReadAs;
use crate::schemas::Schemas;
use crate::waiting::{Source, Step, Waiting};

pub(crate) struct Host {
    /// Dropped first: what waits for this environment does not wait for it to end.
    pub(crate) serves: Serves,
    /// Rung when no database uses one of the modules of functions that this environment serves.
    pub(crate) unused: Wake,
    inbox: Arc<Inbox>,
    mailbox: Arc<dyn Mailbox>,
    pub(crate) wake: Wake,
    pub(crate) cells: Cells,
    waiting: RefCell<Tokens<Option<Waiting>>>,
    pub(crate) handles: Handles,
    pub(crate) lines: Lines,
    pub(crate) flat: RefCell<Flat>,
    pub(crate) schemas: RefCell<Schemas>,
    pub(crate) failure: RefCell<Option<Failure>>,
    pub(crate) events: Events,
    /// Tokens that were read and not handed out.
    noted: RefCell<Vec<u64>>,
}

impl Host {
    pub(crate) fn new() -> Self {
        host_tells_of_turns();
        let wake = Wake::default();
        let bell = wake.clone();
        let inbox = Inbox::new(move || bell.ring());
        Self {
            serves: Serves::new(),
            unused: Wake::default(),
            mailbox: inbox.clone(),
            inbox,
            wake,
            cells: Cells::default(),
            waiting: RefCell::default(),
            handles: Handles::default(),
            lines: Lines::default(),
            flat: RefCell::default(),
            schemas: RefCell::default(),
            failure: RefCell::default(),
            events: Events::default(),
            noted: RefCell::default(),
        }
    }

    /// Begins a call that returns no rows.
    pub(crate) fn call<'e>(&self, env: Env<'e>, call: FrontCall) -> Result<Value<'e>> {
        self.begin(env, Waiting::new(Source::Call(call), ReadAs::default()))
    }

    /// Begins what was made now, or has it wait behind what was made before.
    pub(crate) fn begin<'e>(&self, env: Env<'e>, mut waiting: Waiting) -> Result<Value<'e>> {
        match self.lines.has(|| waiting.line(&self.handles)) {
            Some(line) => self.hold(env, waiting, |token| self.lines.join(line, token)),
            None => self.go_on(env, waiting, None),
        }
    }

    /// The same for what has its place already.
    pub(crate) fn begin_in_line<'e>(&self, env: Env<'e>, waiting: Waiting, spot: Spot) -> Result<Value<'e>> {
        if !self.lines.is_first(spot) {
            return self.hold(env, waiting, |token| {
                self.lines.was_read(spot, token);
                spot
            });
        }
        let answer = self.go_on(env, waiting, None);
        self.leave(spot);
        answer
    }

    fn hold<'e>(&self, env: Env<'e>, mut waiting: Waiting, spot: impl FnOnce(u64) -> Spot) -> Result<Value<'e>> {
        let token = self.waiting.borrow_mut().add(None);
        waiting.hold(spot(token), &self.mailbox, token);
        env.number(self.keep(waiting, Some(token)) as f64)
    }

    /// Leaves a line. The call that is first then is polled soon.
    pub(crate) fn leave(&self, spot: Spot) {
        if let Some(token) = self.lines.leave(spot) {
            self.mailbox.ready(token);
            self.mailbox.flush();
        }
    }

    /// Goes on with what waits under the token.
    pub(crate) fn poll<'e>(&self, env: Env<'e>, number: f64) -> Result<Value<'e>> {
        let found = token(number).and_then(|token| Some((token, self.waiting.borrow_mut().get_mut(token)?.take()?)));
        match found {
            Some((token, mut waiting)) => {
                let Ok(spot) = waiting.release(&self.lines) else {
                    return env.number(self.keep(waiting, Some(token)) as f64);
                };
                // What cannot be answered is of no use any more.
                let answer = self.go_on(env, waiting, Some(token)).inspect_err(|_| self.forget(Some(token)));
                spot.into_iter().for_each(|spot| self.leave(spot));
                answer
            }
            None => self.numbers(env, &[0.0, 0.0]),
        }
    }

    /// Polls a call until it answers or waits. It keeps its token, and gets one if it has none and waits.
    pub(crate) fn go_on<'e>(&self, env: Env<'e>, mut waiting: Waiting, token: Option<u64>) -> Result<Value<'e>> {
        self.events.begin();
        match waiting.poll(&self.handles, None) {
            Step::Waits => {
                let token = token.unwrap_or_else(|| self.waiting.borrow_mut().add(None));
                match waiting.poll(&self.handles, Some((&self.mailbox, token))) {
                    Step::Waits => env.number(self.keep(waiting, Some(token)) as f64),
                    step => self.stepped(env, waiting, Some(token), step),
                }
            }
            step => self.stepped(env, waiting, token, step),
        }
    }

    fn stepped<'e>(&self, env: Env<'e>, waiting: Waiting, token: Option<u64>, step: Step) -> Result<Value<'e>> {
        match step {
            Step::Ready(Ok(output)) => self.answer(env, waiting, token, output),
            Step::Ready(Err(error)) => {
                self.forget(token);
                self.failed(env, error)
            }
            Step::Lists(lists) => self.lists(env, waiting, token, lists),
            Step::Yields => {
                let token = self.keep(waiting, token);
                self.numbers(env, &[token as f64])?;
                env.number(YIELDS)
            }
            Step::Waits => env.number(self.keep(waiting, token) as f64),
        }
    }

    /// Keeps what goes on under its token, or a new one.
    pub(crate) fn keep(&self, waiting: Waiting, token: Option<u64>) -> u64 {
        let mut all = self.waiting.borrow_mut();
        match token {
            Some(token) => {
                if let Some(place) = all.get_mut(token) {
                    *place = Some(waiting);
                }
                token
            }
            None => all.add(Some(waiting)),
        }
    }

    pub(crate) fn forget(&self, token: Option<u64>) {
        let gone = token.and_then(|token| self.waiting.borrow_mut().take(token));
        drop(gone);
    }

    /// Gives a call up. Returns true if it is to be waited for: its write runs.
    pub(crate) fn give_up(&self, number: f64) -> bool {
        let Some(token) = token(number) else { return false };
        let waiting = self.waiting.borrow_mut().get_mut(token).and_then(Option::take);
        let Some(mut waiting) = waiting else { return false };
        if let Some(held) = waiting.held.take() {
            self.leave(held.spot);
        }
        if waiting.give_up() {
            self.keep(waiting, Some(token));
            return true;
        }
        self.forget(Some(token));
        false
    }

    /// The process ends: lets go of what holds a connection, and closes the databases. Writes that were submitted are finished.
    pub(crate) fn end(&self) {
        // No JavaScript runs from here on.
        self.serves.end();
        let mut all = self.waiting.borrow_mut();
        let held: Vec<_> =
            all.iter_mut().filter(|of| of.as_ref().is_some_and(|of| of.holds)).map(Option::take).collect();
        drop(all);
        drop(held);
        self.handles.close();
    }

    /// Puts at most so many of the tokens that were noted into the cells. Returns their number, and in the last cell how many
    /// are left.
    pub(crate) fn drain<'e>(&self, env: Env<'e>, most: f64) -> Result<Value<'e>> {
        let mut noted = self.noted.borrow_mut();
        self.inbox.read(&mut noted);
        let count = self.cells.with(|cells| {
            let count = noted.len().min(most as usize).min(cells.len().saturating_sub(1));
            for (cell, token) in cells.iter_mut().zip(noted.drain(..count)) {
                *cell = token as f64;
            }
            if let Some(last) = cells.last_mut() {
                *last = noted.len() as f64;
            }
            count
        });
        env.number(count as f64)
    }

    /// Answers that nothing was to be done.
    pub(crate) fn done<'e>(&self, env: Env<'e>) -> Result<Value<'e>> {
        env.number(DONE)
    }
}
