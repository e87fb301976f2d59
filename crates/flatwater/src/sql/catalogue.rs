//! The catalogue of SQL texts: the texts that a database has seen, and what it learned about each.
//!
//! Owns: `StatementInfo`, shared by all connections, and the bounded catalogue of them, guarded by one lock that is held
//! only for a lookup. Any thread may use it. Invariants: the number of texts and their bytes are bounded, whatever
//! callers send; a text that is used once does not displace one that is used again; what was learned under another
//! schema counts as unknown; a write that is not known to be short and groupable, by itself or by texts that differ from
//! it only in their literals, runs ungrouped. Leaves out: prepared statements, which belong to a connection; what makes
//! a text groupable (`grouping`).

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hashlink::DefaultHashBuilder;

use super::bracket::{Bracket, bracket};
use super::class::{Class, Route};
use super::grouping::Grouping;
use super::lru::SegmentedLru;
use super::schema_seen::LeftWal;
use super::tokens::{looks_like_a_write, tells_of_its_prepare, without_literals};
use crate::growth_counter::step;
use crate::inline::backoff::Backoff;

/// The maximum number of texts in the catalogue, and how many of these places are only for texts that were looked up
/// once.
const TEXTS: usize = 1024;
const NEW_TEXTS: usize = 256;
/// The maximum number of sets of texts that are alike.
const ALIKE: usize = 256;
/// A longer text is neither kept in the catalogue nor kept prepared.
pub(crate) const KEPT_TEXT_BYTES: usize = 16 * 1024;

/// The hasher of all texts in the process.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// One SQL text and what is known about it. The fields are hints: a stale one costs speed, never correctness.
#[derive(Debug)]
pub(crate) struct StatementInfo {
    pub(crate) sql: Arc<str>,
    /// The hash of `sql`.
    hash: u64,
    /// The result of the statement depends on the schema at the time of its prepare, so it is never kept prepared.
    pub(crate) tells_of_its_prepare: bool,
    /// What it does to the transaction of its connection, if it is nothing but that.
    pub(crate) bracket: Option<Bracket>,
    /// The text was looked up more than once.
    used_again: AtomicBool,
    /// 0 is unknown, 1 is a read, 2 is a write. The kind does not depend on the schema.
    route: AtomicU32,
    grouping: Grouping,
    /// What is known of all writes that differ from this one only in their literals, if it has any.
    alike: Option<Arc<Grouping>>,
    pub(crate) backoff: Backoff,
    /// The number of cells and bytes of the largest recent result.
    cells: AtomicU32,
    bytes: AtomicU32,
}

impl StatementInfo {
    pub(crate) fn new(sql: &str) -> Self {
        Self::with_alike(sql, None)
    }

    fn with_alike(sql: &str, alike: Option<Arc<Grouping>>) -> Self {
        Self {
            sql: sql.into(),
            hash: HASHER.hash_one(sql),
            tells_of_its_prepare: tells_of_its_prepare(sql),
            bracket: bracket(sql),
            used_again: AtomicBool::new(false),
            route: AtomicU32::new(0),
            grouping: Grouping::default(),
            alike,
            backoff: Backoff::default(),
            cells: AtomicU32::new(0),
            bytes: AtomicU32::new(0),
        }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.sql.len() <= KEPT_TEXT_BYTES
    }

    /// Records that the text is used more than once.
    pub(crate) fn mark_used_again(&self) {
        // Read first: callers on other cores read the same cache line.
        if !self.is_used_again() {
            self.used_again.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_used_again(&self) -> bool {
        self.used_again.load(Ordering::Relaxed)
    }

    pub(crate) fn route(&self) -> Option<Route> {
        match self.route.load(Ordering::Relaxed) {
            1 => Some(Route::Read),
            2 => Some(Route::Write),
            _ => None,
        }
    }

    /// Records whether the readers or the writer run the text.
    pub(crate) fn learn_route(&self, route: Route) {
        self.route.store(if route == Route::Read { 1 } else { 2 }, Ordering::Relaxed);
    }

    fn groupings(&self) -> impl Iterator<Item = &Grouping> {
        std::iter::once(&self.grouping).chain(self.alike.as_deref())
    }

    /// Records what the writer learned when it prepared the text under the schema of `epoch`.
    pub(crate) fn learn(&self, class: &Class, epoch: u64) {
        self.learn_route(class.route);
        self.groupings().for_each(|grouping| grouping.learn(class.groupable, epoch));
    }

    /// Returns true if the text was found to be groupable in this epoch, and takes no longer than `short` on average.
    pub(crate) fn is_groupable(&self, epoch: u64, short: Duration) -> bool {
        self.grouping.is_groupable(epoch, short)
    }

    /// Returns true if the text may be tried in a group. Of a text that has not run yet, it is not known what it does; it
    /// may be tried if texts are groupable that are like it.
    pub(crate) fn may_be_member(&self, epoch: u64, short: Duration) -> bool {
        let known = match &self.alike {
            Some(alike) if !self.grouping.is_known() => alike,
            _ => &self.grouping,
        };
        known.is_groupable(epoch, short)
    }

    /// Returns the number of bytes of the text, if it has values in it.
    pub(crate) fn bytes_of_values(&self) -> usize {
        if self.alike.is_some() { self.sql.len() } else { 0 }
    }

    /// Records that the text failed in a group. From now on it runs inside a savepoint there.
    pub(crate) fn mark_failed(&self) {
        self.groupings().for_each(Grouping::mark_failed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.groupings().any(Grouping::has_failed)
    }

    pub(crate) fn mark_aborting(&self) {
        self.groupings().for_each(Grouping::mark_aborting);
    }

    /// Adds one execution to the running average.
    pub(crate) fn took(&self, time: Duration) {
        self.groupings().for_each(|grouping| grouping.took(time));
    }

    /// Adds so many executions in a row as one.
    pub(crate) fn took_for(&self, time: Duration, runs: usize) {
        if let Some(runs) = u32::try_from(runs).ok().filter(|runs| *runs > 0) {
            self.took(time / runs);
        }
    }

    /// Forgets the times of its executions.
    pub(crate) fn forget_times(&self) {
        self.grouping.forget_times();
    }

    /// Returns true if the text was timed often enough, and takes no longer than `short` on average.
    pub(crate) fn has_short_history(&self, short: Duration) -> bool {
        self.grouping.has_short_history(short)
    }

    /// Returns true if the text was timed often enough, and takes longer than `short` on average.
    pub(crate) fn has_long_history(&self, short: Duration) -> bool {
        self.grouping.has_long_history(short)
    }

    /// Returns how long so many executions take, if the text was timed often enough.
    pub(crate) fn expected_time(&self, runs: usize) -> Option<Duration> {
        let one = self.grouping.average()?;
        Some(one.saturating_mul(u32::try_from(runs).unwrap_or(u32::MAX)))
    }

    /// Returns the number of cells and bytes to expect of a result.
    pub(crate) fn expected_size(&self) -> (usize, usize) {
        (self.cells.load(Ordering::Relaxed) as usize, self.bytes.load(Ordering::Relaxed) as usize)
    }

    /// Records the size of a result. A larger size counts at once; a smaller one lowers the expected size gradually.
    pub(crate) fn had_size(&self, cells: usize, bytes: usize) {
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

/// Two texts are equal if their SQL is equal. In most cases both are the same object, which is checked first.
impl PartialEq for StatementInfo {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.sql == other.sql
    }
}

impl Eq for StatementInfo {}

impl Hash for StatementInfo {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

fn hash_without_literals(sql: &str) -> Option<u64> {
    let mut hasher = HASHER.build_hasher();
    without_literals(sql, |token| token.hash(&mut hasher)).then(|| hasher.finish())
}

/// A key of the catalogue, which looks texts up by their SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TextKey(Arc<StatementInfo>);

impl Borrow<str> for TextKey {
    fn borrow(&self) -> &str {
        &self.0.sql
    }
}

impl Hash for TextKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.sql.hash(state);
    }
}

struct Texts {
    by_sql: SegmentedLru<TextKey, Arc<StatementInfo>>,
    /// By the hash of a text without its literals. Two sets with one hash cost speed only.
    alike: SegmentedLru<u64, Arc<Grouping>>,
}

impl Texts {
    fn find(&mut self, sql: &str) -> Option<Arc<StatementInfo>> {
        let text = self.by_sql.get(sql)?;
        text.mark_used_again();
        Some(text.clone())
    }

    fn alike(&mut self, hash: u64) -> Arc<Grouping> {
        if let Some(alike) = self.alike.get(&hash) {
            return alike.clone();
        }
        let alike = Arc::<Grouping>::default();
        self.alike.insert(hash, alike.clone(), false);
        alike
    }
}

/// The texts of one database.
pub(crate) struct Catalogue {
    texts: Mutex<Texts>,
    /// The epoch grows when the writer sees a new schema. What was learned about groups in an earlier epoch is void.
    epoch: AtomicU64,
    /// The state in which the writer last left the WAL, and how often the schema may have changed by then.
    pub(crate) left: LeftWal,
}

impl Catalogue {
    pub(crate) fn new() -> Self {
        let (by_sql, alike) = (SegmentedLru::new(TEXTS, NEW_TEXTS), SegmentedLru::new(ALIKE, ALIKE / 8));
        let texts = Mutex::new(Texts { by_sql, alike });
        Self { texts, epoch: AtomicU64::new(0), left: LeftWal::default() }
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entry of `sql`, adding a new one if there is none.
    pub(crate) fn text(&self, sql: &str) -> Arc<StatementInfo> {
        step(1);
        if sql.len() > KEPT_TEXT_BYTES {
            return Arc::new(StatementInfo::new(sql));
        }
        if let Some(text) = self.texts().find(sql) {
            return text;
        }
        let hash = if looks_like_a_write(sql) { hash_without_literals(sql) } else { None };
        let mut texts = self.texts();
        // Another thread may have added it meanwhile.
        if let Some(text) = texts.find(sql) {
            return text;
        }
        let alike = hash.map(|hash| texts.alike(hash));
        let text = Arc::new(StatementInfo::with_alike(sql, alike));
        texts.by_sql.insert(TextKey(text.clone()), text.clone(), false);
        text
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Begins a new epoch, because the schema changed: no text is known to be groupable any more.
    pub(crate) fn next_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_distinct_texts_leave_a_thousand() {
        let catalogue = Catalogue::new();
        for number in 0..1_000_000 {
            catalogue.text(&format!("SELECT {number}"));
        }
        assert_eq!(catalogue.texts().by_sql.len(), TEXTS);
        let long = "x".repeat(KEPT_TEXT_BYTES + 1);
        assert!(!Arc::ptr_eq(&catalogue.text(&long), &catalogue.text(&long)));
        assert!(Arc::ptr_eq(&catalogue.text("SELECT 1"), &catalogue.text("SELECT 1")));
    }

    #[test]
    fn what_is_learnt_of_a_write_holds_for_others_that_differ_in_literals_until_they_run() {
        let (catalogue, short) = (Catalogue::new(), Duration::from_millis(1));
        let groupable = Class {
            route: Route::Write,
            groupable: true,
            columns: 0,
            changes_rows: true,
            inserts_into: None,
            defines: false,
            locks: true,
            makes_temp: false,
            writes: crate::dependencies::writes::Writes::Everything,
            lists_attached: false,
            asks: false,
            told_of_earlier: None,
        };
        let alone = Class { groupable: false, ..groupable.clone() };
        let first = catalogue.text("INSERT INTO t VALUES (1, 'a')");
        assert!(!first.may_be_member(0, short));
        first.learn(&groupable, 0);
        first.took(Duration::from_micros(5));
        let second = catalogue.text("INSERT INTO t VALUES (22, 'it''s b')");
        assert!(second.may_be_member(0, short) && !second.is_groupable(0, short));
        assert!(!second.may_be_member(1, short), "another schema");
        assert!(!second.has_failed() && second.bytes_of_values() > 0);
        second.learn(&alone, 0);
        assert!(!second.may_be_member(0, short), "it is known now");
        first.learn(&groupable, 0);
        assert!(!second.may_be_member(0, short), "what is known of itself counts");
        first.mark_failed();
        assert!(catalogue.text("INSERT INTO t VALUES (3, '')").has_failed());
        first.mark_aborting();
        assert!(!catalogue.text("INSERT INTO t VALUES (4, '')").may_be_member(0, short));
        for other in ["INSERT INTO u VALUES (1, 'a')", "INSERT INTO t VALUES (?, 'a')", "INSERT INTO t VALUES (?, ?)"] {
            assert!(!catalogue.text(other).may_be_member(0, short), "{other}");
        }
        assert!(catalogue.text("INSERT INTO t VALUES (?, ?)").alike.is_none());
        assert!(catalogue.text("SELECT 1").alike.is_none(), "a read");
    }

    #[test]
    fn any_number_of_writes_with_literals_leave_a_few_sets() {
        let catalogue = Catalogue::new();
        for number in 0..100_000 {
            catalogue.text(&format!("UPDATE t SET a = {number}"));
        }
        assert_eq!(catalogue.texts().alike.len(), 1);
        for number in 0..10_000 {
            catalogue.text(&format!("UPDATE t{number} SET a = 1"));
        }
        assert_eq!(catalogue.texts().alike.len(), ALIKE);
    }

    #[test]
    fn the_expected_size_follows_the_largest_recent_result() {
        let text = StatementInfo::new("SELECT");
        text.had_size(800, 80);
        assert_eq!(text.expected_size(), (800, 80));
        for _ in 0..200 {
            text.had_size(1, 0);
        }
        assert_eq!(text.expected_size(), (1, 0));
    }
}
