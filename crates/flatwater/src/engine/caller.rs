//! The caller of the calls that a handle, a transaction or a kept connection makes.
//!
//! Owns: where calls come from, whether one may begin, the queue in which a call takes its place, by number, for front ends that hold
//! calls back; registering functions and collations, and subscribing to live queries, which wait for nothing. Runs on the thread of the
//! caller. Invariants: calls of one number run in the order in which they are sent; when a registration returns, each connection
//! looks before its next use, and nothing that was learnt with the functions before holds any more. Leaves out: routing a call
//! (`dispatch`), the order of those that are held (`bindings::front_call`), and the list of functions (`connection::functions`).

use std::sync::Arc;

use super::Engine;
use super::handle::{Handle, Host, called_from_within};
use crate::connection::functions::Functions;
use crate::connection::functions::registration::{Key, Registration};
use crate::connection::learn::live_query::{LiveQuery, not_a_query};
use crate::queue::ticket::CallOptions;
use crate::workers::kept::KeptConnection;
use crate::workers::live::Subscription;
use crate::workers::open_transaction::Inside;
use crate::workers::shared_errors::waits_for_itself;
use crate::workers::work_kinds::may_read_only;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::current::{in_closure, is_inside};
use flatwater_sql::dependencies::change::Change;
use flatwater_sql::statement_info::StatementInfo;

/// The origin of a call: the handle, the transaction that the call belongs to if any, and the options.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) handle: Arc<Handle>,
    pub(crate) inside: Option<Arc<Inside>>,
    /// The connection that is kept for the caller: for a snapshot, for a cursor, or its own.
    pub(crate) kept: Option<Arc<dyn KeptConnection>>,
    pub(crate) options: CallOptions,
}

impl Caller {
    /// Returns the caller of a call that is made now. In Rust a transaction is not used while a nested one has a handle,
    /// so those that were begun before have none any more; the call may be polled when there are later ones.
    pub(crate) fn now(&self) -> Self {
        let mut caller = self.clone();
        if let Some(inside) = &caller.inside {
            caller.options.ended_nested = inside.transaction.savepoints_begun();
        }
        caller
    }

    /// Returns an error where no call may begin.
    pub(super) fn may_begin(&self) -> Result<()> {
        self.handle.refuse_inherited()?;
        if in_closure() {
            return Err(called_from_within());
        }
        if self.inside.is_none() && self.kept.is_none() && self.handle.is_closed() {
            return Err(Error::closed());
        }
        Ok(())
    }

    /// Returns the error for a request that ended without an answer.
    #[cold]
    pub(crate) fn lost(&self) -> Error {
        if let Err(error) = self.handle.refuse_inherited() {
            error
        } else if self.handle.is_closed() {
            Error::closed()
        } else {
            Error::new(
                ErrorCode::Internal,
                "a panic inside Flatwater ended the request, and the connection was replaced",
            )
            .with_hint("please report it; read the database to learn whether a write was applied")
        }
    }

    /// Returns the number of the queue in which a write takes its place: that of the transaction, or of the writer. `None` on a
    /// connection of the caller's own.
    pub(crate) fn line(&self) -> Option<usize> {
        match &self.inside {
            Some(inside) => Some(Arc::as_ptr(&inside.transaction).addr()),
            None => self.kept.is_none().then(|| self.handle.id()),
        }
    }

    /// Subscribes to a live query. With one connection its first run waits for the writer, as a read does: one that a front end
    /// begins in the body of a transaction on the same database would wait for the end of that.
    pub(crate) fn subscribe(&self, query: Arc<LiveQuery>, gets_differences: bool) -> Result<Subscription> {
        self.may_begin()?;
        let engine = match &self.handle.host {
            Host::Engine(engine) => engine,
            Host::Server(_) if gets_differences => {
                return Err(Error::new(
                    ErrorCode::Unsupported,
                    "the changes of a live query need a database of this process, and this one is on a server",
                )
                .with_hint("its results are there: compare them by the key that the program knows"));
            }
            Host::Server(served) => {
                let reads = |text: &StatementInfo| may_read_only(text) && !text.tells_of_its_prepare;
                return match query.0.iter().find(|part| !reads(&part.text)) {
                    Some(part) => Err(not_a_query().with_sql(&part.text.sql)),
                    None => served.live.subscribe(query, gets_differences),
                };
            }
        };
        if engine.readers.is_none() && self.options.inside_body {
            return Err(waits_for_itself());
        }
        engine.touch();
        engine.live.subscribe(query, gets_differences)
    }

    /// Returns the error for a live query that is awaited in the body of a transaction, where it would wait for the end of that:
    /// it runs on the one connection of the database.
    pub(crate) fn refuse_in_body(&self) -> Result<()> {
        let one_connection = self.handle.engine().is_some_and(|engine| engine.readers.is_none());
        if one_connection && is_inside(self.handle.id()) { Err(waits_for_itself()) } else { Ok(()) }
    }

    /// Registers it, in the place of what has its name.
    pub(crate) fn register(&self, registration: impl FnOnce() -> Result<Registration>) -> Result<()> {
        self.may_begin()?;
        if let Some(own) = self.own_functions() {
            own.add(registration()?);
            return Ok(());
        }
        let engine = self.handle.own_engine("a function of the program")?;
        if engine.context.functions.add(registration()?) {
            engine.see_functions();
        }
        Ok(())
    }

    /// Removes it.
    pub(crate) fn unregister(&self, key: impl FnOnce() -> Result<Key>) -> Result<()> {
        self.may_begin()?;
        let engine = self.handle.own_engine("a function of the program")?;
        let key = key()?;
        let own = self.own_functions();
        if !own.unwrap_or(&engine.context.functions).remove(&key) {
            return Err(match key {
                Key::Function(name, arguments) => Error::new(
                    ErrorCode::NoSuchFunction,
                    format!("no function {name} with {arguments} arguments was created"),
                )
                .with_hint("a function is removed with the number of arguments that it was created with"),
                Key::Collation(name) => {
                    Error::new(ErrorCode::NoSuchFunction, format!("no collation {name} was created"))
                }
            });
        }
        if own.is_none() {
            engine.see_functions();
        }
        Ok(())
    }

    /// The functions of a connection of the caller's own.
    fn own_functions(&self) -> Option<&Arc<Functions>> {
        self.kept.as_ref()?.functions()
    }
}

impl Engine {
    /// Called when the functions have changed.
    fn see_functions(&self) {
        self.context.catalogue.next_epoch();
        let live = self.live.listener();
        live.publish(&Change::Everything);
        live.start();
    }
}
