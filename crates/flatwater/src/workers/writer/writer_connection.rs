//! The writer's connection and its state: the value that is the token, so whoever has it holds the slot.
//!
//! Owns: the connection and what belongs to it (`state`), beginning and undoing on it, and replacing a connection that cannot
//! be trusted, or cannot write. Runs on the thread that holds the slot. Invariant: a connection that is not in its expected
//! state is closed before anything else runs on it; the next use opens another. Leaves out: the statements that run on it,
//! and what is decided about it: the schema (`known_schema`), inline runs (`inline_access`), the lease (`writer_lease`), what
//! interrupts it (`interrupts`), closing it in order (`close_connection`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use flatwater_sqlite::{WalHeader, WalState};

use super::gathering::Gathering;
use super::reopen;
use super::state::{Commits, EndsWhenLeft, OwnSettings, PageLimit, Room, WriterLease};
use crate::connection::EngineConnection;
use crate::connection::learn::schema::SchemaFacts;
use crate::connection::open::Role;
use crate::connection::open::access::{is_half_open, is_read_only};
use crate::connection::repair::{repair, restore_handlers};
use crate::connection::run::statement_cache::CachedStatement;
use crate::lease::are_possible;
use crate::options::{Durability, Options};
use crate::queue::ticket::Ticket;
use crate::workers::context::Context;
use crate::workers::savepoint_stack::Control;
use flatwater_base::busy_handler::BusyWait;
use flatwater_base::error::{Error, Result};
use flatwater_base::inline::eligibility::Inline;
use flatwater_base::inline::router::WriteRouter;
use flatwater_sql::statement_info::StatementInfo;

pub(crate) struct WriterConnection {
    pub(crate) context: Arc<Context>,
    /// `None` for the writer's connection.
    pub(crate) own: Option<OwnSettings>,
    /// `None` after a failure, until the next use opens another. Never `None` for a database in memory.
    pub(crate) connection: Option<EngineConnection>,
    /// While this is true, nothing is committed and no lock is waited for.
    pub(crate) is_left: Arc<AtomicBool>,
    /// Ends what runs while that is true.
    pub(crate) left: Arc<EndsWhenLeft>,
    /// The commits up to the last time that the slot was released.
    pub(crate) commits: Option<Commits>,
    /// The commits that connections of callers made in the slot of this one; of such a connection, those that are counted.
    pub(crate) commits_beside: u32,
    /// The change counters of the attached files at that time, while live queries watch.
    pub(crate) attached_left: Vec<(Box<str>, u32)>,
    /// True after the first open. Only the first open may create the file: a later one must find the same file.
    was_open: bool,
    /// The last connection left frames in the WAL, because copying them took too long when the database was parked.
    pub(crate) left_wal: bool,
    pub(crate) facts: SchemaFacts,
    pub(crate) busy_timeout: BusyWait,
    /// Decides whether short writes run inline or go through the queue.
    pub(crate) router: WriteRouter,
    pub(crate) gathering: Gathering,
    pub(crate) lease: WriterLease,
    pub(crate) room: Room,
    pub(crate) page_limit: PageLimit,
}

impl WriterConnection {
    /// Opens the writer's connection. Blocks, until `ticket` is given up.
    pub(crate) fn open(context: &Arc<Context>, ticket: &Arc<Ticket>) -> Result<Self> {
        let mut writer = closed(context, None, Arc::default());
        writer.wait_for_locks(Instant::now(), ticket);
        writer.parts()?;
        Ok(writer)
    }

    /// Returns a connection of a caller, which its first use opens. While `is_left`, it commits nothing.
    pub(crate) fn of_caller(context: &Arc<Context>, own: OwnSettings, is_left: Arc<AtomicBool>) -> Self {
        closed(context, Some(own), is_left)
    }

    pub(crate) fn options(&self) -> &Options {
        self.own.as_ref().map_or(&self.context.options, |own| &own.options)
    }

    /// Returns the connection, opened again if it was given up, and the facts of its schema. Opening waits for locks as
    /// set by `wait_for_locks`.
    pub(crate) fn parts(&mut self) -> Result<(&mut EngineConnection, &SchemaFacts)> {
        if self.connection.is_none() && self.own.is_some() {
            open_own(self)?;
        } else if self.connection.is_none() {
            let role = if self.was_open { Role::Writer } else { Role::Creator };
            // Where a parked database may not have a connection yet, it waits as long as `wait_for_locks` said.
            let is_over = || self.is_left.load(Ordering::SeqCst) || self.busy_timeout.is_over();
            let context = self.context.clone();
            let watch = context.watch.as_ref();
            let _permit = watch.map_or(Ok(None), |watch| watch.parked.wait_for_room(&is_over))?;
            if let Some(watch) = watch {
                if self.was_open {
                    watch.check_file()?;
                }
                watch.opens();
            }
            let mut connection = reopen::open(&context, role, || self.busy())?;
            connection.sqlite.hooks().commits.refuse_while(self.is_left.clone());
            if let Some(watch) = watch {
                watch.opened(connection.sqlite.wal().index_address());
                watch.unpark().inspect_err(|_| watch.closed())?;
                context.turnstile.as_ref().inspect(|turnstile| turnstile.unpark());
            }
            if !self.was_open {
                // Later they are compared with the schema before a group relies on them.
                self.facts = SchemaFacts::read(&mut connection)?;
            }
            context.look_for_litestream(&connection.sqlite)?;
            let may_lease = !context.is_external() && are_possible(&context.options, &connection.journal);
            self.lease = match context.options.inline {
                Inline::Auto(limits) if may_lease => WriterLease::new(limits.time),
                _ => WriterLease::impossible(),
            };
            self.page_limit = PageLimit::default();
            self.connection = Some(connection);
            self.was_open = true;
            self.left_wal = false;
        }
        match &mut self.connection {
            Some(connection) => Ok((connection, &self.facts)),
            None => unreachable!("it was opened above"),
        }
    }

    /// Returns true if the connection was not given up.
    pub(crate) fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    pub(crate) fn connection(&mut self) -> Result<&mut EngineConnection> {
        Ok(self.parts()?.0)
    }

    /// Returns the statement of `text`, if it is prepared, and with the functions of now.
    pub(crate) fn known(&mut self, text: &StatementInfo) -> Option<Arc<CachedStatement>> {
        let connection = self.connection.as_mut().filter(|connection| !connection.is_behind())?;
        connection.statements.find(&mut connection.sqlite, text)
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.context.watch.is_none()
    }

    /// Returns the error that refuses all further writes, if there is one.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.context.watch.as_ref()?.refusal().cloned()
    }

    pub(crate) fn refuse_after_failed_sync(&self, error: &Error) {
        if let Some(watch) = &self.context.watch {
            watch.refuse_after_failed_sync(error);
        }
    }

    /// Returns the wal-index as it is published now, if it is consistent.
    pub(crate) fn wal_now(&self) -> Option<(WalState, WalHeader)> {
        self.connection.as_ref()?.sqlite.wal().now()
    }

    /// Returns the first copy of the wal-index header.
    pub(crate) fn wal_header(&self) -> Option<WalHeader> {
        self.connection.as_ref()?.sqlite.wal().header()
    }

    pub(crate) fn is_autocommit(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.sqlite.handle().is_autocommit())
    }

    /// Runs BEGIN IMMEDIATE.
    pub(crate) fn begin(&mut self) -> Result<()> {
        let connection = self.connection()?;
        Ok(connection.control.begin(&mut connection.sqlite)?)
    }

    /// Undoes what ran since the innermost savepoint, and closes it. If that fails, the transaction is rolled back.
    pub(crate) fn undo(&mut self) -> Result<()> {
        let connection = self.connection()?;
        let undone = connection.control.undo(&mut connection.sqlite);
        undone.map_err(Error::from).inspect_err(|_| self.rollback())
    }

    /// Rolls back the open transaction, if there is one. A connection that cannot roll back is replaced.
    pub(crate) fn rollback(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        if connection.control.rollback(&mut connection.sqlite).is_err() && !self.is_autocommit() {
            self.replace();
        }
    }

    /// Gives the connection up, so that the next use opens another. A database in memory would be lost with its
    /// connection, so there the connection is repaired instead.
    pub(crate) fn replace(&mut self) {
        if self.context.options.is_memory() {
            let busy = self.busy();
            if let Some(connection) = &mut self.connection {
                // In memory a ROLLBACK fails only if the process is out of memory; the next use then reports it.
                let _ = repair(connection);
                restore_handlers(connection, busy);
            }
        } else {
            drop(self.take());
        }
    }

    /// Returns true if what failed with `error` may be tried once more: nothing could be written on the connection,
    /// because one of its files could only be opened for reading, and so the connection was given up.
    pub(crate) fn reopens_after(&mut self, error: &Error) -> bool {
        let is_half_open = |connection: &EngineConnection| is_half_open(&connection.sqlite).unwrap_or(false);
        let reopens = is_read_only(error)
            && !self.is_in_memory()
            && self.is_autocommit()
            && self.connection.as_ref().is_some_and(is_half_open);
        if reopens {
            self.replace();
        }
        reopens
    }

    /// Ends the lease, whatever the reason.
    pub(crate) fn end_lease(&mut self) {
        if self.lease.state.drop_it()
            && let Some(EngineConnection { sqlite, control, .. }) = &mut self.connection
        {
            control.let_go(sqlite);
        }
    }

    /// Takes the connection out. The files beside the database may be removed from now on.
    pub(crate) fn take(&mut self) -> Option<EngineConnection> {
        if let Some(watch) = self.context.watch.as_ref().filter(|_| self.own.is_none()) {
            watch.closed();
        }
        self.end_lease();
        self.commits = None;
        self.connection.take()
    }
}

/// Lets `last_insert_rowid()` tell this rowid, if there is one, until a row is inserted.
pub(crate) fn tell_rowid(writer: &WriterConnection, rowid: Option<i64>) {
    if let (Some(connection), Some(rowid)) = (&writer.connection, rowid) {
        connection.sqlite.handle().set_last_insert_rowid(rowid);
    }
}

/// A connection that is not open.
fn closed(context: &Arc<Context>, own: Option<OwnSettings>, is_left: Arc<AtomicBool>) -> WriterConnection {
    WriterConnection {
        left: Arc::new(EndsWhenLeft(Arc::clone(&is_left))),
        context: context.clone(),
        own,
        connection: None,
        is_left,
        commits: None,
        commits_beside: 0,
        attached_left: Vec::new(),
        was_open: false,
        left_wal: false,
        facts: SchemaFacts::default(),
        busy_timeout: BusyWait::default(),
        router: WriteRouter::new(Instant::now()),
        gathering: Gathering::new(context.options.durability == Durability::Full),
        lease: WriterLease::impossible(),
        room: Room::default(),
        page_limit: PageLimit::default(),
    }
}

/// Opens a connection of a caller. Others to the file are open, or the database is opened to read only.
fn open_own(writer: &mut WriterConnection) -> Result<()> {
    let Some(own) = &writer.own else { return Ok(()) };
    if let Some(watch) = &writer.context.watch {
        watch.check_file()?;
    }
    let role = if own.options.read_only { Role::Reader } else { Role::Own };
    let mut connection = EngineConnection::open(&own.options, &own.functions, role, writer.busy())?;
    connection.sqlite.hooks().commits.refuse_while(writer.is_left.clone());
    writer.facts = SchemaFacts::read(&mut connection)?;
    writer.connection = Some(connection);
    Ok(())
}

impl Control for WriterConnection {
    fn open_savepoint(&mut self) -> Result<()> {
        let connection = self.connection()?;
        Ok(connection.control.savepoint(&mut connection.sqlite)?)
    }

    fn release_savepoint(&mut self) -> Result<()> {
        let connection = self.connection()?;
        Ok(connection.control.release(&mut connection.sqlite)?)
    }

    fn undo_savepoint(&mut self) -> Result<()> {
        let connection = self.connection()?;
        Ok(connection.control.undo(&mut connection.sqlite)?)
    }

    fn rollback_to_savepoint(&mut self) -> Result<()> {
        let connection = self.connection()?;
        Ok(connection.control.rollback_to(&mut connection.sqlite)?)
    }
}
