//! What the front ends in other languages need beyond the API. Not for programs: it may change in any version.
//!
//! Owns: on what a front end makes its calls, which are those of the API; hints in the words of another language. Runs
//! on the caller's thread. Leaves out: polling a call, and what goes on beside that (`front_call`), what is given to a call and reading a
//! result (`values`), functions and callbacks of the host (`functions`), servers (`server`), telling the host's event loop
//! (`flatwater-bridge`).

mod asked;
mod front_call;
pub mod functions;
mod internals;
pub mod server;
mod server_transaction;
mod values;

use std::any::Any;
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flatwater_sqlite::CheckpointMode;
pub use flatwater_sqlite::is_forked;
pub use front_call::{FrontCall, Held, Output, Polled, Unbegun, line_of, poll_batch, poll_live, turn_is_due};
pub use internals::Internals;
pub use values::{
    BatchStatements, ChangedRows, Schema, add_row, add_values, cell, cells, changed_rows, is_of_write, json_of,
    number_from, position, rows_added, rows_of, rows_of_next, shared_rows, statements, statements_added, take_row,
};

use crate::api::call::Read;
use crate::api::database::{self, Database};
use crate::api::execute_many::{ANY, CHANGES, RETURNED, many};
pub use crate::api::integrity_check::{check_sql, problems};
use crate::api::live::Live;
use crate::api::prepared::compile;
use crate::api::session::{Session, batch, with_options};
use crate::api::stream::Batches;
use crate::api::{integrity_check, maintenance, open, transaction};
use crate::bindings::functions::Function;
use crate::engine::registry;
use crate::events::statement_event::{Listener, StatementEvent};
use crate::migrations::Migrations;
use crate::options::{Key, Options};
pub use crate::queue::reply::Mailbox;
use crate::queue::reply::Parts;
use crate::workers::work::{self, Wanted};
pub use flatwater_base::encode::json_options::JsonOptions;
use flatwater_base::error::Error;
pub use flatwater_base::error::after_the_write;
pub use flatwater_base::error::hint::Name;
use flatwater_base::error::hint::hint_spelled;
use flatwater_base::error::location::{OPTIONAL_ROW, OPTIONAL_VALUE};
pub use flatwater_base::error::shorten as shown;
pub use flatwater_base::inline::budget::{
    had_turn as loop_had_turn, host_tells as host_tells_of_turns, renew as turn_was_given,
    turns_between_polls as host_turns_between_polls,
};
pub use flatwater_base::thread::background::dispose;
pub use flatwater_base::values::param_rows::ParamRows;
use flatwater_base::values::{Params, Rows};
pub use flatwater_sql::text::{parameter_names, parameters_by_position};
pub use flatwater_sql::tokens::{looks_like_rows, with_gaps as tokens};

/// Returns what an error says to do, with the names of the API as `spell` has them.
pub fn hint(error: &Error, spell: impl Fn(Name) -> &'static str) -> Option<Cow<'_, str>> {
    hint_spelled(error, spell)
}

/// Which rows of a query a call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    All,
    /// The first, if there is one.
    First,
    /// The first, which must be there.
    Row,
    /// The same, for its first value.
    Value,
}

/// What a front end's calls are made on: a database, a transaction or a snapshot. It does not keep a transaction open.
pub struct Target(Session);

impl Clone for Target {
    fn clone(&self) -> Self {
        Self(self.0.share())
    }
}

impl Target {
    pub fn of(session: &Session) -> Self {
        Self(session.share())
    }

    /// A number that identifies the open database, whichever handle it is used through.
    pub fn database(&self) -> usize {
        self.0.0.handle.id()
    }

    /// True for two of one handle of the open database.
    pub fn has_handle_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.0.handle, &other.0.0.handle)
    }

    /// True until the transaction is over.
    pub fn in_transaction(&self) -> bool {
        self.0.in_transaction()
    }

    /// True for two of one transaction. A nested one is another.
    pub fn is_same_transaction(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (&self.0.0.inside, &other.0.0.inside) else { return false };
        Arc::ptr_eq(&one.transaction, &other.transaction) && one.savepoints == other.savepoints
    }

    /// What [`mark`] keeps with its handle, if it is a `T`.
    pub fn mark<T: Any>(&self) -> Option<&T> {
        self.0.0.handle.mark()?.downcast_ref()
    }

    /// The same, whose calls have a deadline.
    pub fn timeout(&self, timeout: Duration) -> Self {
        Self(with_options(&self.0, |options| options.set_timeout(timeout)))
    }

    /// The same, whose `execute_many` and `batch` keep what is before a row or a statement that fails, in a transaction or on a
    /// connection of a caller.
    pub fn keeping_rows(&self) -> Self {
        Self(with_options(&self.0, |options| options.keeps_rows = true))
    }

    pub fn execute(&self, sql: &str, params: Params) -> FrontCall {
        self.0.execute(sql, params).into()
    }

    /// Any one statement.
    pub fn run(&self, sql: &str, params: Params) -> FrontCall {
        self.0.run(sql, params).into()
    }

    pub fn execute_many(&self, sql: &str, rows: ParamRows) -> FrontCall {
        FrontCall::from(many(CHANGES, self.0.0.clone(), self.0.0.text(sql), rows)).named("executemany")
    }

    /// Any one statement, once per row.
    pub fn run_many(&self, sql: &str, rows: ParamRows) -> FrontCall {
        FrontCall::from(many(ANY, self.0.0.clone(), self.0.0.text(sql), rows)).named("executemany")
    }

    pub fn query_many(&self, sql: &str, rows: ParamRows) -> FrontCall {
        many(RETURNED, self.0.0.clone(), self.0.0.text(sql), rows).into()
    }

    pub fn execute_script(&self, sql: &str) -> FrontCall {
        FrontCall::from(self.0.execute_script(sql)).named("executescript")
    }

    pub fn batch(&self, statements: BatchStatements) -> FrontCall {
        batch(&self.0, statements.find(|sql| self.0.0.text(&sql))).into()
    }

    /// The rows of a query, or its first only.
    pub fn query(&self, operation: &'static str, sql: &str, params: Params, rows: Needed) -> FrontCall {
        let (wanted, read): (_, Read<Rows>) = match rows {
            Needed::All => (Wanted::All, |answer, _| answer.rows()),
            Needed::First => (Wanted::First, |answer, _| answer.rows()),
            Needed::Row => (Wanted::First, |answer, _| answer.needed_rows(OPTIONAL_ROW)),
            Needed::Value => (Wanted::First, |answer, _| answer.needed_rows(OPTIONAL_VALUE)),
        };
        self.0.call(operation, self.0.read(&sql, params, wanted), read).into()
    }

    /// All rows of a query. A reader hands them over in parts while the query runs.
    pub fn query_in_parts(&self, operation: &'static str, sql: &str, params: Params) -> FrontCall {
        let parts = Arc::default();
        let work = self.0.read(&sql, params, Wanted::Parts(Arc::clone(&parts)));
        FrontCall::from(self.0.call(operation, work, |answer, _| answer.rows())).in_parts(parts)
    }

    /// A backup that hands over how far it is, as parts: rows of the number of its pages, and of those that are left. Only the newest is
    /// kept until it is taken.
    pub fn backup_in_parts(&self, path: &Path) -> FrontCall {
        let parts = Arc::<Parts<Rows>>::default();
        let reported = Arc::clone(&parts);
        let report = move |total: u32, left: u32| {
            let mut pages = Params::default();
            for count in [total, left] {
                // An integer always fits.
                let _ = pages.push(i64::from(count));
            }
            reported.replace(rows_of(["total", "left"].map(Into::into).to_vec(), pages));
        };
        FrontCall::from(maintenance::backup_reported(&self.0, path, Box::new(report))).in_parts(parts)
    }

    pub fn query_json(&self, sql: &str, params: Params, options: JsonOptions) -> FrontCall {
        self.0.query_json(sql, params).with(|_| options).0.into()
    }

    /// Compiles a statement, so that an error in it is reported.
    pub fn prepare(&self, sql: &str) -> FrontCall {
        compile(&self.0, "prepare", &sql, |answer, _| answer.prepared().map(drop)).into()
    }

    /// The columns that a statement would return, as rows: the name, and the column of a table that it returns unchanged, with the
    /// table, the database and the declared type. What does not apply is NULL. The statement does not run.
    ///
    /// # Errors
    /// Those of [`prepare`](Self::prepare); `Misuse` for one that returns no rows, and one whose columns are known only when it runs.
    pub fn columns(&self, sql: &str) -> FrontCall {
        compile(&self.0, "columns", &sql, |answer, _| values::described(answer.columns()?)).into()
    }

    /// Opens the value of a row, whose table is that of a database.
    pub fn open_blob(&self, table: (&str, &str), column: &str, rowid: i64) -> FrontCall {
        self.0.open_blob(table, column, rowid).into()
    }

    /// A result in batches; see [`poll_batch`].
    pub fn batches(&self, sql: &str, params: Params) -> Batches {
        Batches::new(&self.0.0, "batches", self.0.read(&sql, params, Wanted::Batches))
    }
}

/// Calls of the API, on whatever the target is.
macro_rules! calls_of_api {
    ($($(#[$note:meta])* $name:ident($($given:ident: $type:ty),*) = $call:path;)*) => {
        impl Target {
            $($(#[$note])* pub fn $name(&self, $($given: $type),*) -> FrontCall {
                $call(&self.0, $($given),*).into()
            })*
        }
    };
}

calls_of_api! {
    /// Begins a transaction, or in a transaction a nested one. In one that is not nested `last_insert_rowid()` tells `rowid` until a
    /// row is inserted.
    begin(rowid: Option<i64>) = transaction::begin;
    snapshot() = transaction::snapshot;
    migrate(migrations: Migrations) = maintenance::migrate;
    vacuum() = maintenance::vacuum;
    incremental_vacuum(pages: u32) = maintenance::incremental_vacuum;
    checkpoint(mode: CheckpointMode) = maintenance::checkpoint;
    backup(path: &Path) = maintenance::backup;
    vacuum_into(path: &Path) = maintenance::vacuum_into;
    export(path: &Path, key: Option<Key>) = maintenance::export;
    serialize() = maintenance::serialize;
    rekey(key: Key) = maintenance::rekey;
    has_key(key: Key) = maintenance::has_key;
}

/// Opens a database, which has these functions when its migrations are applied.
pub fn open_with(options: Options, functions: Vec<Function>) -> FrontCall {
    open::open_with(options, functions.into_iter().map(|function| function.0).collect()).into()
}

/// Options that do not hold if this process has the file open already: those of who opened it first do.
pub fn joining(options: Options) -> Options {
    Options { joins: true, ..options }
}

/// True if the database enforces foreign keys.
pub fn enforces_foreign_keys(database: &Database) -> bool {
    database.session.0.handle.context().options.foreign_keys
}

/// Closes a database, or the connection to a server.
pub fn close(session: &Session) -> FrontCall {
    database::close(session).into()
}

/// Commits the transaction, whose guard stays with the caller. If its COMMIT fails and SQLite leaves it open, it is open.
pub fn commit_or_stay(target: &Target) -> FrontCall {
    let keeping = with_options(&target.0, |options| options.keeps_open = true);
    keeping.call("commit", Ok(work::commit()), |answer, _| answer.done()).into()
}

/// The SQL that tells which pages of an encrypted database cannot be decrypted, a problem in each row; `None` if it is not
/// encrypted. To be asked when a check found a problem, or failed, and its connection was given back: if there are such pages,
/// they are the problems.
pub fn pages_sql(on: &Target, database: &str) -> Option<String> {
    integrity_check::is_encrypted(&on.0).then(|| integrity_check::pages_sql(database))
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
    session.0.handle.set_listener(listener.map(Listener));
}

/// As [`set_listener`], of the handle that this belongs to.
pub fn listen(on: &Target, listener: Option<Hear>) {
    on.0.0.handle.set_listener(listener.map(Listener));
}

/// Returns true if this process has the file open in order to write, and another SQLite library must not open it here
/// ([`Tuning::allow_second_sqlite`](crate::options::Tuning::allow_second_sqlite)). Reads the file's identity.
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
pub fn is_over(batches: &Batches) -> bool {
    batches.is_over()
}

/// The result, if all of it was fetched and it has no rows: its columns.
pub fn empty_result(batches: &Batches) -> Option<Rows> {
    batches.empty.clone()
}

/// The caller uses rows of the last batch: they are not idle.
pub fn touch(batches: &Batches) {
    batches.touch();
}
