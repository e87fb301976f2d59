//! One reader: a read-only connection, and what it does for one request.
//!
//! Owns: running a query or a closure of the user on a connection that cannot write. Used by the thread that borrowed it.
//! Invariants: a query runs armed, so that a caller who leaves ends it; after a closure the connection is as it was, or
//! it is not used again. Leaves out: the pool.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::Busy;

use crate::connection::class::Route;
use crate::connection::judge;
use crate::connection::open::{Connection, Role};
use crate::connection::schema::SchemaFacts;
use crate::encode::rows::RowSink;
use crate::types::error::{Error, Result};
use crate::types::options::Options;
use crate::types::request::Ticket;
use crate::types::time::later;
use crate::waiting::busy::LockWait;
use crate::workers::request::{Answer, ReadClosure, Work};

pub(super) struct Reader {
    connection: Connection,
    lock_wait: LockWait,
}

impl Reader {
    pub(super) fn open(options: &Options) -> Result<Self> {
        let lock_wait = LockWait::default();
        lock_wait.until(later(Instant::now(), options.lock_wait));
        let connection = Connection::open(options, Role::Reader, busy(&lock_wait))?;
        Ok(Self { connection, lock_wait })
    }

    pub(super) fn journal(&self) -> &str {
        &self.connection.journal
    }

    /// Where the wal-index is mapped.
    pub(super) fn index(&self) -> Option<usize> {
        self.connection.sqlite.wal_index_address()
    }

    /// Answers the work, and whether the connection is as it was.
    pub(super) fn perform(&mut self, options: &Options, work: Work, ticket: &Arc<Ticket>) -> (Result<Answer>, bool) {
        let wait_end = later(Instant::now(), options.lock_wait);
        self.lock_wait.until(ticket.deadline.map_or(wait_end, |deadline| deadline.min(wait_end)));
        match work {
            Work::ReadWith(closure) => self.closure(closure, ticket),
            work => (self.query(work, ticket), true),
        }
    }

    fn query(&mut self, work: Work, ticket: &Arc<Ticket>) -> Result<Answer> {
        let Work::Query { text, params, limit } = &work else {
            return Err(Error::misuse("a reader cannot do this"));
        };
        let ready = match self.connection.ready(text, judge::statement, &SchemaFacts::default()) {
            Ok(ready) => ready,
            Err(error) if error.sqlite_code().is_some() => return Ok(Answer::ForWriter(work, Some(error))),
            Err(error) => return Err(error),
        };
        text.learn_route(ready.class.route);
        let result = if ready.class.route == Route::Write {
            None
        } else if ready.class.columns == 0 {
            Some(Err(Error::misuse("the statement returns no rows").with_sql(&text.sql)))
        } else {
            self.connection.sqlite.arm(ticket.clone());
            let mut sink = RowSink::new(text.expected_size(), *limit);
            let run = self.connection.run(&ready, params, &mut sink);
            self.connection.sqlite.disarm();
            if run.is_ok() {
                self.connection.learn(&ready);
            }
            Some(run.and_then(|_| {
                let (cells, bytes) = sink.size();
                text.had_size(cells, bytes);
                Ok(Answer::Rows(sink.finish(self.connection.names_after_run(&ready)?)))
            }))
        };
        self.connection.done_with(&ready);
        result.unwrap_or(Ok(Answer::ForWriter(work, None)))
    }

    /// A closure of the user, inside a read transaction: one snapshot. What it may have done to the connection is
    /// looked at afterwards.
    fn closure(&mut self, closure: ReadClosure, ticket: &Arc<Ticket>) -> (Result<Answer>, bool) {
        if let Err(error) = self.connection.sqlite.execute_batch("BEGIN") {
            return (Err(error.into()), true);
        }
        self.connection.sqlite.set_judge(judge::read_closure);
        self.connection.sqlite.arm(ticket.clone());
        let sqlite = self.connection.sqlite.rusqlite();
        let ran = catch_unwind(AssertUnwindSafe(|| closure(sqlite)));
        let trusted = self.connection.restore_handlers(busy(&self.lock_wait));
        let rolled_back = self.connection.control.rollback(&mut self.connection.sqlite).is_ok();
        let usable = trusted && rolled_back && self.connection.is_idle();
        let answer = match ran {
            Ok(true) => Ok(Answer::Done),
            Ok(false) => ticket.closure_failed().map(|()| Answer::Done),
            Err(panic) => Err(Error::panicked(&*panic)),
        };
        (answer, usable)
    }
}

fn busy(wait: &LockWait) -> Busy {
    let wait = wait.clone();
    Box::new(move |tries| wait.again(tries))
}
