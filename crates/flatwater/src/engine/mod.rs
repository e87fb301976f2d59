//! The engine of one file: its writer, its readers and its checkpointer, connected to each other.
//!
//! Owns: opening. Runs on the thread that opens. Invariant: the guards are held from before the first request until just
//! before the last connection closes. Leaves out: closing (`closing`), the table of open files, the API's types, and
//! everything that a worker decides by itself.

pub(crate) mod awaited;
pub(crate) mod caller;
mod closing;
mod connect;
pub(crate) mod dispatch;
mod eviction;
mod file_table;
pub(crate) mod handle;
mod observe;
pub(crate) mod opening;
pub(crate) mod parking;
pub(crate) mod registry;
pub(crate) mod server;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use flatwater_sqlite::{InUse, at_exit};

pub(crate) use closing::Closed;
use closing::{Closing, Hold};
use connect::{checkpointer, live_queries};
use opening::Opening;

use crate::file::guard::{self, Guard};
use crate::file::observed::ObservedFile;
use crate::file::watch::Watch;
use crate::options::Options;
use crate::stats::Stats;
use crate::stats::query_counters::ReaderCounters;
use crate::workers::checkpoint::Checkpointer;
use crate::workers::context::Context;
use crate::workers::interfaces::TakesOver;
use crate::workers::live::LiveQueries;
use crate::workers::own_connections::list::OwnConnections;
use crate::workers::own_connections::{Given, OwnConnection};
use crate::workers::readers::Readers;
use crate::workers::writer::{Writer, optimize_again_and_again};
use flatwater_base::error::cause::no_thread;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::lock;
use flatwater_base::time::{later, timer};

pub(crate) struct Engine {
    pub(crate) context: Arc<Context>,
    /// `None` if the database is opened for reading only.
    pub(crate) writer: Option<Writer>,
    /// `None` if the writer's connection is the only one.
    pub(crate) readers: Option<Readers>,
    /// `None` where this crate does not checkpoint, or where there is no WAL.
    checkpointer: Option<Checkpointer>,
    live: LiveQueries,
    /// The connections of callers.
    pub(crate) own: Arc<OwnConnections>,
    /// The journal mode in which the file was found, or to which it was switched.
    journal: String,
    /// Where it shows its figures, with the option `observe`.
    observed: Option<ObservedFile>,
    hold: Mutex<Hold>,
    closing: Mutex<Closing>,
    /// For parking.
    recent: parking::Use,
    /// Set when `closing` leaves `Open`; every call reads it without the lock.
    is_closing: AtomicBool,
}

impl Engine {
    /// Opens the database of resolved options. Blocks, for as long as the opening is wanted.
    pub(crate) fn open(options: Options, opening: &Opening) -> Result<Arc<Self>> {
        let in_use = InUse::new();
        let timer = timer::keep().map_err(|error| no_thread("the timer's thread", &error))?;
        let context = Context::new(options);
        let Context { options, watch, .. } = &*context;
        let until = later(Instant::now(), options.busy_timeout);
        let may_be_parked = !options.is_memory() && !options.read_only;
        let is_over = || opening.is_wanted().is_err() || Instant::now() >= until;
        let wait = || parking::wait_for_room(&is_over);
        let _permit = may_be_parked.then(wait).transpose()?;
        let (writer, readers, journal) = workers(&context, opening)?;
        if let Some(watch) = watch.as_ref().filter(|_| journal == "wal" && !options.read_only) {
            watch.guard()?;
        }
        if let Some(Err(error)) = watch.as_ref().map(|watch| watch.look_at_open()) {
            // Before the connections close: a second library must not lose its WAL because this open is refused.
            watch.iter().filter_map(Watch::unguard).for_each(Guard::keep);
            drop((writer, readers));
            guard::close_kept();
            return Err(error.in_operation("open"));
        }
        let checkpointer = checkpointer(&context, writer.as_ref(), readers.as_ref());
        if let (Some(watch), Some(readers)) = (watch, &readers) {
            let others = checkpointer.as_ref().map(Checkpointer::letting_go);
            let readers = readers.letting_go();
            watch.drains.tell(Box::new(move || {
                readers();
                others.iter().for_each(|others| others());
            }));
        }
        if let Some(writer) = &writer {
            optimize_again_and_again(writer);
        }
        let live = live_queries(&context, writer.as_ref(), readers.as_ref());
        let observed = context.options.observe.then(|| ObservedFile::new(&context.options.path));
        let engine = Arc::new(Self {
            context,
            writer,
            readers,
            checkpointer,
            live,
            own: Arc::default(),
            journal,
            observed,
            hold: Mutex::new(Hold { in_use: Some(in_use), timer: Some(timer), ..Hold::default() }),
            closing: Mutex::new(Closing::Open),
            recent: parking::Use::default(),
            is_closing: AtomicBool::new(false),
        });
        engine.may_be_parked();
        if engine.is_encrypted() {
            at_exit(registry::close_encrypted);
        }
        Ok(engine)
    }

    fn is_encrypted(&self) -> bool {
        self.context.options.key.is_some()
    }

    /// Returns an error if `options` differ from those the database was opened with.
    pub(crate) fn admits(&self, options: &Options) -> Result<()> {
        let wants_to_write = (self.context.options.read_only && !options.read_only).then_some("read_only");
        let Some(option) = wants_to_write.or_else(|| self.context.options.difference(options)) else { return Ok(()) };
        Err(Error::new(ErrorCode::OtherOptions, format!(
            "{} is open in this process with another value of the option `{option}`",
            self.context.options.path.display()
        ))
        .with_hint("open it everywhere with the same options, or share one handle; a program that loads its code anew closes the old handle first")
        .in_operation("open"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.context.options.path
    }

    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.context.watch.as_ref()
    }

    /// Returns true if the engine is closed or closing: then new calls are refused.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    pub(crate) fn stats(&self) -> Stats {
        let tally = self.readers.as_ref().map_or_else(ReaderCounters::default, Readers::tally);
        let mut stats = self.context.recorder.snapshot(&tally);
        stats.writes_waiting = self.writer.as_ref().map_or(0, Writer::waiting);
        stats.reads_waiting = self.readers.as_ref().map_or(0, Readers::waiting);
        stats.journal.clone_from(&self.journal);
        stats.one_connection = self.readers.is_none();
        stats.wal.oldest_read = self.readers.as_ref().and_then(Readers::oldest).map(|oldest| oldest.age());
        stats.readers_held = self.readers.as_ref().map_or(0, Readers::held);
        stats.live = self.live.stats();
        stats.prepared_again = self.context.catalogue.prepared_again();
        stats.second_copies = self.watch().map_or(0, Watch::second_copies);
        stats
    }

    /// Returns a connection for one caller, with these options.
    pub(crate) fn own_connection(&self, options: Options) -> Arc<OwnConnection> {
        OwnConnection::new(Given {
            context: self.context.clone(),
            options: Arc::new(options),
            functions: self.context.functions.clone(),
            writer: self.writer.clone(),
            list: self.own.clone(),
            journal: self.journal.clone(),
        })
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        lock(&self.hold)
    }
}

/// Opens the connections of a new engine. Returns the worker that writes, unless the database is only read, the one that reads,
/// if there are readers, and the journal mode in lower case.
fn workers(context: &Arc<Context>, opening: &Opening) -> Result<(Option<Writer>, Option<Readers>, String)> {
    let options = &context.options;
    let readers = |writer: Option<Arc<dyn TakesOver>>| Readers::new(context.clone(), writer);
    if options.read_only {
        let readers = readers(None);
        let journal = readers.open_one(&opening.ticket)?;
        return Ok((None, Some(readers), journal));
    }
    let writer = Writer::open(context, &opening.ticket)?;
    let journal = writer.journal().to_owned();
    let readers = (journal == "wal").then(|| readers(Some(Arc::new(writer.clone()))));
    let opens_plainly = options.attach.is_empty() && !options.has_foreign_code() && options.on_open.is_empty();
    if let Some(readers) = readers.as_ref().filter(|_| !opens_plainly) {
        // Opens one reader, so that an error that only readers find occurs at open and not at the first read.
        readers.open_one(&opening.ticket)?;
    }
    Ok((Some(writer), readers, journal))
}
