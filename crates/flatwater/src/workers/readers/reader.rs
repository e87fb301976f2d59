//! One reader: a read-only connection, and how it performs one request.
//!
//! Owns: running a query on a connection that cannot write. Runs on the thread that borrowed the connection. Invariants:
//! a query runs armed, so that it ends when its caller gives it up; it runs between `enter` and `leave`, after which no
//! transaction is open except that of a lease. Leaves out: the pool, and closures of the user (`serve_closure`).

use std::sync::Arc;
use std::time::Instant;

use flatwater_sqlite::{Busy, Interrupt};

use super::reader_lease::{Holder, ReleaseRequests, may_hold};
use crate::busy_handler::BusyWait;
use crate::connection::learn::live_query::Derived;
use crate::connection::learn::schema::SchemaFacts;
use crate::connection::open::Connection;
use crate::connection::open::role::Role;
use crate::connection::run::cursors::{Batch, Cursors};
use crate::connection::run::execute::{Bounds, StatementRun};
use crate::connection::run::in_parts::LastPart;
use crate::connection::run::prepare::refuse_told_of_earlier;
use crate::connection::run::statement_cache::CachedStatement;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::queue::ticket::Ticket;
use crate::sql::catalogue::Catalogue;
use crate::sql::class::Route;
use crate::sql::policy;
use crate::stats::Recorder;
use crate::time::later;
use crate::values::params::ParamRow;
use crate::values::row::Rows;
use crate::workers::Answer;
use crate::workers::refusals::not_ended;
use crate::workers::request::{LiveQuery, Wanted, Work};

/// The outcome of a request on a reader.
pub(super) enum Performed {
    Answered(Result<Answer>),
    /// The reader is kept: for a cursor, with its first rows, or for a snapshot.
    Opened(Option<(Rows, u64)>),
    /// The work is a write. The error is present if the statement could not be prepared.
    Write(Work, Option<Error>),
}

impl Performed {
    fn is_ok(&self) -> bool {
        !matches!(self, Self::Answered(Err(_)))
    }
}

pub(super) struct Reader {
    pub(super) connection: Connection,
    pub(super) busy_timeout: BusyWait,
    /// The catalogue's epoch when this connection last checked the schema.
    pub(super) epoch: u64,
    /// `None` if leases are not possible on this connection.
    leases: Option<Holder>,
    last_used: Instant,
    /// The number of the last recall when the connection was opened.
    pub(super) recall: u64,
    pub(super) cursors: Cursors,
    /// The transaction of a snapshot is open. It may see an older schema, so nothing is learnt from it.
    in_snapshot: bool,
}

impl Reader {
    pub(super) fn open(
        options: &Options,
        requests: &Arc<ReleaseRequests>,
        recorder: &Arc<Recorder>,
        recall: u64,
        ticket: &Arc<Ticket>,
    ) -> Result<Self> {
        let busy_timeout = BusyWait::default();
        let now = Instant::now();
        wait_for_locks(&busy_timeout, now, options, ticket);
        let connection = Connection::open(options, Role::Reader, busy(&busy_timeout))?;
        let leases = may_hold(options, &connection).then(|| Holder::new(requests, recorder));
        Ok(Self {
            connection,
            busy_timeout,
            epoch: u64::MAX,
            leases,
            last_used: now,
            recall,
            cursors: Cursors::default(),
            in_snapshot: false,
        })
    }

    pub(super) fn journal(&self) -> &str {
        &self.connection.journal
    }

    /// Returns the address at which the wal-index is mapped.
    pub(super) fn index(&self) -> Option<usize> {
        self.connection.sqlite.wal_index_address()
    }

    /// Returns what every commit to a file with a WAL changes, for the main file and each attached one. `None` for a file
    /// in whose WAL a commit is being published.
    pub(super) fn stamps(&self) -> impl Iterator<Item = Option<u32>> {
        let Connection { sqlite, attached_wals, .. } = &self.connection;
        let main = sqlite.wal_state().map(|state| state.stamp());
        std::iter::once(main).chain(attached_wals.iter().map(|name| sqlite.attached_change(name)))
    }

    /// Performs the work. Returns the outcome, and true if the connection can be used again.
    pub(super) fn perform(
        &mut self,
        options: &Options,
        catalogue: &Catalogue,
        work: Work,
        ticket: &Arc<Ticket>,
    ) -> (Performed, bool) {
        self.connection.unlimit();
        let now = self.wait_for_locks(options, ticket);
        match work {
            Work::ReadWith(closure) => {
                let (answer, usable) = self.closure(closure, ticket);
                (Performed::Answered(answer), usable)
            }
            Work::Backup(target) => self.backup(options, &target, ticket),
            Work::Live(query, known) => self.live(catalogue, &query, &known, ticket),
            work if work.holds_a_reader() => self.open_held(catalogue, work, ticket),
            work => self.read(catalogue, work, ticket, now),
        }
    }

    /// Sets how long the request may wait for locks. Returns the time.
    pub(super) fn wait_for_locks(&mut self, options: &Options, ticket: &Arc<Ticket>) -> Instant {
        let now = Instant::now();
        wait_for_locks(&self.busy_timeout, now, options, ticket);
        now
    }

    /// Ends the lease, if the reader has one. Returns false if the connection cannot be used.
    pub(super) fn end_lease(&mut self) -> bool {
        if let Some(leases) = &mut self.leases {
            leases.end(&mut self.connection);
        }
        self.is_usable()
    }

    /// Opens a cursor or a snapshot. Returns the same as `perform`.
    fn open_held(&mut self, catalogue: &Catalogue, work: Work, ticket: &Arc<Ticket>) -> (Performed, bool) {
        if !self.end_lease() {
            return (Performed::Answered(Err(not_ended())), false);
        }
        self.see_schema(catalogue);
        let interrupt: Arc<dyn Interrupt> = ticket.clone();
        let performed = if let Work::Snapshot = work {
            let begun = self.begin_snapshot(ticket);
            self.connection.sqlite.disarm();
            match begun {
                Ok(()) => {
                    self.in_snapshot = true;
                    Performed::Opened(None)
                }
                Err(error) => Performed::Answered(Err(error)),
            }
        } else {
            self.query(work, &interrupt)
        };
        let is_usable = matches!(performed, Performed::Opened(_)) || self.end_held();
        (performed, is_usable)
    }

    /// Runs a live query. Returns the same as `perform`.
    fn live(
        &mut self,
        catalogue: &Catalogue,
        query: &LiveQuery,
        known: &[Option<Derived>],
        ticket: &Arc<Ticket>,
    ) -> (Performed, bool) {
        if !self.end_lease() {
            return (Performed::Answered(Err(not_ended())), false);
        }
        self.see_schema(catalogue);
        self.connection.sqlite.arm(ticket.clone());
        let run = self.connection.run_live(query.parts(known));
        self.connection.sqlite.disarm();
        let usable = self.leave(run.is_ok(), Instant::now());
        (Performed::Answered(run.map(Answer::Live)), usable)
    }

    /// Ends the cursors and the transaction of a held reader. Returns false if the connection cannot be used again.
    pub(super) fn end_held(&mut self) -> bool {
        self.cursors.end_all(&mut self.connection);
        self.in_snapshot = false;
        self.epoch = u64::MAX;
        let is_over = self.connection.sqlite.is_autocommit()
            || self.connection.control.rollback(&mut self.connection.sqlite).is_ok();
        is_over && self.connection.is_idle()
    }

    /// Runs a query, in the transaction of a lease or in its own. Returns the same as `perform`.
    fn read(&mut self, catalogue: &Catalogue, work: Work, ticket: &Arc<Ticket>, now: Instant) -> (Performed, bool) {
        let Some(continues) = self.enter(now) else { return (Performed::Answered(Err(not_ended())), false) };
        if !continues {
            self.see_schema(catalogue);
        }
        let interrupt: Arc<dyn Interrupt> = ticket.clone();
        let performed = self.query(work, &interrupt);
        let usable = self.leave(performed.is_ok(), Instant::now());
        (performed, usable)
    }

    /// Continues the lease, renews it, begins one, or makes sure that there is none. Returns whether the next read
    /// continues a lease, or `None` if the connection cannot be used.
    pub(super) fn enter(&mut self, now: Instant) -> Option<bool> {
        let continues = self.leases.as_mut().is_some_and(|leases| leases.enter(&mut self.connection, now));
        self.is_usable().then_some(continues)
    }

    /// Reads the schema if it may have changed since the connection last read it.
    fn see_schema(&mut self, catalogue: &Catalogue) {
        let epoch = catalogue.epoch();
        if epoch != self.epoch {
            self.connection.seen.forget();
        }
        self.connection.see_schema(&catalogue.left);
        self.epoch = epoch;
    }

    /// Keeps the lease, or ends it. Returns false if the connection cannot be used again.
    pub(super) fn leave(&mut self, well: bool, now: Instant) -> bool {
        self.last_used = now;
        if let Some(leases) = &mut self.leases {
            leases.leave(&mut self.connection, well, now);
        }
        self.is_usable()
    }

    /// Returns true if no transaction is open except that of a lease. In any other open transaction the next statement
    /// would see an old snapshot.
    fn is_usable(&self) -> bool {
        self.leases.as_ref().is_some_and(Holder::is_held) || self.connection.sqlite.is_autocommit()
    }

    /// Returns the number of reads that continued a lease since the last call.
    pub(super) fn take_reused(&mut self) -> u64 {
        self.leases.as_mut().map_or(0, Holder::take_reused)
    }

    /// Returns when the lease of the idle reader ends, if it has one.
    pub(super) fn lease_until(&self) -> Option<Instant> {
        self.leases.as_ref()?.until()
    }

    /// Ends the lease of the idle reader if it is due. Returns false if the connection cannot be used again.
    pub(super) fn rest(&mut self, now: Instant) -> bool {
        if let Some(leases) = &mut self.leases {
            leases.rest(&mut self.connection, now);
        }
        self.is_usable()
    }

    pub(super) fn last_used(&self) -> Instant {
        self.last_used
    }

    /// Runs a query that `interrupt` may end, or opens a cursor; or compiles a text.
    pub(super) fn query(&mut self, work: Work, interrupt: &Arc<dyn Interrupt>) -> Performed {
        let (Work::Query { text, .. } | Work::Execute { text, .. } | Work::Prepare(text)) = &work else {
            return Performed::Write(work, None);
        };
        if matches!(work, Work::Prepare(_)) && text.tells_of_its_prepare {
            return Performed::Answered(Ok(Answer::Prepared(text.clone())));
        }
        let ready = match self.connection.ready(text, policy::statement, &SchemaFacts::default()) {
            Ok(ready) => ready,
            Err(error) if error.sqlite_code().is_some() => return Performed::Write(work, Some(error)),
            Err(error) => return Performed::Answered(Err(error)),
        };
        if !self.in_snapshot {
            text.learn_route(ready.class.route);
        }
        if let Err(error) = refuse_told_of_earlier(&ready) {
            self.connection.done_with(&ready);
            return Performed::Answered(Err(error));
        }
        let (params, in_batches) = match &work {
            Work::Query { params, wanted, .. } => (params, matches!(wanted, Wanted::Batches)),
            Work::Execute { params, .. } if ready.class.asks => (params, false),
            other => {
                self.connection.done_with(&ready);
                let prepared = matches!(other, Work::Prepare(_)).then(|| Answer::Prepared(text.clone()));
                return prepared.map_or_else(|| Performed::Write(work, None), |text| Performed::Answered(Ok(text)));
            }
        };
        let result = if ready.class.route == Route::Write {
            None
        } else if ready.class.columns == 0 && !ready.class.asks {
            Some(Err(Error::misuse("the statement returns no rows").with_sql(&text.sql)))
        } else if in_batches && self.connection.journal == "wal" {
            self.connection.sqlite.arm(interrupt.clone());
            let started = self.cursors.start(&mut self.connection, ready, params.clone());
            self.connection.sqlite.disarm();
            return match started {
                Ok(Batch { rows, cursor: Some(number) }) => Performed::Opened(Some((rows, number))),
                Ok(Batch { rows, cursor: None }) => Performed::Answered(Ok(Answer::Rows(rows))),
                Err(error) => Performed::Answered(Err(error)),
            };
        } else {
            self.connection.sqlite.arm(interrupt.clone());
            let answer = self.run(&work, &ready, params.row());
            self.connection.sqlite.disarm();
            if answer.is_ok() && !self.in_snapshot {
                self.connection.learn(&ready);
            }
            Some(answer)
        };
        self.connection.done_with(&ready);
        result.map_or(Performed::Write(work, None), Performed::Answered)
    }

    /// Runs a prepared query.
    fn run(&mut self, work: &Work, statement: &CachedStatement, params: ParamRow<'_>) -> Result<Answer> {
        if let Work::Query { wanted: Wanted::Parts(parts), .. } = work {
            let ran = self.connection.execute_in_parts(statement, params, |part| parts.hand_over(part));
            return ran.map(|LastPart { rows, before }| Answer::LastPart(Box::new((rows, before))));
        }
        let run = StatementRun { statement, params, output: work.output(), bounds: Bounds::Armed };
        self.connection.execute(&run).map(Answer::from)
    }

    /// Begins the transaction of a closure and takes its snapshot here, so that the wait for locks ends with the time
    /// of the request. A snapshot that the user's code began would wait as SQLite does.
    pub(super) fn begin_snapshot(&mut self, ticket: &Arc<Ticket>) -> Result<()> {
        self.connection.control.begin_read(&mut self.connection.sqlite)?;
        self.connection.sqlite.arm(ticket.clone());
        self.connection.schema_cookie()?;
        // The closure may list what is in the schema.
        self.connection.load_newest_schema()?;
        self.connection.begin_attached()
    }
}

fn wait_for_locks(wait: &BusyWait, now: Instant, options: &Options, ticket: &Arc<Ticket>) {
    let end = later(now, options.busy_timeout);
    wait.until(ticket.deadline.map_or(end, |deadline| deadline.min(end)), ticket.clone());
}

pub(super) fn busy(wait: &BusyWait) -> Busy {
    let wait = wait.clone();
    Box::new(move |tries| wait.again(tries))
}
