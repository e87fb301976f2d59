//! The reads that are running.
//!
//! Owns: the record of each running read, guarded by the pool's lock, and finding the oldest. Runs on any thread that
//! holds this lock. Leaves out: inline reads, which end before another thread could ask for them.

use std::sync::Arc;
use std::time::Instant;

use super::Readers;
use crate::error::shorten;
use crate::queue::ticket::Ticket;
use crate::sql::catalogue::StatementInfo;
use crate::workers::request::{Request, Work};

pub(super) struct Running {
    pub(super) ticket: Arc<Ticket>,
    began: Instant,
    text: Option<Arc<StatementInfo>>,
}

impl Running {
    pub(super) fn new(request: &Request) -> Self {
        let text = match &request.work {
            Work::Query { text, .. } | Work::Prepare(text) => Some(text.clone()),
            _ => None,
        };
        Self { ticket: request.ticket.clone(), began: Instant::now(), text }
    }
}

impl Readers {
    /// Returns the read that has been running longest: when it began, its SQL, and its ticket. A closure has no SQL.
    pub(crate) fn oldest(&self) -> Option<(Instant, String, Arc<Ticket>)> {
        let state = self.0.lock();
        let oldest = state.running.iter().min_by_key(|running| running.began)?;
        let sql = oldest.text.as_ref().map_or_else(|| "a closure".into(), |text| shorten(&text.sql).into_owned());
        Some((oldest.began, sql, oldest.ticket.clone()))
    }
}
