//! What the front ends in other languages need beyond the API. Not for programs: it may change in any version.
//!
//! Owns: making the calls of a front end; hints in the words of another language. Runs on the caller's thread.
//! Invariant: a call of a front end does what the call of the API does. Leaves out: polling a call (`front_call`), where it
//! begins (`call_nesting`), calls that are held back (`held`), rows of parameters (`param_rows`), opening a database (`open`),
//! connections of callers (`connection`), reading a result (`results`), savepoints by name (`savepoints`), functions of the host
//! (`functions`), what a text is (`texts`), what goes on beside calls (`turns`), telling the host's event loop
//! (`flatwater-bridge`).

mod asked;
mod call_nesting;
pub mod connection;
mod front_call;
pub mod functions;
mod held;
mod maintenance;
mod open;
mod param_rows;
mod results;
mod savepoints;
pub mod server;
mod server_checks;
mod server_cursor;
mod server_transaction;
mod texts;
mod turns;

use std::any::Any;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use call_nesting::Unbegun;
pub use connection::close_connection;
pub use flatwater_sqlite::is_forked;
pub use front_call::{FrontCall, Needed, Output, Polled};
pub use held::{Held, line_of};
pub use maintenance::{
    check_sql, checkpoint, export, has_key, incremental_vacuum, pages_sql, problems, read_blob, rekey, serialize,
    vacuum, vacuum_into, write_blob,
};
pub use open::{enforces_foreign_keys, joining, open, open_with};
pub use param_rows::{
    BatchStatements, add_row, add_values, number_from, rows_added, rows_of_next, statements_added, take_row,
};
pub use results::{
    ChangedRows, Schema, cell, cells, changed_rows, columns, is_of_write, json_of, position, rows_of, shared_rows,
};
pub use savepoints::{release, rollback_to, savepoint};
pub use texts::{looks_like_rows, parameter_names, shown, statements, tokens};
pub use turns::{
    host_tells_of_turns, host_turns_between_polls, loop_had_turn, poll_batch, poll_live, turn_is_due, turn_was_given,
};

use crate::api::batches::Batches;
use crate::api::blob::Blob;
use crate::api::call::{Call, Read};
use crate::api::database::close_as;
use crate::api::live::Live;
use crate::api::session::Session;
use crate::api::snapshot::Snapshot;
use crate::api::transaction::Transaction;
use crate::connection::exclusive::copy::Copy;
use crate::connection::exclusive::page_copy::Target as BackupTarget;
use crate::connection::run::blobs::BlobUse;
use crate::engine::dispatch::Caller;
use crate::engine::registry;
pub use crate::error::names::Name;
use crate::error::of_rows::{OPTIONAL_ROW, OPTIONAL_VALUE};
use crate::error::{Error, Result};
use crate::events::statement_event::{Listener, StatementEvent};
use crate::migrations::Migrations;
use crate::options::json_options::JsonOptions;
pub use crate::queue::reply::Mailbox;
use crate::queue::ticket::CallOptions;
pub use crate::thread::background::dispose;
pub use crate::values::param_rows::ParamRows;
use crate::values::params::Params;
use crate::values::row::Rows;
use crate::workers::work::{Wanted, Work};

/// Returns what an error says to do, with the names of the API as `spell` has them.
#[must_use]
pub fn hint(error: &Error, spell: impl Fn(Name) -> &'static str) -> Option<Cow<'_, str>> {
    error.hint_spelled(spell)
}

/// What a front end's calls are made on: a database, a transaction or a snapshot. It does not keep a transaction open.
pub struct Target(Session);

impl Clone for Target {
    fn clone(&self) -> Self {
        Self(self.0.share())
    }
}

impl Target {
    #[must_use]
    pub fn of(session: &Session) -> Self {
        Self(session.share())
    }

    /// A number that identifies the open database, whichever handle it is used through.
    #[must_use]
    pub fn database(&self) -> usize {
        self.0.0.handle.id()
    }

    /// True for two of one handle of the open database.
    #[must_use]
    pub fn has_handle_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.0.handle, &other.0.0.handle)
    }

    /// True until the transaction is over.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.0.in_transaction()
    }

    /// True for two of one transaction. A nested one is another.
    #[must_use]
    pub fn is_same_transaction(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (&self.0.0.inside, &other.0.0.inside) else { return false };
        Arc::ptr_eq(&one.transaction, &other.transaction) && one.savepoints == other.savepoints
    }

    /// What [`mark`] keeps with its handle, if it is a `T`.
    #[must_use]
    pub fn mark<T: Any>(&self) -> Option<&T> {
        self.0.0.handle.mark()?.downcast_ref()
    }

    /// The same, whose calls have a deadline.
    #[must_use]
    pub fn timeout(&self, timeout: Duration) -> Self {
        let caller = &self.0.0;
        Self(Session(Caller { options: CallOptions { timeout: Some(timeout), ..caller.options }, ..caller.clone() }))
    }

    /// The same, whose `execute_many` and `batch` keep what is before a row or a statement that fails, in a transaction or on a
    /// connection of a caller.
    #[must_use]
    pub fn keeping_rows(&self) -> Self {
        let caller = &self.0.0;
        Self(Session(Caller { options: CallOptions { keeps_rows: true, ..caller.options }, ..caller.clone() }))
    }

    fn call(&self, operation: &'static str, work: Result<Work>, read: Read<Output, Error>) -> FrontCall {
        // Not as one of the API: a front end may use a transaction while a nested one is open.
        FrontCall::new(Call::new(self.0.0.clone(), operation, work, read))
    }

    pub fn execute(&self, sql: &str, params: Result<Params>) -> FrontCall {
        let work = || Ok(Work::execute(self.0.text(sql)?, params?));
        self.call("execute", work(), |answer, _| answer.executed().map(Output::Executed))
    }

    pub fn execute_many(&self, sql: &str, rows: Result<ParamRows>) -> FrontCall {
        let work = || Ok(Work::Many { text: self.0.text(sql)?, rows: rows? });
        self.call("executemany", work(), |answer, _| answer.changes().map(Output::Changes))
    }

    pub fn execute_script(&self, sql: &str) -> FrontCall {
        let work = self.0.text(sql).map(Work::Script);
        self.call("executescript", work, |answer, _| answer.done().map(|()| Output::Done))
    }

    pub fn batch(&self, statements: BatchStatements) -> FrontCall {
        let work = statements.find(|sql| self.0.text(&sql)).map(Work::batch);
        self.call("batch", work, |answer, _| answer.batch().map(Output::Batch))
    }

    /// The rows of a query, or its first only.
    pub fn query(&self, operation: &'static str, sql: &str, params: Result<Params>, rows: Needed) -> FrontCall {
        let (wanted, read): (_, Read<Output, Error>) = match rows {
            Needed::All => (Wanted::All, |answer, _| answer.rows().map(Output::Rows)),
            Needed::First => (Wanted::First, |answer, _| answer.rows().map(Output::Rows)),
            Needed::Row => (Wanted::First, |answer, _| answer.needed_rows(OPTIONAL_ROW).map(Output::Rows)),
            Needed::Value => (Wanted::First, |answer, _| answer.needed_rows(OPTIONAL_VALUE).map(Output::Rows)),
        };
        self.call(operation, self.0.read(&sql, params, wanted), read)
    }

    /// All rows of a query. A reader hands them over in parts while the query runs.
    pub fn query_in_parts(&self, operation: &'static str, sql: &str, params: Result<Params>) -> FrontCall {
        let parts = Arc::default();
        let work = self.0.read(&sql, params, Wanted::Parts(Arc::clone(&parts)));
        FrontCall::in_parts(self.0.call(operation, work, |answer, _| answer.rows().map(Output::Rows)), parts)
    }

    pub fn query_json(&self, sql: &str, params: Result<Params>, options: JsonOptions) -> FrontCall {
        let work = self.0.read(&sql, params, Wanted::Json(Arc::new(options)));
        self.call("query_json", work, |answer, _| answer.json().map(Output::Json))
    }

    /// Compiles a statement, so that an error in it is reported.
    pub fn prepare(&self, sql: &str) -> FrontCall {
        let text = self.0.text(sql).inspect(|text| text.mark_used_again());
        self.call("prepare", text.map(Work::Prepare), |answer, _| answer.prepared().map(|_| Output::Done))
    }

    /// Begins a transaction, or in a transaction a nested one.
    pub fn begin(&self) -> FrontCall {
        self.begin_after(None)
    }

    /// The same. In a transaction that is not nested `last_insert_rowid()` tells this rowid until a row is inserted.
    pub fn begin_after(&self, rowid: Option<i64>) -> FrontCall {
        let Some(inside) = &self.0.0.inside else {
            return self.call("begin", Ok(Work::Begin(rowid)), |answer, caller| {
                let guard = answer.transaction()?;
                caller.map(|caller| Output::Transaction(Transaction::new(caller, guard))).ok_or_else(Error::closed)
            });
        };
        self.call("begin", Ok(Work::Savepoint(inside.transaction.next_savepoint())), |answer, caller| {
            let number = answer.savepoint()?;
            caller.map(|caller| Output::Transaction(Transaction::nested(caller, number))).ok_or_else(Error::closed)
        })
    }

    pub fn snapshot(&self) -> FrontCall {
        self.call("snapshot", Ok(Work::Snapshot), |answer, caller| {
            let snapshot = |caller| Snapshot::new(caller, answer).map(Output::Snapshot);
            caller.map_or_else(|| Err(Error::closed()), snapshot)
        })
    }

    pub fn migrate(&self, migrations: Migrations) -> FrontCall {
        self.call("migrate", Ok(Work::Migrate(migrations)), |answer, _| answer.returned().map(Output::Migrated))
    }

    pub fn backup(&self, path: &Path) -> FrontCall {
        let work = BackupTarget::new(path).map(|target| Work::Copy(Box::new(Copy::Pages(target))));
        self.call("backup", work, |answer, _| answer.done().map(|()| Output::Done))
    }

    /// Opens the value of a row, whose table is that of a database.
    pub fn open_blob(&self, (database, table): (&str, &str), column: &str, rowid: i64) -> FrontCall {
        let work = Work::Blob(Box::new(BlobUse::open(database, table, column, rowid)));
        self.call("open_blob", Ok(work), |answer, caller| Blob::opened(answer, caller).map(Output::Blob))
    }

    /// A result in batches; see [`poll_batch`].
    pub fn batches(&self, sql: &str, params: Result<Params>) -> Batches {
        Batches::new(&self.0.0, "batches", self.0.read(&sql, params, Wanted::Batches))
    }
}

/// Closes a database, or the connection to a server.
#[must_use]
pub fn close(session: &Session) -> FrontCall {
    FrontCall::new(close_as(session, |answer, _| answer.done().map(|()| Output::Done)))
}

/// Commits a transaction, or keeps a nested one.
#[must_use]
pub fn commit(transaction: Transaction<'static>) -> FrontCall {
    FrontCall::new(transaction.commit_as(|answer, _| answer.done().map(|()| Output::Done)))
}

/// Commits the transaction, whose guard stays with the caller. If its COMMIT fails and SQLite leaves it open, it is open.
#[must_use]
pub fn commit_or_stay(target: &Target) -> FrontCall {
    let caller = &target.0.0;
    let options = CallOptions { keeps_open: true, ..caller.options };
    let keeping = Target(Session(Caller { options, ..caller.clone() }));
    keeping.call("commit", Ok(Work::Commit), |answer, _| answer.done().map(|()| Output::Done))
}

/// Rolls back a transaction, or a nested one.
#[must_use]
pub fn rollback(transaction: Transaction<'static>) -> FrontCall {
    FrontCall::new(transaction.rollback_as(|answer, _| answer.done().map(|()| Output::Done)))
}

/// Keeps something of the front end with a handle, once: [`Target::mark`] has it in all that belongs to the handle. It is
/// dropped with the last of these, on any thread.
pub fn mark(session: &Session, mark: impl Any + Send + Sync) {
    session.0.handle.set_mark(Box::new(mark));
}

/// The listener for the calls of one handle.
pub type Hear = Arc<dyn Fn(&StatementEvent<'_>) + Send + Sync>;

/// Sets the listener for the calls of this handle, as [`Options::on_statement`](crate::Options::on_statement) does for
/// those of all handles. It may be changed at any time. A call that began without a listener is not reported.
pub fn set_listener(session: &Session, listener: Option<Hear>) {
    session.0.handle.set_listener(listener.map(Listener::new));
}

/// As [`set_listener`], of the handle that this belongs to.
pub fn listen(on: &Target, listener: Option<Hear>) {
    on.0.0.handle.set_listener(listener.map(Listener::new));
}

/// Returns true if this process has the file open in order to write, and another SQLite library must not open it here
/// ([`Tuning::second_copy`](crate::options::Tuning::second_copy)). Reads the file's identity.
#[must_use]
pub fn refuses_second_copy(path: &Path) -> bool {
    registry::refuses_second_copy(path)
}

/// Where batches are to begin, unless it has begun.
pub fn unbegun(batches: &mut Batches) -> Option<Unbegun<'_>> {
    batches.unbegun().map(Unbegun)
}

/// Where a live query is to begin, unless it has begun.
pub fn unbegun_live<T>(live: &mut Live<T>) -> Option<Unbegun<'_>> {
    live.unbegun().map(Unbegun)
}

/// True if the last batch that was fetched was the last one.
#[must_use]
pub fn is_over(batches: &Batches) -> bool {
    batches.is_over()
}

/// The result, if all of it was fetched and it has no rows: its columns.
#[must_use]
pub fn empty_result(batches: &Batches) -> Option<Rows> {
    batches.empty.clone()
}

/// The caller uses rows of the last batch: they are not idle.
pub fn touch(batches: &Batches) {
    batches.touch();
}
