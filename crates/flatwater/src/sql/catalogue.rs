//! The catalogue of SQL texts: the texts that a database has seen, and what it learned about each.
//!
//! Owns: `StatementInfo`, shared by all connections, and the bounded catalogue of them, guarded by one lock that is
//! held only for a lookup. Any thread may use it. Invariants: the number of texts and their bytes are bounded, whatever
//! callers send; a text that is used once does not displace one that is used again; what was learned under another
//! schema counts as unknown; a text that is not known to be short and groupable runs alone. Leaves out: prepared
//! statements, which belong to a connection.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use hashlink::DefaultHashBuilder;

use super::class::{Class, Route};
use super::lru::SegmentedLru;
use super::seen::Left;
use super::tokens::tells_of_its_prepare;
use crate::inline::backoff::Backoff;

/// The maximum number of texts in the catalogue, and how many of these places are only for texts that were looked up
/// once.
const TEXTS: usize = 1024;
const NEW_TEXTS: usize = 256;
/// The number of executions after which the average cost of a text can be trusted.
const HISTORY: u32 = 8;
/// A longer text is neither kept in the catalogue nor kept prepared.
pub(crate) const KEPT_TEXT_BYTES: usize = 16 * 1024;

/// The hasher of all texts in the process.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// One SQL text and what is known about it. The fields are hints: a stale one costs speed, never correctness, because
/// the writer checks the schema before it trusts `group_epoch`.
#[derive(Debug)]
pub(crate) struct StatementInfo {
    pub(crate) sql: Arc<str>,
    /// The hash of `sql`.
    hash: u64,
    /// The result of the statement depends on the schema at the time of its prepare, so it is never kept prepared.
    pub(crate) tells_of_its_prepare: bool,
    /// The text was looked up more than once.
    used_again: AtomicBool,
    /// 0 is unknown, 1 is a read, 2 is a write. The kind does not depend on the schema.
    route: AtomicU32,
    /// The epoch in which the text was found to be groupable, plus 1; 0 if it was not.
    group_epoch: AtomicU64,
    /// The text once ended the transaction of a group.
    aborting: AtomicBool,
    /// The text failed as a member of a group that had no savepoint for it.
    failed: AtomicBool,
    pub(crate) backoff: Backoff,
    /// The running average of its execution time in microseconds, plus 1; 0 before the first execution.
    cost_us: AtomicU32,
    /// The number of timed executions, counted up to `HISTORY`.
    timed: AtomicU32,
    /// The number of cells and bytes of the largest recent result.
    cells: AtomicU32,
    bytes: AtomicU32,
}

impl StatementInfo {
    pub(crate) fn new(sql: &str) -> Self {
        Self {
            sql: sql.into(),
            hash: HASHER.hash_one(sql),
            tells_of_its_prepare: tells_of_its_prepare(sql),
            used_again: AtomicBool::new(false),
            route: AtomicU32::new(0),
            group_epoch: AtomicU64::new(0),
            aborting: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            backoff: Backoff::default(),
            cost_us: AtomicU32::new(0),
            timed: AtomicU32::new(0),
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

    /// Records what the writer learned when it prepared the text under the schema of `epoch`.
    pub(crate) fn learn(&self, class: &Class, epoch: u64) {
        self.learn_route(class.route);
        self.group_epoch.store(if class.groupable { epoch + 1 } else { 0 }, Ordering::Relaxed);
    }

    /// Returns true if the text may be a member of a group whose members must take no longer than `short`.
    pub(crate) fn is_groupable(&self, epoch: u64, short: Duration) -> bool {
        let cost = self.cost_us.load(Ordering::Relaxed);
        self.group_epoch.load(Ordering::Relaxed) == epoch + 1
            && !self.aborting.load(Ordering::Relaxed)
            && cost != 0
            && u128::from(cost - 1) <= short.as_micros()
    }

    /// Records that the text failed in a group. From now on it runs inside a savepoint there.
    pub(crate) fn mark_failed(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_aborting(&self) {
        self.aborting.store(true, Ordering::Relaxed);
    }

    /// Adds one execution to the running average.
    pub(crate) fn took(&self, time: Duration) {
        let now = u32::try_from(time.as_micros()).unwrap_or(u32::MAX - 1).min(u32::MAX - 1);
        let before = self.cost_us.load(Ordering::Relaxed);
        let average = match before {
            0 => now,
            before => (before - 1) - (before - 1) / 8 + now / 8,
        };
        self.cost_us.store(average.min(u32::MAX - 1) + 1, Ordering::Relaxed);
        let timed = self.timed.load(Ordering::Relaxed);
        if timed < HISTORY {
            self.timed.store(timed + 1, Ordering::Relaxed);
        }
    }

    /// Returns true if the text was timed often enough, and takes no longer than `short` on average.
    pub(crate) fn has_short_history(&self, short: Duration) -> bool {
        let cost = self.cost_us.load(Ordering::Relaxed);
        self.timed.load(Ordering::Relaxed) >= HISTORY && u128::from(cost) <= short.as_micros()
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

/// A key of the catalogue, which looks texts up by their SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key(Arc<StatementInfo>);

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0.sql
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.sql.hash(state);
    }
}

/// The texts of one database.
pub(crate) struct Catalogue {
    texts: Mutex<SegmentedLru<Key, Arc<StatementInfo>>>,
    /// The epoch grows when the writer sees a new schema. What was learned about groups in an earlier epoch is void.
    epoch: AtomicU64,
    /// The state in which the writer last left the WAL, and how often the schema may have changed by then.
    pub(crate) left: Left,
}

impl Catalogue {
    pub(crate) fn new() -> Self {
        Self { texts: Mutex::new(SegmentedLru::new(TEXTS, NEW_TEXTS)), epoch: AtomicU64::new(0), left: Left::default() }
    }

    /// Returns the entry of `sql`, adding a new one if there is none.
    pub(crate) fn text(&self, sql: &str) -> Arc<StatementInfo> {
        if sql.len() > KEPT_TEXT_BYTES {
            return Arc::new(StatementInfo::new(sql));
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.get(sql) {
            text.mark_used_again();
            return text.clone();
        }
        let text = Arc::new(StatementInfo::new(sql));
        texts.insert(Key(text.clone()), text.clone(), false);
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
        assert_eq!(catalogue.texts.lock().unwrap().len(), TEXTS);
        let long = "x".repeat(KEPT_TEXT_BYTES + 1);
        assert!(!Arc::ptr_eq(&catalogue.text(&long), &catalogue.text(&long)));
        assert!(Arc::ptr_eq(&catalogue.text("SELECT 1"), &catalogue.text("SELECT 1")));
    }

    #[test]
    fn a_text_is_groupable_once_it_is_known_to_be_short_under_this_schema() {
        let short = Duration::from_millis(1);
        let class = Class {
            route: Route::Write,
            groupable: true,
            columns: 0,
            changes_rows: true,
            inserts_into: None,
            defines: false,
            makes_temp: false,
            drops: None,
        };
        let text = StatementInfo::new("INSERT");
        text.learn(&class, 0);
        assert!(!text.is_groupable(0, short), "never run");
        text.took(Duration::from_micros(5));
        assert!(text.is_groupable(0, short));
        assert!(!text.is_groupable(1, short), "another schema");
        for _ in 0..100 {
            text.took(Duration::from_millis(9));
        }
        assert!(!text.is_groupable(0, short), "slow");
        text.took(Duration::ZERO);
        for _ in 0..100 {
            text.took(Duration::ZERO);
        }
        assert!(text.is_groupable(0, short), "short again");
        text.mark_aborting();
        assert!(!text.is_groupable(0, short));
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
