//! The live queries, connected to the other workers, which do not know them.
//!
//! Owns: which functions of the other workers live queries may call. Runs while a database is opened. Leaves out: how they
//! use them.

use std::sync::{Arc, Mutex};

use super::dispatch::Caller;
use super::handle::Host;
use crate::connection::learn::live_query::{LiveQuery, not_a_query};
use crate::dependencies::change::Change;
use crate::error::{Error, Result};
use crate::sql::statement_info::StatementInfo;
use crate::thread::current::is_inside;
use crate::thread::lock;
use crate::workers::context::Context;
use crate::workers::live::{LiveQueries, LooksForOthers, Powers, Push, RunsHere, Subscription};
use crate::workers::readers::{Look, Readers, Stamps};
use crate::workers::shared_errors::waits_for_itself;
use crate::workers::work_kinds::may_read_only;
use crate::workers::writer::Writer;

impl Caller {
    /// Subscribes to a live query. With one connection its first run waits for the writer, as a read does: one that a front end
    /// begins in the body of a transaction on the same database would wait for the end of that.
    pub(crate) fn subscribe(&self, query: Arc<LiveQuery>, gets_differences: bool) -> Result<Subscription> {
        self.may_begin()?;
        let engine = match self.handle.host() {
            Host::Engine(engine) => engine,
            Host::Server(_) if gets_differences => {
                return Err(Error::misuse(
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
}

/// Returns the live queries of a database that is being opened: there are none yet.
pub(super) fn live_queries(context: &Arc<Context>, writer: Option<&Writer>, readers: Option<&Readers>) -> LiveQueries {
    let (push, look) = (push(writer.cloned(), readers.cloned()), look(writer.cloned(), readers.cloned()));
    let here = readers.cloned();
    let run_here: RunsHere = Box::new(move |query, known| here.as_ref()?.run_live_inline(query, known));
    let powers = Powers { push, run_here, look };
    // One reader is always left for others.
    let at_once = if readers.is_some() { context.options.readers.saturating_sub(1).max(1) } else { 1 };
    let live = LiveQueries::new(context.clone(), powers, at_once);
    if let Some(writer) = writer {
        writer.tell_live(live.listener());
    }
    live
}

fn push(writer: Option<Writer>, readers: Option<Readers>) -> Push {
    match (readers, writer) {
        (Some(readers), _) => Box::new(move |request| readers.push(request).map(drop)),
        (None, Some(writer)) => Box::new(move |request| writer.push(request).map(drop)),
        (None, None) => Box::new(|_| Err(Error::closed())),
    }
}

/// The writer finds the commits of others by itself, when it is given the occasion. A database that is only read
/// compares the headers of the WALs with those of the look before; if it has no connection to read them, the runs of the
/// queries open one.
fn look(writer: Option<Writer>, readers: Option<Readers>) -> LooksForOthers {
    match (writer, readers) {
        (Some(writer), _) => Box::new(move |_| writer.look_for_others()),
        (None, Some(readers)) => {
            let seen = Mutex::new(Stamps::default());
            Box::new(move |live| {
                let look = readers.look(&mut lock(&seen));
                if look != Look::Nothing {
                    live.publish(&Change::Everything);
                    live.start();
                }
            })
        }
        (None, None) => Box::new(|_| {}),
    }
}
