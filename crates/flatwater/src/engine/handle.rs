//! One caller's hold on an open database: what `open` answers, and all its clones share.
//!
//! Owns: the rights of this caller, and leaving. Dropping the last clone leaves the engine; whoever is the last to leave
//! begins to close it. Invariants: a handle leaves once; a handle that may only read never writes, whatever others with
//! the same engine may. After a fork nothing of it is used in the child, not even dropped. Leaves out: serving.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flatwater_sqlite::is_stranded;

use super::dispatch::Route;
use super::registry;
use crate::engine::{Closed, Engine};
use crate::error::{Error, Result};
use crate::file::mount::refuse_network;
use crate::options::{MEMORY, Options};
use crate::queue::ticket::CallOptions;
use crate::sql;
use crate::workers::refusals::opened_to_read;
use crate::workers::request::Work;
use crate::workers::session::Inside;

pub(crate) struct Handle {
    engine: Arc<Engine>,
    read_only: bool,
    left: AtomicBool,
    /// Held while it leaves: who leaves again meanwhile finds the close begun.
    leaving: Mutex<()>,
}

impl Handle {
    /// Opens the database, or joins the engine that has it open. Blocks.
    pub(crate) fn open(options: Options) -> Result<Self> {
        refuse_forked().map_err(|error| error.in_operation("open"))?;
        let options = options.resolve()?;
        let read_only = options.read_only;
        if !options.network_filesystem {
            let attached = options.attach.iter().filter(|attached| !attached.immutable).map(|attached| &*attached.path);
            let main = (!options.immutable).then_some(&*options.path);
            let mut files = main.into_iter().chain(attached).filter(|path| path.as_os_str() != MEMORY);
            files.try_for_each(refuse_network)?;
        }
        if options.is_memory() {
            return Ok(Self::new(Engine::open(options)?, false));
        }
        Ok(Self::new(registry::open(&options)?, read_only))
    }

    fn new(engine: Arc<Engine>, read_only: bool) -> Self {
        Self { engine, read_only, left: AtomicBool::new(false), leaving: Mutex::new(()) }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Tells open databases apart.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.engine).addr()
    }

    /// What a call gets from the handle it is made on.
    pub(crate) fn call_options(&self) -> CallOptions {
        CallOptions { read_only: self.read_only, ..CallOptions::default() }
    }

    /// Whether it was closed, or the engine is about to: what begins now is refused.
    pub(crate) fn is_closed(&self) -> bool {
        self.left.load(Ordering::Acquire) || self.engine.is_closed()
    }

    /// Who serves `work`, as far as is known. Where the guess is wrong the writer reads, or a reader hands it over.
    pub(crate) fn route<'a>(&'a self, inside: Option<&'a Inside>, work: &Work) -> Result<Route<'a>> {
        if let Some(inside) = inside {
            return Ok(Route::Transaction(inside));
        }
        let only_reads = match work {
            Work::Query { text, .. } if self.read_only => text.route() != Some(sql::class::Route::Write),
            work => work.only_reads(),
        };
        // The writer of others' handles may read for this one where it has the only connection.
        let may_use =
            |is_only: bool| !self.read_only || is_only && matches!(work, Work::Query { .. } | Work::ReadWith(_));
        match (&self.engine.readers, &self.engine.writer) {
            (Some(readers), _) if only_reads => Ok(Route::Readers(readers)),
            (readers, Some(writer)) if may_use(readers.is_none()) => Ok(Route::Writer(writer)),
            _ if self.is_closed() => Err(Error::closed()),
            _ => Err(opened_to_read(self.engine.path())),
        }
    }

    /// Leaves, unless that was done before. `promise` is filled when the engine is closed, or at once if others have the
    /// file open.
    pub(crate) fn close(&self, promise: Option<Closed>) {
        let _leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        if self.left.swap(true, Ordering::AcqRel) {
            return self.engine.when_closed(promise);
        }
        match registry::leave(&self.engine) {
            Some(reservation) => self.engine.close(promise, reservation),
            None => self.engine.when_closed(promise),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if is_stranded() {
            // The connections are the parent's.
            return std::mem::forget(self.engine.clone());
        }
        if !self.left.load(Ordering::Acquire) {
            self.close(None);
        }
    }
}

/// For whoever is in a process that was forked while a database was open.
pub(crate) fn refuse_forked() -> Result<()> {
    if !is_stranded() {
        return Ok(());
    }
    Err(Error::misuse("this process was forked while a database was open, so none can be used in it")
        .with_hint("open databases after the fork, or start the child with exec"))
}

/// For a call from a closure, an SQL function or a waker that runs on one of our own threads.
#[cold]
pub(crate) fn called_from_within() -> Error {
    Error::misuse("a closure, or a thread of the database itself, called the database")
        .with_hint("in a closure use the connection it was given; waiting here could wait for itself")
}
