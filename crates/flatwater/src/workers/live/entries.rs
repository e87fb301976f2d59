//! The live queries of one database: which there are, which a change invalidates, and which run next.
//!
//! Owns: the entries, the index and the queue, under one lock, which is held for no longer than that takes. Every method
//! returns what is to be done when the lock is released. Invariants: an entry whose reads are not known is invalidated by
//! every commit; at most so many runs are in flight as leave a reader for others; no result is freed under the lock, for
//! which a commit may wait. Leaves out: running (`run`), waking.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::after_unlock::{Behind, Start, Todo};
use super::diff::Delivery;
use super::entry::{Ended, Entry, Ran, RunState};
use super::subscriber::{Put, Subscriber};
use crate::connection::learn::live_query::{Derived, Found, LivePart, LiveQuery, LiveRun};
use crate::queue::ticket::{CallOptions, Ticket};
use crate::stats::query_counters::{LiveCounts, LiveStats};
use flatwater_sql::dependencies::change::Change;
use flatwater_sql::dependencies::index::{Id, Index, Precision, Rows};
use flatwater_sql::dependencies::point_lookup::LookedUp;
use flatwater_sql::dependencies::reads::{RowReads, TableReads};

#[derive(Default)]
pub(super) struct Entries {
    entries: HashMap<Id, Entry>,
    /// True while there is an entry. Set under the lock, and read without it.
    is_watching: Arc<AtomicBool>,
    by_query: HashMap<Arc<LiveQuery>, Id>,
    index: Index,
    /// The entries whose reads are not known.
    unknown: HashSet<Id>,
    /// What texts read, with the number of entries that have the text.
    texts: HashMap<Arc<str>, (Option<Derived>, usize)>,
    queue: VecDeque<Id>,
    in_flight: usize,
    at_once: usize,
    next: Id,
    /// The number of the last publication.
    number: u64,
    pub(super) is_closed: bool,
    counts: LiveCounts,
}

impl Entries {
    pub(super) fn new(at_once: usize) -> Self {
        Self { at_once, ..Self::default() }
    }

    /// Returns what tells, without the lock, whether there is a live query.
    pub(super) fn watching(&self) -> Arc<AtomicBool> {
        self.is_watching.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a subscriber. It gets the last result, if there is one: at once, if that takes no comparison of rows. Returns
    /// the number of its entry.
    pub(super) fn subscribe(&mut self, query: Arc<LiveQuery>, place: Arc<Subscriber>) -> (Id, Todo) {
        let mut todo = Todo::default();
        let id = self.by_query.get(&query).copied().unwrap_or_else(|| self.add(query));
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.grace.clear();
            // The keys of a result that was never compared are compared at the end of another run.
            let is_update = entry.last().is_none_or(|last| place.put_at_once(last).is_some());
            if !is_update && entry.run_again() {
                self.queue.push_back(id);
            }
            entry.add(place);
        }
        self.start(&mut todo);
        (id, todo)
    }

    fn add(&mut self, query: Arc<LiveQuery>) -> Id {
        let id = self.next;
        self.next += 1;
        // Before the first run is started: a commit that it does not see is recorded, or is published as everything.
        self.is_watching.store(true, Ordering::SeqCst);
        self.by_query.insert(query.clone(), id);
        for part in &query.0 {
            self.texts.entry(part.text.sql.clone()).or_default().1 += 1;
        }
        self.entries.insert(id, Entry::new(query));
        self.unknown.insert(id);
        self.queue.push_back(id);
        id
    }

    /// Removes a subscriber. Returns true if it was the entry's last one.
    pub(super) fn unsubscribe(&mut self, id: Id, place: &Arc<Subscriber>) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        entry.remove(place);
        entry.subscribers.is_empty()
    }

    pub(super) fn entry(&mut self, id: Id) -> Option<&mut Entry> {
        self.entries.get_mut(&id)
    }

    /// Removes an entry that has no subscriber. It must not be freed under the lock.
    #[must_use]
    pub(super) fn remove_unused(&mut self, id: Id) -> Option<Entry> {
        if !self.entries.get(&id)?.subscribers.is_empty() {
            return None;
        }
        let entry = self.entries.remove(&id)?;
        entry.withdraw();
        self.unknown.remove(&id);
        self.unindex(id, &entry);
        self.by_query.remove(&entry.query);
        for LivePart { text, .. } in &entry.query.0 {
            if let Some((_, users)) = self.texts.get_mut(&text.sql) {
                *users -= 1;
                if *users == 0 {
                    self.texts.remove(&text.sql);
                }
            }
        }
        if self.entries.is_empty() {
            self.is_watching.store(false, Ordering::SeqCst);
        }
        Some(entry)
    }

    fn unindex(&mut self, id: Id, entry: &Entry) {
        for (part, (derived, found)) in entry.query.0.iter().zip(&entry.reads) {
            self.index.remove(id, &derived.reads, |at, reads| rows_of(at, reads, part, found));
        }
    }

    /// Marks the entries that the change invalidates. They run when `start_waiting` is called, or a run ends.
    pub(super) fn publish(&mut self, change: &Change, now: Instant) {
        self.number += 1;
        let mut invalidated: Vec<(Id, Precision)> = Vec::new();
        let is_everything = *change == Change::Everything;
        if is_everything {
            self.counts.counted.everything += 1;
            self.unknown.extend(self.entries.keys());
        } else {
            self.index.look_up(change, |id, precision| invalidated.push((id, precision)));
        }
        invalidated.extend(self.unknown.iter().map(|id| (*id, Precision::EveryCommit)));
        for (id, precision) in invalidated {
            self.invalidate(id, precision, is_everything, now);
        }
    }

    /// Returns the runs that may start now.
    pub(super) fn start_waiting(&mut self) -> Todo {
        let mut todo = Todo::default();
        self.start(&mut todo);
        todo
    }

    fn invalidate(&mut self, id: Id, precision: Precision, is_everything: bool, now: Instant) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let is_used = !entry.subscribers.is_empty();
        if !is_used {
            // It is removed in its turn: this thread has the writer slot.
            entry.retire();
        }
        if entry.invalidate(now, is_everything) {
            if is_used && !is_everything {
                self.counts.invalidated(precision);
            }
            self.queue.push_back(id);
        }
    }

    /// Takes the next entries out of the queue, as many as may run.
    fn start(&mut self, todo: &mut Todo) {
        while self.in_flight < self.at_once {
            let Some(id) = self.queue.pop_front() else { return };
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            if entry.subscribers.is_empty() {
                todo.entries.extend(self.remove_unused(id));
                continue;
            }
            todo.results.append(&mut entry.retired);
            let ticket = Arc::new(Ticket::new(CallOptions::default(), Instant::now()));
            let commit = self.number;
            entry.run = RunState::Runs { ticket: ticket.clone(), commit, is_invalidated: false, is_lost: false };
            self.in_flight += 1;
            self.counts.counted.runs += 1;
            let (query, is_small) = (entry.query.clone(), entry.is_small());
            let known = |part: &LivePart| self.texts.get(&part.text.sql).and_then(|(derived, _)| derived.clone());
            let known = query.0.iter().map(known).collect();
            todo.starts.push_back(Start { id, query, known, ticket, is_small });
        }
    }

    /// Returns the last result of an entry.
    pub(super) fn last(&self, id: Id) -> Option<Delivery> {
        self.entries.get(&id)?.last().cloned()
    }

    /// Notes the end of a run, and delivers its result.
    pub(super) fn finish(&mut self, id: Id, ran: Ran, now: Instant) -> Todo {
        let mut todo = Todo::default();
        if self.entries.contains_key(&id) {
            self.learn(id, ran.result.as_deref().unwrap_or_default());
            self.deliver(id, ran, now, &mut todo);
        }
        if todo.behind.is_none() {
            self.rest(id, &mut todo);
        }
        todo
    }

    /// Notes what delivering the result of a run did to the subscribers that were behind.
    pub(super) fn delivered(&mut self, id: Id, puts: &[Put]) -> Todo {
        puts.iter().for_each(|put| self.counts.delivered(put.is_update, put.is_superseded()));
        let mut todo = Todo::default();
        self.rest(id, &mut todo);
        todo
    }

    /// Ends a run whose result was delivered.
    fn rest(&mut self, id: Id, todo: &mut Todo) {
        self.in_flight -= 1;
        if self.entries.get_mut(&id).is_some_and(Entry::rest) {
            self.queue.push_back(id);
        }
        self.start(todo);
    }

    /// Notes what the entry reads, as its last run derived it.
    fn learn(&mut self, id: Id, runs: &[LiveRun]) {
        let Some(mut entry) = self.entries.remove(&id) else { return };
        let is_lost = matches!(entry.run, RunState::Runs { is_lost: true, .. });
        let parts = entry.query.0.iter().zip(runs);
        let reads: Vec<_> = parts.map(|(part, run)| (self.share(part, &run.derived), run.found.clone())).collect();
        if entry.reads != reads {
            // What was published since the run began was compared with the old reads.
            if let RunState::Runs { commit, is_invalidated, .. } = &mut entry.run {
                *is_invalidated |= *commit != self.number && !entry.reads.is_empty();
            }
            self.unindex(id, &entry);
            for (part, (derived, found)) in entry.query.0.iter().zip(&reads) {
                self.index.add(id, &derived.reads, |at, reads| rows_of(at, reads, part, found));
            }
            entry.reads = reads;
        }
        if entry.reads.is_empty() || is_lost {
            self.unknown.insert(id);
        } else {
            self.unknown.remove(&id);
        }
        self.entries.insert(id, entry);
    }

    /// Returns the reads that all entries of the text share, if theirs are equal.
    fn share(&mut self, part: &LivePart, derived: &Derived) -> Derived {
        let Some((shared, _)) = self.texts.get_mut(&part.text.sql) else { return derived.clone() };
        match shared {
            Some(shared) if shared == derived => shared.clone(),
            _ => shared.insert(derived.clone()).clone(),
        }
    }

    /// Causes one more run of each query whose last run failed for a reason that may have passed.
    pub(super) fn run_failed(&mut self) -> Todo {
        for (id, entry) in &mut self.entries {
            if entry.may_pass() && entry.run_again() {
                self.queue.push_back(*id);
            }
        }
        self.start_waiting()
    }

    fn deliver(&mut self, id: Id, ran: Ran, now: Instant, todo: &mut Todo) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        // What is wrong with the call itself stays wrong.
        let is_final = ran.result.as_ref().is_err_and(|error| error.sqlite_code().is_none() && !error.kind().passes());
        let ended = entry.end(ran, is_final, now);
        let is_invalidated = matches!(entry.run, RunState::Runs { is_invalidated: true, .. });
        let invalidated_at =
            if is_invalidated { entry.invalidated_at.replace(now) } else { entry.invalidated_at.take() };
        match (&ended, invalidated_at) {
            (Ended::HeldBack, _) => return,
            (Ended::Unchanged, _) => self.counts.counted.unchanged += 1,
            (Ended::Changed, Some(at)) => self.counts.lag(now.saturating_duration_since(at)),
            (Ended::Changed, None) => {}
        }
        let Some(last) = entry.last() else { return };
        let mut places = Vec::new();
        for place in entry.subscribers.values().filter(|place| !place.is_up_to(last)) {
            match place.put_at_once(last) {
                Some(put) => {
                    self.counts.delivered(put.is_update, put.is_superseded());
                    todo.wakers.extend(put.waker);
                    todo.replaced.push(put.replaced);
                }
                None => places.push(place.clone()),
            }
        }
        if !places.is_empty() {
            todo.behind = Some(Behind { delivery: last.clone(), places });
        }
        if is_final {
            todo.wakers.extend(entry.subscribers.drain().filter_map(|(_, place)| place.end()));
            todo.entries.extend(self.remove_unused(id));
        }
    }

    /// Ends all streams. Runs in flight are withdrawn.
    pub(super) fn close(&mut self) -> Todo {
        self.is_closed = true;
        let ids: Vec<Id> = self.entries.keys().copied().collect();
        let mut todo = Todo::default();
        for id in ids {
            if let Some(entry) = self.entries.get_mut(&id) {
                todo.wakers.extend(entry.subscribers.drain().filter_map(|(_, place)| place.end()));
            }
            todo.entries.extend(self.remove_unused(id));
        }
        self.queue.clear();
        todo
    }

    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(super) fn stats(&self) -> LiveStats {
        let subscribers = self.entries.values().map(|entry| entry.subscribers.len()).sum();
        self.counts.stats(self.entries.len(), subscribers, self.in_flight + self.queue.len())
    }
}

/// Returns the rows of the table at this position that the statement reads, if its parameters say so, or what it found.
fn rows_of(at: usize, reads: &TableReads, part: &LivePart, found: &Found) -> Rows {
    let row = |key: &LookedUp| match key {
        LookedUp::Rowid(rowid) => Some(*rowid),
        LookedUp::Parameter(number) => part.params.integer(*number),
    };
    match &reads.rows {
        RowReads::Any => None,
        RowReads::Rowids(keys) => keys.iter().map(row).collect(),
        RowReads::Unique { .. } => found.get(at).copied().flatten().map(|rowid| vec![rowid]),
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use flatwater_sqlite::{ChangedRows, RowSet};

    use super::*;
    use flatwater_base::error::{Error, ErrorCode};
    use flatwater_base::values::params::Params;
    use flatwater_sql::dependencies::Columns;
    use flatwater_sql::dependencies::change::Written;
    use flatwater_sql::dependencies::reads::Reads;
    use flatwater_sql::statement_info::StatementInfo;

    /// Returns entries with one query, whose first run is in flight.
    fn entries() -> (Entries, Id, Arc<Subscriber>) {
        let text = Arc::new(StatementInfo::new("SELECT a FROM t WHERE k = ?"));
        let query = Arc::new(LiveQuery([LivePart { text, params: Params::default() }].into()));
        let (mut entries, place) = (Entries::new(1), Subscriber::new(false));
        let (id, todo) = entries.subscribe(query, place.clone());
        assert_eq!(todo.starts.len(), 1);
        (entries, id, place)
    }

    /// Returns a run that found its row by a unique key.
    fn found(rowid: i64) -> Ran {
        let table = TableReads {
            table: "t".into(),
            columns: Columns::All,
            rows: RowReads::Unique { rowid: "rowid", columns: vec![("k".into(), 1)] },
            are_rows_reported: true,
            may_be_replaced: false,
            has_generated: false,
            rowid_aliases: Vec::new(),
        };
        let derived = Derived::of(Reads::Tables(vec![table]));
        let run = LiveRun { rows: flatwater_base::values::row::Rows::default(), derived, found: vec![Some(rowid)] };
        Ran::new(Ok(vec![run]), None)
    }

    fn update_of(rowid: i64) -> Change {
        let (database, table, updated) = ("main".into(), "t".into(), RowSet::Some(vec![rowid]));
        Change::of(Written::default(), vec![ChangedRows { database, table, came_or_went: RowSet::None, updated }])
    }

    #[test]
    fn a_commit_during_a_run_that_finds_another_row_causes_one_more() {
        let (mut entries, id, _place) = entries();
        let now = Instant::now();
        assert_eq!(entries.finish(id, found(7), now).starts.len(), 0);
        entries.publish(&update_of(9), now);
        assert_eq!(entries.start_waiting().starts.len(), 0, "the row of another key");
        entries.publish(&update_of(7), now);
        assert_eq!(entries.start_waiting().starts.len(), 1);
        // The run found row 9, in a snapshot from before this.
        entries.publish(&update_of(9), now);
        assert_eq!(entries.finish(id, found(9), now).starts.len(), 1);
        assert_eq!(entries.finish(id, found(9), now).starts.len(), 0);
    }

    #[test]
    fn an_error_of_the_call_is_delivered_whatever_invalidated_the_first_run() {
        let (mut entries, id, place) = entries();
        entries.publish(&Change::Everything, Instant::now());
        entries.finish(id, Ran::new(Err(Error::new(ErrorCode::InvalidArgument, "no query")), None), Instant::now());
        let mut context = Context::from_waker(Waker::noop());
        let polled = place.poll(&mut context, |_| true);
        let Poll::Ready(Some(item)) = polled else { panic!("{polled:?}") };
        assert!(item.delivery.result.is_err());
        assert!(matches!(place.poll(&mut context, |_| true), Poll::Ready(None)));
        assert!(entries.is_empty());
    }

    #[test]
    fn an_error_that_may_pass_ends_no_stream_and_runs_again_without_a_commit() {
        let (mut entries, id, place) = entries();
        let no_thread =
            flatwater_base::error::cause::no_thread("a thread", &std::io::Error::from(std::io::ErrorKind::WouldBlock));
        let cut_off = Error::new(ErrorCode::ReadLimit, "the read was ended");
        for (error, runs_again) in [(no_thread, true), (cut_off, false)] {
            drop(entries.finish(id, Ran::new(Err(error), None), Instant::now()));
            let polled = place.poll(&mut Context::from_waker(Waker::noop()), |_| true);
            assert!(matches!(polled, Poll::Ready(Some(item)) if item.delivery.result.is_err()));
            assert_eq!(entries.run_failed().starts.len(), usize::from(runs_again));
        }
        entries.publish(&Change::Everything, Instant::now());
        assert_eq!(entries.start_waiting().starts.len(), 1, "each commit tries again");
        drop(entries.finish(id, found(7), Instant::now()));
        let polled = place.poll(&mut Context::from_waker(Waker::noop()), |_| true);
        assert!(matches!(polled, Poll::Ready(Some(item)) if item.delivery.result.is_ok()));
    }

    #[test]
    fn the_result_of_a_query_without_subscribers_is_freed_without_the_lock_and_nobody_gets_it() {
        let (mut entries, id, place) = entries();
        let now = Instant::now();
        drop(entries.finish(id, found(7), now));
        let rows = std::sync::Arc::downgrade(&entries.last(id).unwrap().result.unwrap()[0]);
        drop(place.poll(&mut Context::from_waker(Waker::noop()), |_| true));
        assert!(entries.unsubscribe(id, &place));
        drop(place);
        entries.publish(&update_of(7), now);
        assert!(rows.upgrade().is_some(), "the thread that publishes has the writer slot");
        assert!(entries.last(id).is_none(), "who subscribes now must not get it");
        let todo = entries.start_waiting();
        assert!(rows.upgrade().is_some() && entries.is_empty());
        drop(todo);
        assert!(rows.upgrade().is_none());
    }
}
