//! Connections of callers: each is a connection that is kept for one caller, who may do with it what SQLite lets it do.
//!
//! Owns: what such a connection is asked to do, and how it ends. Runs on callers' threads, on the timer's and on those that
//! deliver slots, and blocks none. Invariants: requests run in the order in which they were sent, one at a time,
//! whoever sent them; between two requests the connection has no thread; after the end no request is accepted, and
//! every request that waits gets the reason. One lock guards the inbox, and is never held while SQLite runs or a waker
//! does. Leaves out: the order of messages (`kept::inbox`), serving the requests (`serve_inbox`), waiting for the slot
//! (`waits`), running them (`runner`).

mod inline;
pub(super) mod lent_slot;
pub(crate) mod list;
mod runner;
mod serve_inbox;
mod short;
mod statements;
mod waits;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use flatwater_sqlite::{Callbacks, Interrupt, Origin, SqliteError};
use rusqlite::ffi;

use self::lent_slot::LentSlot;
use self::list::OwnConnections;
use self::runner::Runner;
use self::waits::{Waiting, resume};
use crate::connection::functions::Functions;
use crate::options::Options;
use crate::queue::ticket::{CallOptions, Ticket};
use crate::workers::context::Context;
use crate::workers::kept::KeptConnection;
use crate::workers::kept::inbox::{self, End, Inbox, Posted};
use crate::workers::request::{Request, Tried};
use crate::workers::work::Work;
use crate::workers::writer::Writer;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::inline::eligibility::Permit;
use flatwater_base::thread::lock;
use flatwater_base::time::recurring::Recurring;

/// The error for a request that comes after this end.
fn ended(end: &End) -> Error {
    match end {
        End::Closed => Error::closed(),
        End::Lost(error) => {
            Error::new(ErrorCode::Lost, format!("the connection was lost to an earlier error: {}", error.message()))
                .with_hint("make another one")
        }
        _ => Error::new(ErrorCode::Finished, "the connection is closed").with_hint("make another one"),
    }
}

/// What is sent to a connection besides requests.
enum Aside {
    /// The open transaction was idle for its limit: it is rolled back.
    Idle,
    /// A request that has waited for the slot, and what came of that.
    Resumed(Box<Request>, Result<LentSlot>),
}

type Message = inbox::Message<(), Aside>;

/// What an engine gives to each of its connections of callers.
pub(crate) struct Given {
    pub(crate) context: Arc<Context>,
    /// As the engine's, but for what the caller has set.
    pub(crate) options: Arc<Options>,
    pub(crate) functions: Arc<Functions>,
    /// `None` if the database is opened to read only.
    pub(crate) writer: Option<Writer>,
    pub(crate) list: Arc<OwnConnections>,
    /// In lower case.
    pub(crate) journal: String,
}

pub(crate) struct OwnConnection {
    this: Weak<Self>,
    origin: Origin,
    given: Given,
    at: Mutex<At>,
    flags: Arc<Flags>,
    /// What the caller wants to be asked.
    callbacks: Mutex<Callbacks>,
    has_callbacks: AtomicBool,
    in_transaction: AtomicBool,
    total_changes: AtomicU64,
    /// Looks whether its transaction is idle.
    looks: Recurring,
}

struct At {
    inbox: Inbox<Box<Runner>, (), Aside>,
    /// The request at the head of the line waits for the slot, and has the connection.
    waiting: Option<Waiting>,
    /// The number of the last wait.
    waits: u64,
    /// Why there is no transaction any more that its caller believes to be open. It is told once.
    ended: Option<Error>,
    /// It ends as soon as no transaction is open, because the database closes.
    closes: bool,
}

/// What interrupts a statement, besides its caller.
#[derive(Default)]
struct Flags {
    /// Set for the statement that runs.
    interrupted: AtomicBool,
    /// The connection ends, whatever runs.
    ended: AtomicBool,
}

struct Ends(Arc<Ticket>, Arc<Flags>);

impl Interrupt for Ends {
    fn should_stop(&self) -> bool {
        self.0.should_stop() || self.1.interrupted.load(Ordering::Relaxed) || self.1.ended.load(Ordering::Relaxed)
    }

    fn lets_commit(&self) -> bool {
        self.0.lets_commit()
    }
}

impl OwnConnection {
    /// Returns a connection that its first request opens.
    pub(crate) fn new(given: Given) -> Arc<Self> {
        let mut given = given;
        if !given.options.is_memory() {
            given.functions = Arc::new(Functions::over(given.functions));
        }
        let inbox = Inbox::new(Some(Box::new(Runner::of(&given))));
        let at = At { inbox, waiting: None, waits: 0, ended: None, closes: false };
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            origin: Origin::here(),
            given,
            at: Mutex::new(at),
            flags: Arc::default(),
            callbacks: Mutex::default(),
            has_callbacks: AtomicBool::new(false),
            in_transaction: AtomicBool::new(false),
            total_changes: AtomicU64::new(0),
            looks: Recurring::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, At> {
        lock(&self.at)
    }

    fn post(&self, message: Message) -> Result<()> {
        let mut at = self.lock();
        let posted = at.inbox.post(message);
        if let Posted::Refused(_, end) = posted {
            // Before the message, whose promise wakes its caller.
            drop(at);
            return Err(ended(&end));
        }
        self.call(at, matches!(posted, Posted::Call));
        Ok(())
    }

    /// Has a thread serve the messages, if one is to be called, or if the request that waits for the slot has no caller any more.
    fn call(&self, mut at: MutexGuard<'_, At>, calls: bool) {
        let gone = |waiting: &mut Waiting| waiting.request.ticket.is_given_up();
        if calls {
            drop(at);
            self.serve_on_a_thread();
        } else if let Some(waiting) = at.waiting.take_if(gone) {
            resume(self, at, waiting, Err(Error::closed()));
        }
    }

    /// Interrupts what runs now, or waits for the slot. Does not block.
    pub(crate) fn interrupt(&self) {
        let mut at = self.lock();
        if let Some(waiting) = at.waiting.take() {
            let interrupted = SqliteError::from_code(ffi::SQLITE_INTERRUPT);
            resume(self, at, waiting, Err(interrupted.into()));
        } else if at.inbox.at_rest().is_none() {
            self.flags.interrupted.store(true, Ordering::Relaxed);
        }
    }

    /// Changes what the caller is asked, from the next statement on.
    pub(crate) fn set_callbacks(&self, set: impl FnOnce(&mut Callbacks)) {
        let mut callbacks = lock(&self.callbacks);
        let before = callbacks.clone();
        set(&mut callbacks);
        self.has_callbacks.store(true, Ordering::Release);
        drop(callbacks);
        // What it owns is foreign code.
        drop(before);
    }

    /// Returns what the caller wants to be asked, unless it never wanted anything.
    fn callbacks(&self) -> Option<Callbacks> {
        let callbacks = || lock(&self.callbacks).clone();
        self.has_callbacks.load(Ordering::Acquire).then(callbacks)
    }

    /// How many rows were changed on the connection, up to the last statement that ended.
    pub(crate) fn total_changes(&self) -> u64 {
        self.total_changes.load(Ordering::Relaxed)
    }

    /// Called when the database closes: ends the connection as soon as no transaction is open.
    fn close_soon(&self) {
        let mut at = self.lock();
        at.closes = true;
        // Under one lock: a transaction that begins meanwhile goes on.
        let calls = at.inbox.at_rest().is_some() && ends_now(self, &mut at);
        self.call(at, calls);
    }

    /// Called when the time of that close is over: interrupts what runs, and ends the connection.
    fn end_now(&self) {
        self.flags.ended.store(true, Ordering::Relaxed);
        let mut at = self.lock();
        let calls = at.inbox.post_end(End::Closed);
        match at.waiting.take() {
            Some(waiting) => resume(self, at, waiting, Err(Error::closed())),
            None => self.call(at, calls),
        }
    }
}

/// Ends the connection if the database closes and no transaction is open. Returns true if a thread is to be called for it.
fn ends_now(own: &OwnConnection, at: &mut At) -> bool {
    at.closes && !own.in_transaction.load(Ordering::Relaxed) && at.inbox.post_end(End::Closed)
}

impl KeptConnection for OwnConnection {
    fn send(&self, request: Request) -> Result<()> {
        self.post(Message::Request(Box::new(request), ()))
    }

    fn end_cursor(&self, _: u64) {}

    fn end(&self) {
        let mut at = self.lock();
        let calls = at.inbox.post_end(End::Finished);
        self.call(at, calls);
    }

    fn touch(&self) {}

    fn functions(&self) -> Option<&Arc<Functions>> {
        (!self.given.options.is_memory()).then_some(&self.given.functions)
    }

    fn runs_inline(&self) -> bool {
        true
    }

    fn run_inline(&self, work: &Work, permit: &Permit<'_>, options: CallOptions) -> Tried {
        self.run_here(work, permit, options)
    }

    fn in_transaction(&self) -> bool {
        self.in_transaction.load(Ordering::Relaxed)
    }
}

/// A caller's right to a connection. Dropping it rolls back what is open, and closes it.
pub(crate) struct OwnGuard(pub(crate) Arc<OwnConnection>);

impl Drop for OwnGuard {
    fn drop(&mut self) {
        if self.0.origin.is_inherited() {
            // The connection belongs to the parent process.
            return std::mem::forget(self.0.clone());
        }
        self.0.end();
    }
}
