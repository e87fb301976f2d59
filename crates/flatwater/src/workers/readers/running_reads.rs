//! The reads that are running, and the read sessions that are open.
//!
//! Owns: the record of each, guarded by the pool's lock, and finding the oldest. Runs on any thread that holds this lock.
//! Leaves out: inline reads, which end before another thread could ask for them.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::Readers;
use super::read_session::{End, ReadSession};
use crate::error::shorten;
use crate::queue::ticket::Ticket;
use crate::sql::catalogue::StatementInfo;
use crate::workers::request::{Request, Work};

#[derive(Clone)]
pub(super) struct Running {
    pub(super) ticket: Arc<Ticket>,
    began: Instant,
    what: What,
}

/// What a read is called in messages.
#[derive(Clone)]
enum What {
    Text(Arc<StatementInfo>),
    Closure,
    Backup,
    /// A read session, with the text of its cursor if it has one.
    ReadSession(Weak<ReadSession>, Option<Arc<StatementInfo>>),
}

impl Running {
    pub(super) fn new(request: &Request) -> Self {
        let what = match &request.work {
            Work::Query { text, .. } | Work::Prepare(text) => What::Text(text.clone()),
            Work::Backup(_) => What::Backup,
            _ => What::Closure,
        };
        Self { ticket: request.ticket.clone(), began: Instant::now(), what }
    }

    pub(super) fn session(session: &Arc<ReadSession>, text: Option<Arc<StatementInfo>>) -> Self {
        let what = What::ReadSession(Arc::downgrade(session), text);
        Self { ticket: session.ticket.clone(), began: session.began(), what }
    }

    /// Interrupts the read because the database closes.
    pub(super) fn close(&self) {
        if let What::ReadSession(session, _) = &self.what
            && let Some(session) = session.upgrade()
        {
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
        match &self.0.what {
            What::Text(text) | What::ReadSession(_, Some(text)) => shorten(&text.sql).into_owned(),
            What::Closure => "a closure".into(),
            What::Backup => "a backup".into(),
            What::ReadSession(_, None) => "a snapshot".into(),
        }
    }

    /// Ends it because it prevents a restart of the WAL. Returns false if that was done before.
    pub(crate) fn cut_off(&self) -> bool {
        if let What::ReadSession(session, _) = &self.0.what
            && let Some(session) = session.upgrade()
        {
            // Noted before the fetch that runs is interrupted.
            session.finish(End::CutOff);
        }
        self.0.ticket.cut_off()
    }
}

impl Readers {
    /// Returns the oldest read.
    pub(crate) fn oldest(&self) -> Option<Oldest> {
        let state = self.0.lock();
        state.running.iter().min_by_key(|running| running.began).cloned().map(Oldest)
    }
}
