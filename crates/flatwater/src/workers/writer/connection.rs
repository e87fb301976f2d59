//! The writer's connection and its state: the value whose owner holds the token.
//!
//! Owns: the connection, the facts of its schema, beginning and undoing on it, and replacing a connection that cannot be
//! trusted, or cannot write. Runs on the thread that holds the token. Invariant: a connection that is not in its expected
//! state is closed before anything else runs on it; the next use opens another. Leaves out: the statements that run on it;
//! closing it in order (`last_checkpoint`).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use flatwater_sqlite::{WalHeader, WalState};

use super::failed_commit::Change;
use super::reopen;
use super::state::{Commits, EndsWhenLeft, PageLimit, Room, WriterLease};
use crate::busy_handler::BusyWait;
use crate::connection::Connection;
use crate::connection::exclusive::lend::{lend, reset};
use crate::connection::exclusive::restore::{repair, restore_handlers};
use crate::connection::learn::schema::SchemaFacts;
use crate::connection::open::has_litestream;
use crate::connection::open::role::Role;
use crate::connection::open::writable::{is_half_open, is_read_only};
use crate::connection::run::statement_cache::CachedStatement;
use crate::error::{Error, Result};
use crate::file::watch::Watch;
use crate::inline::limits::Inline;
use crate::inline::router::WriteRouter;
use crate::lease::are_possible;
use crate::options::{Checkpoint, Options};
use crate::queue::ticket::Ticket;
use crate::sql::catalogue::StatementInfo;
use crate::sql::class::Class;
use crate::turnstile::Turnstile;

pub(crate) struct WriterConnection {
    pub(super) options: Arc<Options>,
    /// `None` for a database in memory.
    pub(super) watch: Option<Arc<Watch>>,
    /// `None` after a failure, until the next use opens another. Never `None` for a database in memory.
    pub(super) connection: Option<Connection>,
    /// True if nothing may run on the connection any more.
    pub(super) is_suspect: bool,
    /// While this is true, nothing is committed and no lock is waited for.
    pub(super) is_left: Arc<AtomicBool>,
    /// Ends what runs while that is true.
    pub(super) left: Arc<EndsWhenLeft>,
    /// The commits up to the last time that the token was given back.
    pub(super) commits: Option<Commits>,
    /// The change counters of the attached files at that time, while live queries watch.
    pub(super) attached_left: Vec<(Box<str>, u32)>,
    /// True after the first open. Only the first open may create the file: a later one must find the same file.
    was_open: bool,
    /// True if another program keeps the WAL short.
    external: bool,
    facts: SchemaFacts,
    pub(super) busy_timeout: BusyWait,
    /// `None` where writers of several processes only poll for the lock.
    pub(super) turnstile: Option<Arc<Turnstile>>,
    /// Decides whether short writes run inline or go through the queue.
    pub(super) router: WriteRouter,
    pub(super) lease: WriterLease,
    pub(super) room: Room,
    pub(super) page_limit: PageLimit,
}

impl WriterConnection {
    /// Opens the writer's connection. Blocks, until `ticket` is given up.
    pub(crate) fn open(
        options: Arc<Options>,
        watch: Option<Arc<Watch>>,
        turnstile: Option<Arc<Turnstile>>,
        ticket: &Arc<Ticket>,
    ) -> Result<Self> {
        let is_left = Arc::default();
        let mut writer = Self {
            left: Arc::new(EndsWhenLeft(Arc::clone(&is_left))),
            options,
            watch,
            connection: None,
            is_suspect: false,
            is_left,
            commits: None,
            attached_left: Vec::new(),
            was_open: false,
            external: false,
            facts: SchemaFacts::default(),
            busy_timeout: BusyWait::default(),
            turnstile,
            router: WriteRouter::new(Instant::now()),
            lease: WriterLease::impossible(),
            room: Room::default(),
            page_limit: PageLimit::default(),
        };
        writer.wait_for_locks(Instant::now(), ticket);
        writer.parts()?;
        Ok(writer)
    }

    /// Returns the connection, opened again if it was given up, and the facts of its schema. Opening waits for locks as
    /// set by `wait_for_locks`.
    pub(super) fn parts(&mut self) -> Result<(&mut Connection, &SchemaFacts)> {
        if self.connection.is_none() {
            let role = if self.was_open { Role::Writer } else { Role::Creator };
            let _permit = self.wait_for_room()?;
            if let Some(watch) = &self.watch {
                if self.was_open {
                    watch.check_file()?;
                }
                watch.opens();
            }
            let mut connection = reopen::open(&self.options, self.watch.as_deref(), role, || self.busy())?;
            connection.sqlite.refuse_commits_while(self.is_left.clone());
            if let Some(watch) = &self.watch {
                watch.opened(connection.sqlite.wal_index_address());
                watch.unpark().inspect_err(|_| watch.closed())?;
                self.turnstile.as_ref().inspect(|turnstile| turnstile.unpark());
            }
            if !self.was_open {
                // Later they are compared with the schema before a group relies on them.
                self.facts = SchemaFacts::read(&mut connection)?;
            }
            self.external = self.options.checkpoint == Checkpoint::External || has_litestream(&connection.sqlite)?;
            let may_lease = !self.external && are_possible(&self.options, &connection.journal);
            self.lease = match self.options.inline {
                Inline::Auto(limits) if may_lease => WriterLease::new(limits.time),
                _ => WriterLease::impossible(),
            };
            self.page_limit = PageLimit::default();
            self.connection = Some(connection);
            self.was_open = true;
        }
        match &mut self.connection {
            Some(connection) => Ok((connection, &self.facts)),
            None => unreachable!("it was opened above"),
        }
    }

    /// Returns true if the connection was not given up.
    pub(super) fn is_open(&self) -> bool {
        self.connection.is_some()
    }

    pub(super) fn connection(&mut self) -> Result<&mut Connection> {
        Ok(self.parts()?.0)
    }

    pub(super) fn is_half_open(&self) -> bool {
        self.connection.as_ref().is_some_and(|connection| is_half_open(&connection.sqlite).unwrap_or(false))
    }

    /// Returns the statement of `text`, if it is prepared.
    pub(super) fn known(&mut self, text: &StatementInfo) -> Option<Arc<CachedStatement>> {
        let connection = self.connection.as_mut()?;
        connection.statements.find(&mut connection.sqlite, text)
    }

    pub(super) fn is_in_memory(&self) -> bool {
        self.watch.is_none()
    }

    /// Returns what shows a commit to the main file from outside the connection.
    pub(super) fn change(&self) -> Change {
        if self.is_in_memory() {
            return Change::InMemory;
        }
        self.wal_header().map_or(Change::Unseen, |header| Change::Wal(header.change))
    }

    /// Returns the names of the databases that can be written through the connection.
    pub(super) fn writable_files(&mut self) -> Result<Vec<Box<str>>> {
        let names: Vec<Box<str>> = self.options.attach.iter().map(|attached| attached.name.as_str().into()).collect();
        let sqlite = self.connection()?.sqlite.rusqlite();
        let can_be_written = |name: &str| sqlite.is_readonly(name).is_ok_and(|is_readonly| !is_readonly);
        Ok(std::iter::once("main".into()).chain(names.into_iter().filter(|name| can_be_written(name))).collect())
    }

    /// Returns the error that refuses all further writes, if there is one.
    pub(super) fn refusal(&self) -> Option<Error> {
        self.watch.as_ref()?.refusal().cloned()
    }

    pub(super) fn refuse_after_failed_sync(&self, error: &Error) {
        if let Some(watch) = &self.watch {
            watch.refuse_after_failed_sync(error);
        }
    }

    /// Returns the wal-index as it is published now, if it is consistent.
    pub(super) fn wal_now(&self) -> Option<(WalState, WalHeader)> {
        self.connection.as_ref()?.sqlite.wal_now()
    }

    /// Returns the first copy of the wal-index header.
    pub(super) fn wal_header(&self) -> Option<WalHeader> {
        self.connection.as_ref()?.sqlite.wal_header()
    }

    /// Returns true if another program keeps the WAL short.
    pub(super) fn is_external(&self) -> bool {
        self.external
    }

    /// Returns the journal mode, in lower case.
    pub(super) fn journal(&mut self) -> Result<String> {
        Ok(self.connection()?.journal.clone())
    }

    pub(super) fn has_wal(&mut self) -> Result<bool> {
        Ok(!self.is_in_memory() && self.connection()?.journal == "wal")
    }

    pub(super) fn is_autocommit(&self) -> bool {
        self.connection.as_ref().is_none_or(|connection| connection.sqlite.is_autocommit())
    }

    /// Runs BEGIN IMMEDIATE.
    pub(super) fn begin(&mut self) -> Result<()> {
        let connection = self.connection()?;
        Ok(connection.control.begin(&mut connection.sqlite)?)
    }

    /// Undoes what ran since the innermost savepoint, and closes it.
    pub(super) fn undo(&mut self) -> Result<()> {
        let connection = self.connection()?;
        Ok(connection.control.undo(&mut connection.sqlite)?)
    }

    /// Rolls back the open transaction, if there is one. A connection that cannot roll back is replaced.
    pub(super) fn rollback(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        if connection.control.rollback(&mut connection.sqlite).is_err() && !self.is_autocommit() {
            self.replace();
        }
    }

    /// Returns true if the known facts of the schema still hold, as seen from inside an open transaction.
    pub(super) fn knows_schema(&mut self) -> Result<bool> {
        match &mut self.connection {
            Some(connection) => self.facts.are_current(connection),
            None => Ok(false),
        }
    }

    /// Reads the schema again, and drops the prepared statements with all that was learnt from them.
    pub(super) fn learn_schema(&mut self) -> Result<()> {
        let connection = self.connection()?;
        connection.statements.clear(&mut connection.sqlite);
        self.facts = SchemaFacts::read(connection)?;
        Ok(())
    }

    /// Forgets all that is known of the schema, whatever its cookie, and reads it again.
    pub(super) fn relearn_schema(&mut self) {
        self.facts = SchemaFacts::default();
        self.forget_schema();
        // If this fails, no text is a member of a group before it succeeded.
        let _ = self.learn_schema();
    }

    /// Lends the whole connection to `f`, which may take it away.
    pub(super) fn lend_whole<T>(&mut self, f: impl FnOnce(&mut rusqlite::Connection) -> T) -> Result<T> {
        self.connection()?;
        let Some(connection) = self.connection.take() else { unreachable!("it was opened above") };
        let (result, back) = lend(connection, f)?;
        self.connection = back;
        Ok(result)
    }

    /// Refuses a text that drops a table if rows of other tables would change, unless the options allow that.
    pub(super) fn refuse_cascading_drop(&mut self, class: &Class) -> Result<()> {
        match &class.drops {
            Some(table) if !self.options.cascading_drop => self.connection()?.refuse_cascading_drop(table),
            _ => Ok(()),
        }
    }

    /// Brings a database in memory back to its options.
    pub(super) fn reset(&mut self) -> Result<()> {
        let options = self.options.clone();
        reset(self.connection()?, &options)
    }

    /// Notes that the known schema may be out of date from now on.
    pub(super) fn forget_schema(&mut self) {
        if let Some(connection) = &mut self.connection {
            connection.schema.seen.forget();
        }
    }

    /// Gives the connection up, so that the next use opens another. A database in memory would be lost with its
    /// connection, so there the connection is repaired instead.
    pub(super) fn replace(&mut self) {
        if self.options.is_memory() {
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
    pub(super) fn reopens_after(&mut self, error: &Error) -> bool {
        let reopens = is_read_only(error) && !self.is_in_memory() && self.is_autocommit() && self.is_half_open();
        if reopens {
            self.replace();
        }
        reopens
    }

    /// Takes the connection out. The files beside the database may be removed from now on.
    pub(super) fn take(&mut self) -> Option<Connection> {
        if let Some(watch) = &self.watch {
            watch.closed();
        }
        self.end_lease();
        self.commits = None;
        self.connection.take()
    }
}
