//! One SQL text, and what is known about it.
//!
//! Owns: `StatementInfo`, shared by all connections of a database, and the size of the results of a text, which is a
//! hint. Any thread may use it. Invariants: what was learned under another schema counts as unknown; a write that is
//! not known to be short and groupable, by itself or by texts that differ from it only in their literals, runs
//! ungrouped. Leaves out: which texts are kept (`catalogue`); prepared statements, which belong to a connection; what
//! makes a text groupable (`grouping`), and for which values it has a stable form (`stable_form`).

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use flatwater_sqlite::Bindings;

use super::class::{Class, Route};
use super::grouping::Grouping;
use super::stable_form::{HASHER, StablePlace};
use super::text::{Bracket, bracket};
use super::tokens::{looks_like_a_write, tells_of_its_prepare, without_literals};
use flatwater_base::inline::backoff::Backoff;

/// A longer text is neither kept in the catalogue nor kept prepared.
pub const KEPT_TEXT_BYTES: usize = 16 * 1024;

/// One SQL text and what is known about it. The fields are hints: a stale one costs speed, never correctness.
#[derive(Debug)]
pub struct StatementInfo {
    /// The text.
    pub sql: Arc<str>,
    /// The hash of `sql`.
    hash: u64,
    /// The guess of what it does, for as long as its route is not known.
    pub looks_like_a_write: bool,
    /// The result of the statement depends on the schema at the time of its prepare, so it is never kept prepared.
    pub tells_of_its_prepare: bool,
    /// What it does to the transaction of its connection, if it is nothing but that.
    pub bracket: Option<Bracket>,
    /// The place of its stable form, which is another text with the same SQL.
    pub stable: StablePlace<Arc<Self>>,
    /// Of a stable form: whether its plans are those of an older schema.
    outdated: Option<Arc<AtomicBool>>,
    /// How often texts of the database were prepared again.
    prepared_again: Arc<AtomicU64>,
    /// Its program was analysed on some connection, so it is worth it on each.
    pub was_analysed: AtomicBool,
    /// The text was looked up more than once.
    used_again: AtomicBool,
    /// 0 is unknown, 1 is a read, 2 is a write. The kind does not depend on the schema.
    route: AtomicU32,
    grouping: Grouping,
    /// What is known of all writes that differ from this one only in their literals, if it has any.
    pub(super) alike: Option<Arc<Grouping>>,
    /// How its runs on callers' threads ended of late.
    pub backoff: Backoff,
    /// The size of its results.
    pub size: ExpectedSize,
}

impl StatementInfo {
    /// Makes that of a text that is in no catalogue.
    pub fn new(sql: &str) -> Self {
        Self::with_shared(sql, looks_like_a_write(sql), None, Arc::default())
    }

    pub(super) fn with_shared(
        sql: &str,
        looks_like_a_write: bool,
        alike: Option<Arc<Grouping>>,
        prepared_again: Arc<AtomicU64>,
    ) -> Self {
        Self {
            sql: sql.into(),
            hash: HASHER.hash_one(sql),
            looks_like_a_write,
            tells_of_its_prepare: tells_of_its_prepare(sql),
            bracket: bracket(sql),
            stable: StablePlace::default(),
            outdated: None,
            prepared_again,
            was_analysed: AtomicBool::new(false),
            used_again: AtomicBool::new(false),
            route: AtomicU32::new(0),
            grouping: Grouping::default(),
            alike,
            backoff: Backoff::default(),
            size: ExpectedSize::default(),
        }
    }

    /// Returns its stable form, of which nothing is known but what holds for this one too.
    pub fn stable_form(&self, outdated: &Arc<AtomicBool>) -> Self {
        let same =
            Self::with_shared(&self.sql, self.looks_like_a_write, self.alike.clone(), self.prepared_again.clone());
        let form = Self { outdated: Some(outdated.clone()), was_analysed: AtomicBool::new(true), ..same };
        form.route.store(self.route.load(Ordering::Relaxed), Ordering::Relaxed);
        form.mark_used_again();
        form
    }

    /// Returns true if it is the stable form of another text: it is prepared so that values do not change its plan.
    pub fn is_stable(&self) -> bool {
        self.outdated.is_some()
    }

    /// Returns the form of this text that has the plan which SQLite would make for these values: its stable form, or itself.
    #[inline]
    pub fn for_values(self: Arc<Self>, values: &(impl Bindings + ?Sized)) -> Arc<Self> {
        let form = self.stable.get();
        form.and_then(|form| form.for_values(values).cloned()).unwrap_or(self)
    }

    /// SQLite prepared the text again: for its values, or for another schema. A stable form is prepared again for another schema
    /// only.
    pub fn was_prepared_again(&self) {
        self.prepared_again.fetch_add(1, Ordering::Relaxed);
        match &self.outdated {
            Some(outdated) => outdated.store(true, Ordering::Relaxed),
            None => self.stable.was_prepared_again(),
        }
    }

    /// Returns true if it is short enough for the catalogue.
    pub fn is_kept(&self) -> bool {
        self.sql.len() <= KEPT_TEXT_BYTES
    }

    /// Records that the text is used more than once.
    pub fn mark_used_again(&self) {
        // Read first: callers on other cores read the same cache line.
        if !self.is_used_again() {
            self.used_again.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if it was used more than once.
    pub fn is_used_again(&self) -> bool {
        self.used_again.load(Ordering::Relaxed)
    }

    /// Returns who runs it, if that is known.
    pub fn route(&self) -> Option<Route> {
        match self.route.load(Ordering::Relaxed) {
            1 => Some(Route::Read),
            2 => Some(Route::Write),
            _ => None,
        }
    }

    /// Records whether the readers or the writer run the text.
    pub fn learn_route(&self, route: Route) {
        self.route.store(if route == Route::Read { 1 } else { 2 }, Ordering::Relaxed);
    }

    fn groupings(&self) -> impl Iterator<Item = &Grouping> {
        std::iter::once(&self.grouping).chain(self.alike.as_deref())
    }

    /// Records what the writer learned when it prepared the text under the schema of `epoch`.
    pub fn learn(&self, class: &Class, epoch: u64) {
        self.learn_route(class.route);
        self.groupings().for_each(|grouping| grouping.learn(class.groupable, epoch));
    }

    /// Returns true if the text was found to be groupable in this epoch, and takes no longer than `short` on average.
    pub fn is_groupable(&self, epoch: u64, short: Duration) -> bool {
        self.grouping.is_groupable(epoch, short)
    }

    /// Returns true if the text may be tried in a group. Of a text that has not run yet, it is not known what it does; it
    /// may be tried if texts are groupable that are like it.
    pub fn may_be_member(&self, epoch: u64, short: Duration) -> bool {
        let known = match &self.alike {
            Some(alike) if !self.grouping.is_known() => alike,
            _ => &self.grouping,
        };
        known.is_groupable(epoch, short)
    }

    /// Returns the number of bytes of the text, if it has values in it.
    pub fn bytes_of_values(&self) -> usize {
        if self.alike.is_some() { self.sql.len() } else { 0 }
    }

    /// Records that the text failed in a group. From now on it runs inside a savepoint there.
    pub fn mark_failed(&self) {
        self.groupings().for_each(|grouping| grouping.failed.store(true, Ordering::Relaxed));
    }

    /// Returns true if it failed in a group.
    pub fn has_failed(&self) -> bool {
        self.groupings().any(|grouping| grouping.failed.load(Ordering::Relaxed))
    }

    /// Records that it may end a transaction.
    pub fn mark_aborting(&self) {
        self.groupings().for_each(|grouping| grouping.aborting.store(true, Ordering::Relaxed));
    }

    /// Adds one execution to the running average.
    pub fn took(&self, time: Duration) {
        self.groupings().for_each(|grouping| grouping.took(time));
    }

    /// Adds so many executions in a row as one.
    pub fn took_for(&self, time: Duration, runs: usize) {
        if let Some(runs) = u32::try_from(runs).ok().filter(|runs| *runs > 0) {
            self.took(time / runs);
        }
    }

    /// Forgets the times of its executions.
    pub fn forget_times(&self) {
        self.grouping.forget_times();
    }

    /// Returns true if the text was timed often enough, and takes no longer than `short` on average.
    pub fn has_short_history(&self, short: Duration) -> bool {
        self.grouping.average().is_some_and(|average| average <= short)
    }

    /// Returns true if the text was timed often enough, and takes longer than `short` on average.
    pub fn has_long_history(&self, short: Duration) -> bool {
        self.grouping.average().is_some_and(|average| average > short)
    }

    /// Returns how long so many executions take, if the text was timed often enough.
    pub fn expected_time(&self, runs: usize) -> Option<Duration> {
        let one = self.grouping.average()?;
        Some(one.saturating_mul(u32::try_from(runs).unwrap_or(u32::MAX)))
    }
}

/// Two texts are equal if their SQL is equal and they are of one form. In most cases both are the same object, which is checked
/// first.
impl PartialEq for StatementInfo {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.sql == other.sql && self.is_stable() == other.is_stable())
    }
}

impl Eq for StatementInfo {}

impl Hash for StatementInfo {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Returns what all texts have in common that differ from this one only in their literals; `None` if it has none.
pub(super) fn hash_without_literals(sql: &str) -> Option<u64> {
    let mut hasher = HASHER.build_hasher();
    without_literals(sql, |token| token.hash(&mut hasher)).then(|| hasher.finish())
}

/// The number of cells and bytes of the largest recent result.
#[derive(Debug, Default)]
pub struct ExpectedSize {
    cells: AtomicU32,
    bytes: AtomicU32,
}

impl ExpectedSize {
    /// Returns the number of cells and bytes to expect of a result.
    pub fn get(&self) -> (usize, usize) {
        (self.cells.load(Ordering::Relaxed) as usize, self.bytes.load(Ordering::Relaxed) as usize)
    }

    /// Records the size of a result. A larger size counts at once; a smaller one lowers the expected size gradually.
    pub fn had(&self, cells: usize, bytes: usize) {
        for (seen, now) in [(&self.cells, cells), (&self.bytes, bytes)] {
            let before = seen.load(Ordering::Relaxed);
            let now = u32::try_from(now).unwrap_or(u32::MAX);
            let next = if now >= before { now } else { before - (before - now).div_ceil(8) };
            if next != before {
                seen.store(next, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_size_follows_the_largest_recent_result() {
        let size = ExpectedSize::default();
        size.had(800, 80);
        assert_eq!(size.get(), (800, 80));
        for _ in 0..200 {
            size.had(1, 0);
        }
        assert_eq!(size.get(), (1, 0));
    }
}
