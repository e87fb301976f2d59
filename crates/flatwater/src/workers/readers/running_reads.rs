//! The reads that are running, and the read sessions that are open.
//!
//! Owns: the record of each, guarded by the pool's lock, and finding the oldest. Runs on any thread that holds this lock.
//! Leaves out: inline reads, which end before another thread could ask for them.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::read_session::ReadSession;
use super::{Readers, ReadersShared};
use crate::queue::ticket::Ticket;
use crate::workers::kept::inbox::End;
use crate::workers::request::Request;
use crate::workers::work_kinds::Name;
use flatwater_sql::statement_info::StatementInfo;

#[derive(Clone)]
pub(super) struct Running {
    pub(super) ticket: Arc<Ticket>,
    began: Instant,
    name: Name,
    /// If it is one.
    session: Option<Weak<ReadSession>>,
}

impl Running {
    /// Starts the request: under the pool's lock, so that what waits no more has begun.
    pub(super) fn start(request: &Request) -> Self {
        let name = Name::of(&request.work);
        request.ticket.start();
        Self { ticket: request.ticket.clone(), began: Instant::now(), name, session: None }
    }

    /// `text` is that of its cursor, if it has one.
    pub(super) fn session(session: &Arc<ReadSession>, text: Option<Arc<StatementInfo>>) -> Self {
        let name = text.map_or(Name::Words("a snapshot"), Name::Sql);
        Self { ticket: session.ticket.clone(), began: session.began(), name, session: Some(Arc::downgrade(session)) }
    }

    fn open_session(&self) -> Option<Arc<ReadSession>> {
        self.session.as_ref()?.upgrade()
    }

    /// Interrupts the read because the database closes.
    pub(super) fn close(&self) {
        if let Some(session) = self.open_session() {
            session.finish(End::Closed);
        }
        self.ticket.end();
    }
}

/// The read that has been running longest, or the read session that has been open longest.
pub(crate) struct Oldest(Running);

impl Oldest {
    pub(crate) fn age(&self) -> Duration {
        self.0.began.elapsed()
    }

    /// Its SQL, or what it is if it has none.
    pub(crate) fn sql(&self) -> String {
        self.0.name.short().into_owned()
    }

    /// Ends it because it prevents a restart of the WAL. Returns false if that was done before.
    pub(crate) fn cut_off(&self) -> bool {
        if let Some(session) = self.0.open_session() {
            // Noted before the fetch that runs is interrupted.
            session.finish(End::CutOff);
        }
        self.0.ticket.cut_off()
    }
}

/// Ends the read sessions that are at their limits, and returns when to look again, if others are open. Runs on the timer's thread.
pub(super) fn look(pool: &ReadersShared) -> Option<Instant> {
    let open: Vec<_> = pool.lock().running.iter().filter_map(Running::open_session).collect();
    open.iter().filter_map(ReadSession::look).min()
}

impl Readers {
    /// Returns the oldest read.
    pub(crate) fn oldest(&self) -> Option<Oldest> {
        let state = self.0.lock();
        state.running.iter().min_by_key(|running| running.began).cloned().map(Oldest)
    }
}
