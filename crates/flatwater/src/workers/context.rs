//! What every worker of one engine uses.
//!
//! Owns: the settings, what is learnt and counted, and what guards the file. Shared by all threads that serve the database;
//! each field says itself how it is guarded. Invariant: there is one for each engine, made before the first connection is
//! opened and dropped after the last one is closed. Leaves out: connections, queues and threads, which are the workers'.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::connection::functions::Functions;
use crate::connection::open::has_litestream;
use crate::file::watch::Watch;
use crate::options::{Checkpoint, Inline, Options};
use crate::stats::Recorder;
use crate::turnstile::Turnstile;
use flatwater_base::error::Result;
use flatwater_base::inline::eligibility::InlinePolicy;
use flatwater_sql::catalogue::Catalogue;

pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) catalogue: Catalogue,
    /// Those of every connection; a connection of a caller may have others over them.
    pub(crate) functions: Arc<Functions>,
    pub(crate) recorder: Recorder,
    /// Which calls may run on their caller's thread.
    pub(crate) policy: InlinePolicy,
    /// `None` for a database in memory.
    pub(crate) watch: Option<Watch>,
    /// `None` where the processes that write take no turns.
    pub(crate) turnstile: Option<Turnstile>,
    /// Litestream's tables were seen. They stay, also when Litestream has ended, so this is never taken back.
    litestream: AtomicBool,
}

impl Context {
    /// Opens nothing.
    pub(crate) fn new(options: Options) -> Arc<Self> {
        let recorder = Recorder::new(&options.path);
        Arc::new(Self {
            catalogue: Catalogue::new(),
            functions: Arc::default(),
            policy: InlinePolicy::new(options.inline, Instant::now()),
            watch: (!options.is_memory()).then(|| Watch::new(&options.path, options.allow_second_sqlite)),
            turnstile: Turnstile::of(&options, &recorder.turns),
            recorder,
            litestream: AtomicBool::new(false),
            options,
        })
    }

    /// The same for a server, which has the file.
    pub(crate) fn of_server(options: Options) -> Arc<Self> {
        Arc::new(Self {
            catalogue: Catalogue::new(),
            functions: Arc::default(),
            policy: InlinePolicy::new(Inline::Never, Instant::now()),
            watch: None,
            turnstile: None,
            recorder: Recorder::new(&options.path),
            litestream: AtomicBool::new(false),
            options,
        })
    }

    /// Returns true if another program checkpoints the WAL, at least while it runs.
    pub(crate) fn is_external(&self) -> bool {
        self.options.checkpoint == Checkpoint::External || self.is_beside_litestream()
    }

    /// Returns true if Litestream works on the file, or worked on it earlier.
    pub(crate) fn is_beside_litestream(&self) -> bool {
        self.litestream.load(Ordering::Relaxed)
    }

    /// The same, after a look at the schema as this connection sees it.
    pub(crate) fn look_for_litestream(&self, sqlite: &flatwater_sqlite::Sqlite) -> Result<bool> {
        if !self.is_beside_litestream() && has_litestream(sqlite)? && !self.litestream.swap(true, Ordering::Relaxed) {
            self.recorder.wal.is_external();
        }
        Ok(self.is_beside_litestream())
    }
}
