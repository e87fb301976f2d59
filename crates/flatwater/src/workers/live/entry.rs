//! One live query, and the runs of it.
//!
//! Owns: the state of its runs, its last result and its subscribers. Used under the lock of the entries. Invariants: at most
//! one run is in flight; a change that invalidates the query meanwhile causes exactly one more; the first result is held back
//! at most once. Leaves out: all other live queries (`entries`).

use std::sync::Arc;
use std::time::Instant;

use hashlink::LinkedHashMap;
use rusqlite::ffi;

use super::diff::{Delivery, Results};
use super::subscriber::Subscriber;
use crate::connection::learn::live_query::{Derived, Found, LiveQuery, LiveRun};
use crate::queue::ticket::Ticket;
use flatwater_base::error::{Error, ErrorKind, Result};
use flatwater_base::time::timer::Deadline;

/// So many subscribers are woken in microseconds.
const FEW: usize = 16;

pub(super) struct Entry {
    pub(super) query: Arc<LiveQuery>,
    /// What each of its statements reads, as the index has it. Empty before its first run, and after an error.
    pub(super) reads: Vec<(Derived, Found)>,
    pub(super) run: RunState,
    last: Option<Delivery>,
    /// Results that are for nobody any more, until they can be freed.
    pub(super) retired: Vec<Delivery>,
    was_held_back: bool,
    /// By the addresses of their places, in the order in which they came.
    pub(super) subscribers: LinkedHashMap<usize, Arc<Subscriber>>,
    /// Goes off when the entry has had no subscriber for the grace period.
    pub(super) grace: Deadline,
    /// When the oldest change that it has not delivered was published.
    pub(super) invalidated_at: Option<Instant>,
}

pub(super) enum RunState {
    Idle,
    /// It is in the queue of entries that are to run.
    Waits,
    Runs {
        ticket: Arc<Ticket>,
        /// The number of the last commit before the run.
        commit: u64,
        /// A change invalidated the query meanwhile.
        is_invalidated: bool,
        /// A change of everything did, so that the reads may have changed again.
        is_lost: bool,
    },
}

/// A run that has ended.
pub(super) struct Ran {
    pub(super) result: Result<Vec<LiveRun>>,
    /// It has the last result again.
    is_same: bool,
}

/// What became of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The result is another one, for all subscribers.
    Changed,
    Unchanged,
    /// It is the first result, and a change invalidated it.
    HeldBack,
}

impl Entry {
    pub(super) fn new(query: Arc<LiveQuery>) -> Self {
        Self {
            query,
            reads: Vec::new(),
            run: RunState::Waits,
            last: None,
            retired: Vec::new(),
            was_held_back: false,
            subscribers: LinkedHashMap::new(),
            grace: Deadline::default(),
            invalidated_at: None,
        }
    }

    pub(super) fn add(&mut self, place: Arc<Subscriber>) {
        self.subscribers.insert(Arc::as_ptr(&place).addr(), place);
    }

    pub(super) fn remove(&mut self, place: &Arc<Subscriber>) {
        self.subscribers.remove(&Arc::as_ptr(place).addr());
    }

    pub(super) fn last(&self) -> Option<&Delivery> {
        self.last.as_ref()
    }

    /// Notes that its last result is not for those who subscribe from now on.
    pub(super) fn retire(&mut self) {
        self.retired.extend(self.last.take());
        self.was_held_back = false;
    }

    /// Returns true if another result as small as the last one is compared and delivered in microseconds.
    pub(super) fn is_small(&self) -> bool {
        let is_small = |place: &Arc<Subscriber>| place.has_small();
        self.subscribers.len() <= FEW
            && self.last().is_some_and(Delivery::is_small)
            && self.subscribers.values().all(is_small)
    }

    /// Notes that a change invalidates the query. Returns true if the entry is to be put into the queue.
    pub(super) fn invalidate(&mut self, now: Instant, loses_reads: bool) -> bool {
        self.invalidated_at.get_or_insert(now);
        if let RunState::Runs { is_lost, .. } = &mut self.run {
            *is_lost |= loses_reads;
        }
        self.run_again()
    }

    /// Causes one more run. Returns true if the entry is to be put into the queue.
    pub(super) fn run_again(&mut self) -> bool {
        match &mut self.run {
            RunState::Idle => {
                self.run = RunState::Waits;
                true
            }
            RunState::Waits => false,
            RunState::Runs { is_invalidated, .. } => {
                *is_invalidated = true;
                false
            }
        }
    }

    /// Returns true if its last run failed for a reason that may pass without a commit.
    pub(super) fn may_pass(&self) -> bool {
        self.last().is_some_and(|last| last.result.as_ref().is_err_and(may_pass))
    }

    /// Notes the result of a run, and returns what became of it. The run is in flight until `rest`.
    pub(super) fn end(&mut self, ran: Ran, is_final: bool, now: Instant) -> Ended {
        let Ran { result: run, is_same } = ran;
        let (commit, is_invalidated) = match self.run {
            RunState::Runs { commit, is_invalidated, .. } => (commit, is_invalidated),
            RunState::Idle | RunState::Waits => (0, false),
        };
        if self.last.is_none() && is_invalidated && !self.was_held_back && !is_final {
            self.was_held_back = true;
            return Ended::HeldBack;
        }
        let keys: Arc<[_]> = run.iter().flatten().map(|run| run.derived.keys.clone()).collect();
        if let Some(last) = self.last.as_mut().filter(|_| is_same) {
            if last.keys != keys {
                (last.keys, last.repeated) = (keys, Arc::default());
            }
            last.commit = commit;
            return Ended::Unchanged;
        }
        let result = run.map(|runs| runs.into_iter().map(|run| Arc::new(run.rows)).collect());
        let version = self.last.as_ref().map_or(0, |last| last.version) + 1;
        self.last = Some(Delivery { result, keys, commit, at: now, version, repeated: Arc::default() });
        Ended::Changed
    }

    /// Notes that the result of a run was delivered. Returns true if the entry is to be put into the queue.
    pub(super) fn rest(&mut self) -> bool {
        let is_invalidated = matches!(self.run, RunState::Runs { is_invalidated: true, .. });
        self.run = if is_invalidated { RunState::Waits } else { RunState::Idle };
        is_invalidated
    }

    /// Ends a run whose result is not wanted any more.
    pub(super) fn withdraw(&self) {
        if let RunState::Runs { ticket, .. } = &self.run {
            ticket.leave();
        }
    }
}

impl Ran {
    /// Compares a run with the last result, which takes long for a large one: called without the lock of the entries. There
    /// is no other run of the entry meanwhile, so its last result stays as it is.
    pub(super) fn new(result: Result<Vec<LiveRun>>, last: Option<&Delivery>) -> Self {
        let is_same = last.is_some_and(|last| is_same(&last.result, &result));
        Self { result, is_same }
    }
}

/// Returns true if the same run may succeed in a moment, without a commit: the machine has no thread, no memory or no
/// descriptor for it now, its disk or another process is in the way, or a server does not answer.
pub(super) fn may_pass(error: &Error) -> bool {
    match error.sqlite_code().map(|code| code & 0xff) {
        // Of a server: there was no answer in time.
        None => matches!(error.kind(), ErrorKind::Io | ErrorKind::Timeout),
        Some(code) => matches!(
            code,
            ffi::SQLITE_BUSY | ffi::SQLITE_PROTOCOL | ffi::SQLITE_NOMEM | ffi::SQLITE_IOERR | ffi::SQLITE_CANTOPEN
        ),
    }
}

fn is_same(last: &Result<Results>, run: &Result<Vec<LiveRun>>) -> bool {
    match (last, run) {
        (Ok(last), Ok(run)) => last.iter().map(|rows| &**rows).eq(run.iter().map(|run| &run.rows)),
        (Err(last), Err(error)) => last.kind() == error.kind() && last.message() == error.message(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::learn::live_query::LivePart;
    use crate::queue::ticket::CallOptions;
    use flatwater_base::error::{Error, ErrorCode};
    use flatwater_base::values::params::Params;
    use flatwater_sql::statement_info::StatementInfo;

    fn entry() -> Entry {
        let part = LivePart { text: Arc::new(StatementInfo::new("SELECT 1")), params: Params::default() };
        Entry::new(Arc::new(LiveQuery(Box::new([part]))))
    }

    fn begin(entry: &mut Entry, commit: u64) {
        let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
        entry.run = RunState::Runs { ticket, commit, is_invalidated: false, is_lost: false };
    }

    fn end(entry: &mut Entry, message: &str) -> (Ended, bool) {
        let ran = Ran::new(Err(Error::new(ErrorCode::InvalidArgument, message.to_owned())), entry.last());
        (entry.end(ran, false, Instant::now()), entry.rest())
    }

    fn last(entry: &Entry) -> (u64, String) {
        let last = entry.last().unwrap();
        (last.commit, last.result.as_ref().unwrap_err().message().to_owned())
    }

    #[test]
    fn changes_during_a_run_cause_one_more() {
        let (mut entry, now) = (entry(), Instant::now());
        begin(&mut entry, 1);
        assert_eq!(end(&mut entry, "a"), (Ended::Changed, false));
        assert!(entry.invalidate(now, false) && !entry.invalidate(now, false), "it is in the queue once");
        begin(&mut entry, 2);
        assert!(!entry.invalidate(now, false) && !entry.invalidate(now, false));
        assert_eq!(end(&mut entry, "b"), (Ended::Changed, true), "it is delivered, and runs once more");
        assert_eq!(last(&entry), (2, "b".into()));
        begin(&mut entry, 4);
        assert_eq!(end(&mut entry, "b"), (Ended::Unchanged, false));
        assert_eq!(last(&entry), (4, "b".into()), "the result is that of the later commit too");
    }

    #[test]
    fn the_first_result_is_held_back_once() {
        let (mut entry, now) = (entry(), Instant::now());
        begin(&mut entry, 1);
        entry.invalidate(now, false);
        assert_eq!(end(&mut entry, "a"), (Ended::HeldBack, true));
        assert!(entry.last().is_none());
        begin(&mut entry, 2);
        entry.invalidate(now, false);
        assert_eq!(end(&mut entry, "b"), (Ended::Changed, true), "under any load of writes there is progress");
    }
}
