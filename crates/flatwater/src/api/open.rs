//! Opening a database, from its options to a handle; and what concerns all that are open in the process: how many may have connections,
//! and closing all of them.
//!
//! Owns: the calls that open one and close all. Their work runs on a thread of its own, or on the caller's if that may block. Invariants:
//! if the caller of an open has left, no wait goes on, and the database is closed again; each database is closed once, by
//! `close_all` or by its last handle. Leaves out: what opening does (`engine`), and how one is closed (`engine::closing`).

use std::sync::Arc;
use std::time::Duration;

use crate::api::call::Call;
use crate::api::database::{Database, database};
use crate::api::maintenance::migrate;
use crate::connection::functions::registration::Registration;
use crate::engine::awaited::{Awaited, Submitted};
use crate::engine::handle::{Handle, called_from_within};
use crate::engine::opening::Opening;
use crate::engine::registry::{self, FileReservation};
use crate::engine::{Engine, parking};
use crate::options::Options;
use crate::queue::reply::reply;
use crate::workers::Answer;
use flatwater_base::error::{Error, Result};
use flatwater_base::thread::current::{block_on, in_closure, must_not_block};

impl Options {
    /// Opens the database on a separate thread, so the caller's thread does not block. If this process has the file
    /// open already, by any path or link, the result is another handle to the same database. That handle may have fewer
    /// rights ([`read_only`](Self::read_only)).
    ///
    /// Dropping the call ends its wait, and interrupts a migration that runs; the database is then closed again in the
    /// background. The file may have been created, and committed migrations stay.
    ///
    /// # Errors
    /// `Misuse` for options that cannot work (checked before anything is opened), for options that differ from those
    /// the file is already open with, and for a second SQLite library in this process that has the file open; `Open` if
    /// the path, the file or its directory cannot be used; `Key` if the [`key`](Self::key) does not open the file;
    /// `Busy` if another process keeps it locked; `Io` if the file was replaced while it was open.
    pub fn open(self) -> Call<Database> {
        open_with(self, Vec::new())
    }
}

/// Also registers these functions and collations, before anything but `on_open` runs.
pub(crate) fn open_with(options: Options, functions: Vec<Registration>) -> Call<Database> {
    let start = move |may_block| {
        let opening = Opening::new();
        let awaited = Awaited::Opening(opening.clone());
        // If the caller drops the call meanwhile, the database is dropped with the answer, which closes it.
        let open = move || Ok(Answer::Returned(Box::new(open_migrated(options, functions, &opening)), None));
        Submitted::blocking(may_block, awaited, open)
    };
    Call::starting(None, "open", Box::new(start), |answer, _| {
        let db = answer.returned::<Database, Error>()?;
        db.session.0.handle.deliver();
        Ok(db)
    })
}

/// Opens the database, registers the functions, and applies the migrations of its options. Blocks.
fn open_migrated(options: Options, functions: Vec<Registration>, opening: &Opening) -> Result<Database> {
    opening.begin()?;
    let migrations = options.migrations.clone();
    let db = database(Handle::open(options, opening)?)?;
    for function in functions {
        db.session.0.register(|| Ok(function))?;
    }
    if let Some(migrations) = migrations {
        migrate(&db.session, migrations).wait_within(opening)?;
    }
    Ok(db)
}

/// Closes all database files that are open in this process at the same time, when a service with many databases ends.
/// For each file it does what [`Database::close`](crate::Database::close) does for the last handle: it executes the
/// writes submitted before, waits for open transactions, and rolls these back after `wait`, or after the database's
/// [`Tuning::close_wait`](crate::options::Tuning::close_wait) if that is shorter. The call returns at most two seconds later.
///
/// It also waits for closes that began earlier, as long as they take. Calls on the remaining handles return `Closed`,
/// except `close`, which succeeds. A file may be opened again afterwards. Databases in memory and on servers, and files that are being
/// opened, stay open. If the future is dropped after its first poll, the databases are still closed.
///
/// # Errors
/// `Busy` if a closure or a statement of a file does not end, with its name; the other files are closed. `Misuse`
/// inside a closure on a connection, where it would deadlock, and `Io` if no thread can be started; nothing is closed
/// then.
///
/// ```
/// # async fn example() -> flatwater::Result<()> {
/// flatwater::process::close_all(std::time::Duration::from_secs(3)).await?;
/// # Ok(()) }
/// ```
#[doc(alias = "shutdown")]
pub fn close_all(wait: Duration) -> Call<()> {
    let start = move |may_block| {
        if in_closure() || may_block && must_not_block() {
            return Err(called_from_within());
        }
        Submitted::blocking(may_block, Awaited::Close, move || close_every_file(wait))
    };
    Call::starting(None, "close_all", Box::new(start), |answer, _| answer.done())
}

/// Sets how many databases of the process may have connections at a time; 0 counts as 1. Beyond that, Flatwater closes
/// the connections of the least recently used databases, and the next call on one of them opens them again: the
/// databases stay open, and their handles valid. A call that needs connections while twice as many databases have some
/// waits until others are closed, up to its deadline, unless transactions, snapshots or cursors are open in all of
/// them. Default 64. Does not block.
#[doc(alias = "max_open")]
pub fn set_max_open(databases: usize) {
    parking::set_max_open(databases);
}

/// Closes every open file, and returns the first error when all are closed. Blocks.
fn close_every_file(wait: Duration) -> Result<Answer> {
    let close = |(engine, reservation): (Arc<Engine>, Option<FileReservation>)| {
        let (promise, ended) = reply();
        match reservation {
            Some(reservation) => engine.close(Some(promise), reservation, wait.min(engine.context.options.close_wait)),
            None => engine.when_closed(Some(promise)),
        }
        ended
    };
    let ends: Vec<_> = registry::leave_those(|_| true).into_iter().map(close).collect();
    let answers: Vec<_> = ends.into_iter().filter_map(block_on).collect();
    answers.into_iter().find(Result::is_err).unwrap_or(Ok(Answer::Done))
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::mpsc::channel;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use super::*;
    use crate::engine::registry::handles;
    use flatwater_base::error::ErrorKind;

    /// A call that was polled and has not returned its result.
    fn polled(options: &Options) -> Call<Database> {
        loop {
            let mut open = options.clone().open();
            match Pin::new(&mut open).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => return open,
                // It was opened meanwhile.
                Poll::Ready(db) => db.unwrap().close().wait().unwrap(),
            }
        }
    }

    /// The database is open, but its caller does not have it yet, and leaves.
    #[test]
    fn an_opening_that_is_given_up_refuses_no_other_options() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let options = |seconds| Options::new(&path).busy_timeout(Duration::from_secs(seconds));
        for _ in 0..20 {
            let given_up = polled(&options(60));
            while handles(&path) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(options(0).open().wait().unwrap_err().kind(), ErrorKind::Misuse, "it cannot wait");
            let open = polled(&options(61));
            drop(given_up);
            open.wait().unwrap().close().wait().unwrap();
        }
    }

    #[test]
    fn an_opening_whose_caller_has_the_database_refuses_other_options() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let options = |seconds| Options::new(&path).busy_timeout(Duration::from_secs(seconds));
        let wanted = polled(&options(60));
        while handles(&path) == 0 {
            std::thread::yield_now();
        }
        let open = polled(&options(3600));
        let db = wanted.wait().unwrap();
        assert_eq!(open.wait().unwrap_err().kind(), ErrorKind::Misuse);
        let copy = options(60).open().wait().unwrap();
        db.close().wait().unwrap();
        assert_eq!(options(3600).open().wait().unwrap_err().kind(), ErrorKind::Misuse);
        copy.close().wait().unwrap();
        options(3600).open().wait().unwrap();
    }

    /// Its migrations wait in the queue of the writer, which another handle has.
    #[test]
    fn an_opening_that_is_given_up_while_its_migrations_wait_leaves_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let options = Options::new(&path).migrations([("001_a", "CREATE TABLE t (a)")]);
        let db = options.clone().open().wait().unwrap();
        let ((begins, begun), (release, released)) = (channel(), channel::<()>());
        let mut held = db.write_with(move |_| {
            begins.send(()).unwrap();
            let _ = released.recv();
            Ok::<_, Error>(())
        });
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut held).poll(&mut context).is_pending());
        begun.recv().unwrap();
        let mut open = options.open();
        assert!(Pin::new(&mut open).poll(&mut context).is_pending());
        while db.stats().writes_waiting == 0 {
            std::thread::yield_now();
        }
        assert_eq!(handles(&path), 2);
        drop(open);
        while handles(&path) > 1 {
            std::thread::yield_now();
        }
        drop(release);
        held.wait().unwrap();
        db.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
    }
}
