//! A handle to an open database, or to a server: `open` returns it, and all its clones share it.
//!
//! Owns: the rights of this caller, who listens to its calls, and leaving the engine. Dropping the last clone leaves the
//! engine; the last handle to leave begins to close it. Runs on the callers' threads. Invariants: a handle leaves once; a
//! read-only handle never writes, whatever other handles to the same engine may do. After a fork the child uses nothing of
//! it, and does not even drop it; it opens its own. Leaves out: serving.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use flatwater_sqlite::{Origin, is_forked, may_open, notice_forks};

use super::opening::Opening;
use super::registry;
use super::server::{Served, Server};
use crate::engine::{Closed, Engine};
use crate::events::statement_event::Listener;
use crate::file::mount::refuse_network;
use crate::file::second_library::note_inherited;
use crate::options::{MEMORY, Options};
use crate::queue::ticket::CallOptions;
use crate::workers::context::Context;
use crate::workers::shared_errors::not_on_a_server;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::lock;

/// What a front end keeps with a handle.
pub(crate) type Mark = Box<dyn Any + Send + Sync>;

/// What serves the calls of a handle.
pub(crate) enum Host {
    Engine(Arc<Engine>),
    Server(Served),
}

pub(crate) struct Handle {
    pub(crate) host: Host,
    origin: Origin,
    /// It was opened to read only.
    pub(crate) read_only: bool,
    /// The time of each call, unless it has its own.
    timeout: Option<Duration>,
    /// Who is told of the calls of this handle, besides the listener of the engine. The mark is true if there is one.
    listener: Mutex<Option<Listener>>,
    is_heard: AtomicBool,
    /// Kept for a front end.
    mark: OnceLock<Mark>,
    left: AtomicBool,
    /// Set when the caller that opened the database gets this handle.
    is_delivered: AtomicBool,
    /// Held while the handle leaves, so that a second `close` finds the close begun.
    leaving: Mutex<()>,
}

impl Handle {
    /// Opens the database, or joins the engine that has it open. Blocks, for as long as the opening is wanted.
    pub(crate) fn open(options: Options, opening: &Opening) -> Result<Self> {
        prepare_child()?;
        let options = options.resolve()?;
        let (read_only, timeout) = (options.read_only, options.timeout);
        if !options.allow_network_filesystem {
            let attached = options.attach.iter().filter(|attached| !attached.immutable).map(|attached| &*attached.path);
            let main = (!options.assume_immutable).then_some(&*options.path);
            let mut files = main.into_iter().chain(attached).filter(|path| path.as_os_str() != MEMORY);
            files.try_for_each(refuse_network)?;
        }
        if options.is_memory() {
            return Ok(Self::new(Host::Engine(Engine::open(options, opening)?), false, timeout));
        }
        Ok(Self::new(Host::Engine(registry::open(&options, opening)?), read_only, timeout))
    }

    /// Returns a handle to a server. Does not block.
    pub(crate) fn to_server(server: Arc<dyn Server>, options: Options) -> Self {
        let timeout = options.timeout;
        // Its thread is not in a child.
        notice_forks();
        Self::new(Host::Server(Served::by(server, options)), false, timeout)
    }

    fn new(host: Host, read_only: bool, timeout: Option<Duration>) -> Self {
        Self {
            host,
            origin: Origin::here(),
            read_only,
            timeout,
            listener: Mutex::default(),
            is_heard: AtomicBool::new(false),
            mark: OnceLock::new(),
            left: AtomicBool::new(false),
            is_delivered: AtomicBool::new(false),
            leaving: Mutex::new(()),
        }
    }

    /// Returns the engine, if one serves the calls.
    pub(crate) fn engine(&self) -> Option<&Arc<Engine>> {
        if let Host::Engine(engine) = &self.host { Some(engine) } else { None }
    }

    /// Returns the engine, or an error that says of what a server does not have.
    pub(super) fn own_engine(&self, what: &str) -> Result<&Arc<Engine>> {
        self.engine().ok_or_else(|| not_on_a_server(what))
    }

    pub(crate) fn context(&self) -> &Context {
        match &self.host {
            Host::Engine(engine) => &engine.context,
            Host::Server(served) => &served.context,
        }
    }

    /// Returns true if this process was forked while the handle existed: its connections belong to the parent process.
    pub(crate) fn is_inherited(&self) -> bool {
        self.origin.is_inherited()
    }

    /// Returns an error in a process that was forked while the handle existed.
    pub(crate) fn refuse_inherited(&self) -> Result<()> {
        if self.is_inherited() { Err(inherited()) } else { Ok(()) }
    }

    /// Returns a number that identifies the open database.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self.context()).addr()
    }

    /// Returns the options that a call takes from its handle.
    pub(crate) fn call_options(&self) -> CallOptions {
        CallOptions { read_only: self.read_only, ..CallOptions::within(self.timeout) }
    }

    /// Sets who is told of the calls of this handle that end from now on, if they began while somebody listened.
    pub(crate) fn set_listener(&self, listener: Option<Listener>) {
        let mut own = lock(&self.listener);
        self.is_heard.store(listener.is_some(), Ordering::Relaxed);
        let before = std::mem::replace(&mut *own, listener);
        drop(own);
        // What it owns may be foreign code.
        drop(before);
    }

    /// Sets the mark of the front end, unless there is one.
    pub(crate) fn set_mark(&self, mark: Mark) {
        let _ = self.mark.set(mark);
    }

    #[inline]
    pub(crate) fn mark(&self) -> Option<&Mark> {
        self.mark.get()
    }

    /// Returns true if somebody listens to the calls of this handle.
    #[inline]
    pub(crate) fn is_heard(&self) -> bool {
        self.is_heard.load(Ordering::Relaxed)
    }

    pub(crate) fn listener(&self) -> Option<Listener> {
        lock(&self.listener).clone()
    }

    /// Returns true if the handle was closed, or the engine is closed or closing: then new calls are refused.
    pub(crate) fn is_closed(&self) -> bool {
        self.left.load(Ordering::Acquire) || self.engine().is_some_and(|engine| engine.is_closed())
    }

    /// Called when the caller that opened the database gets this handle.
    pub(crate) fn deliver(&self) {
        self.is_delivered.store(true, Ordering::Release);
        if let Some(engine) = self.engine() {
            registry::deliver(engine);
        }
    }

    /// Leaves the engine, unless the handle has left before. `promise` is filled when the engine is closed, or at once
    /// if other handles have the file open.
    pub(crate) fn close(&self, promise: Option<Closed>) {
        let engine = match &self.host {
            Host::Engine(engine) => engine,
            Host::Server(served) => {
                self.left.store(true, Ordering::Release);
                return served.close(promise);
            }
        };
        let leaving = lock(&self.leaving);
        let leaves = !self.left.swap(true, Ordering::AcqRel);
        let reservation = leaves.then(|| registry::leave(engine, self.is_delivered.load(Ordering::Acquire))).flatten();
        // The close has begun, for whoever comes after this. It wakes streams, and on this thread it may run to its end.
        drop(leaving);
        match reservation {
            Some(reservation) => engine.close(promise, reservation, engine.context.options.close_wait),
            None => engine.when_closed(promise),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.is_inherited() {
            // The connections belong to the parent process.
            return match &self.host {
                Host::Engine(engine) => std::mem::forget(engine.clone()),
                Host::Server(served) => served.forget(),
            };
        }
        if !self.left.load(Ordering::Acquire) {
            self.close(None);
        }
    }
}

/// Called before a database is opened: in a forked child, keeps what is opened apart from what the child inherited.
fn prepare_child() -> Result<()> {
    if is_forked() {
        note_inherited();
    }
    if may_open() {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::Forked,
        "this process was forked while a database was open, so on this system it cannot open databases",
    )
    .with_hint("fork before the first open, or start the child with exec")
    .in_operation("open"))
}

/// Returns the error for the use of what the parent process opened.
#[cold]
pub(crate) fn inherited() -> Error {
    Error::new(
        ErrorCode::Forked,
        "this process was forked while the database was open, so this handle belongs to its parent",
    )
    .with_hint("open the database again in the child, or start the child with exec")
}

/// Returns the error for a call from a closure, an SQL function or a waker that runs on one of Flatwater's threads.
#[cold]
pub(crate) fn called_from_within() -> Error {
    Error::new(ErrorCode::CallsItself, "a function, a closure, or a thread of the database itself called the database")
        .with_hint("calling it here would wait for itself: a function has its arguments, a closure its own connection")
}
