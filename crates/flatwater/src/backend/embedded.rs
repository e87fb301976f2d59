//! The embedded backend: the writer and the readers of one file, wired together.
//!
//! Owns: who serves what, opening, and closing in the right order. Invariants: the writer's connection is the last one
//! closed, so that SQLite's own last-close checkpoint runs there; what was asked before the close is done. Leaves out:
//! the API's types, and everything a worker decides by itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::connection::catalogue::{Catalogue, Text};
use crate::connection::class::Route;
use crate::stats::{Recorder, Stats};
use crate::types::error::{Error, Kind, Result};
use crate::types::options::Options;
use crate::types::time::later;
use crate::waiting::bounded::Place;
use crate::waiting::reply::{Promise, wake};
use crate::waiting::timer;
use crate::workers::readers::Readers;
use crate::workers::request::{Answer, Request, Work};
use crate::workers::writer::Writer;

/// Who serves a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Writer,
    Readers,
}

pub(crate) struct Engine {
    options: Arc<Options>,
    catalogue: Arc<Catalogue>,
    recorder: Arc<Recorder>,
    /// `None` if the database is only read.
    writer: Option<Writer>,
    /// `None` if the writer's connection is the only one.
    readers: Option<Readers>,
    closing: Mutex<Closing>,
    /// Set when `closing` leaves `Open`; read by every call, without the lock.
    is_closing: AtomicBool,
}

enum Closing {
    Open,
    /// Who waits for the end.
    Waits(Vec<Promise<Result<Answer>>>),
    Closed,
}

impl Engine {
    /// Opens the database. Blocks.
    pub(crate) fn open(options: Options) -> Result<Arc<Self>> {
        options.check()?;
        let options = Arc::new(options.anchored()?);
        let catalogue = Arc::new(Catalogue::new());
        let recorder = Arc::new(Recorder::new());
        let writer = (!options.read_only)
            .then(|| Writer::open(options.clone(), catalogue.clone(), recorder.clone()))
            .transpose()?;
        let readers = (!options.is_memory()).then(|| Readers::new(options.clone(), recorder.clone()));
        if let (None, Some(readers)) = (&writer, &readers) {
            readers.open_one()?;
        }
        let closing = Mutex::new(Closing::Open);
        let is_closing = AtomicBool::new(false);
        Ok(Arc::new(Self { options, catalogue, recorder, writer, readers, closing, is_closing }))
    }

    pub(crate) fn text(&self, sql: &str) -> Arc<Text> {
        self.catalogue.text(sql)
    }

    /// Who serves `work`, as far as is known. Where the guess is wrong the writer reads, or a reader hands it back.
    pub(crate) fn server(&self, work: &Work) -> Server {
        let reads = match work {
            Work::Query { text, .. } if self.writer.is_none() => text.route() != Some(Route::Write),
            work => work.only_reads(),
        };
        if reads && self.readers.is_some() { Server::Readers } else { Server::Writer }
    }

    /// Pushes the request to its server.
    pub(crate) fn push(&self, server: Server, request: Request) -> Result<Place> {
        match (server, &self.writer, &self.readers) {
            (Server::Readers, _, Some(readers)) => readers.push(request),
            (_, Some(writer), _) => writer.push(request),
            _ if self.is_closed() => Err(Error::closed()),
            _ => Err(self.read_only()),
        }
    }

    /// The caller behind `place` is gone.
    pub(crate) fn leave(&self, server: Server, place: Place) {
        match (server, &self.writer, &self.readers) {
            (Server::Readers, _, Some(readers)) => readers.leave(place),
            (_, Some(writer), _) => writer.leave(place),
            _ => {}
        }
    }

    /// Runs the request on this thread, which may block, if a connection is free for it. Otherwise it comes back.
    pub(crate) fn run_here(&self, server: Server, request: Request) -> Option<Request> {
        match (server, &self.writer, &self.readers) {
            (Server::Readers, _, Some(readers)) => readers.run_here(request),
            (_, Some(writer), _) => writer.run_here(request),
            _ => Some(request),
        }
    }

    /// Whether a write is queued or running. While one is, a reader's failure to prepare a text does not count: the
    /// table it misses may be on its way.
    pub(crate) fn has_active_writes(&self) -> bool {
        self.writer.as_ref().is_some_and(Writer::is_active)
    }

    fn read_only(&self) -> Error {
        let code = flatwater_sqlite::SqliteError::from_code(rusqlite::ffi::SQLITE_READONLY);
        Error::from(code)
            .with_kind(Kind::Misuse)
            .with_message(format!("{} was opened to be read only", self.options.path.display()))
            .hint("open it without `Options::read_only` to write")
    }

    /// Whether it is closed or about to: what begins now is refused.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    pub(crate) fn stats(&self) -> Stats {
        let mut stats = self.recorder.snapshot();
        stats.writes_waiting = self.writer.as_ref().map_or(0, Writer::waiting);
        stats.reads_waiting = self.readers.as_ref().map_or(0, Readers::waiting);
        stats
    }

    fn lock_closing(&self) -> std::sync::MutexGuard<'_, Closing> {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to close, unless that was begun before. `promise` is filled at the end.
    pub(crate) fn close(self: &Arc<Self>, promise: Option<Promise<Result<Answer>>>) {
        self.is_closing.store(true, Ordering::Release);
        let mut closing = self.lock_closing();
        match &mut *closing {
            Closing::Open => *closing = Closing::Waits(promise.into_iter().collect()),
            Closing::Waits(others) => return others.extend(promise),
            Closing::Closed => {
                drop(closing);
                return fill(promise);
            }
        }
        drop(closing);
        let deadline = later(Instant::now(), self.options.close_wait);
        let (first, last) = (self.clone(), self.clone());
        let close_readers = move || {
            if let Some(readers) = &first.readers {
                readers.close(deadline);
            }
        };
        match &self.writer {
            Some(writer) => {
                let open = writer.clone();
                let alarm = timer::at(deadline, move || open.end_transactions());
                if alarm.is_err() {
                    writer.end_transactions();
                }
                let before = Box::new(move || {
                    drop(alarm);
                    close_readers();
                });
                writer.close(before, Box::new(move || last.closed()));
            }
            None => {
                let close = move || {
                    close_readers();
                    last.closed();
                };
                // Without a thread the readers are closed when the last of them ends, and nobody is told.
                let _ = std::thread::Builder::new().name("fw-close".into()).spawn(close);
            }
        }
    }

    /// Everything is closed.
    fn closed(&self) {
        let before = std::mem::replace(&mut *self.lock_closing(), Closing::Closed);
        if let Closing::Waits(promises) = before {
            promises.into_iter().for_each(|promise| fill(Some(promise)));
        }
    }
}

/// The engine, as long as anybody can use it: dropping the last one begins to close it, in the background.
pub(crate) struct Handle(pub(crate) Arc<Engine>);

impl Handle {
    /// Tells open databases apart.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close(None);
    }
}

fn fill(promise: Option<Promise<Result<Answer>>>) {
    if let Some(promise) = promise
        && let Ok(Some(waker)) = promise.fill(Ok(Answer::Done))
    {
        wake(Some(waker));
    }
}
