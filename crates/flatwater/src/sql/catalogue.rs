//! The texts a database knows, and what was learnt about each.
//!
//! Owns: `Text`, shared by all connections, and the bounded catalogue of them, guarded by one lock that is held for a
//! lookup only. Invariants: memory is bounded in texts and bytes whatever callers send; what was learnt under another
//! schema counts as not known; a text that is not known to be short and groupable runs alone. Leaves out: prepared
//! statements, which belong to a connection.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use hashlink::{DefaultHashBuilder, LruCache};

use super::class::{Class, Route};
use super::seen::Left;
use super::tokens::tells_of_its_prepare;
use crate::inline::backoff::Backoff;

/// Texts in the catalogue at most.
const TEXTS: usize = 1024;
/// Executions after which a text's cost is its history.
const HISTORY: u32 = 8;
/// A longer text is not kept, here or prepared.
pub(crate) const KEPT_TEXT_BYTES: usize = 16 * 1024;

/// Of all texts of the process.
static HASHER: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);

/// One SQL text and what is known about it. The fields are hints: a stale one costs speed, never correctness, because
/// the writer checks the schema before it trusts `group_epoch`.
#[derive(Debug)]
pub(crate) struct StatementInfo {
    pub(crate) sql: Box<str>,
    /// Of the SQL.
    hash: u64,
    /// It is never kept prepared.
    pub(crate) tells_of_its_prepare: bool,
    /// 0 unknown, 1 read, 2 write. What a text does to the data does not depend on the schema.
    route: AtomicU32,
    /// The epoch in which the text was found to be groupable, plus 1; 0 if it was not.
    group_epoch: AtomicU64,
    /// It once ended a group's transaction.
    aborting: AtomicBool,
    /// It failed as a member of a group that had no savepoint for it.
    failed: AtomicBool,
    pub(crate) backoff: Backoff,
    /// Running average of its execution in microseconds, plus 1; 0 before the first.
    cost_us: AtomicU32,
    /// Executions that were timed, up to a few.
    timed: AtomicU32,
    /// Cells and bytes of the largest recent result.
    cells: AtomicU32,
    bytes: AtomicU32,
}

impl StatementInfo {
    pub(crate) fn new(sql: &str) -> Self {
        Self {
            sql: sql.into(),
            hash: HASHER.hash_one(sql),
            tells_of_its_prepare: tells_of_its_prepare(sql),
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

    pub(crate) fn route(&self) -> Option<Route> {
        match self.route.load(Ordering::Relaxed) {
            1 => Some(Route::Read),
            2 => Some(Route::Write),
            _ => None,
        }
    }

    /// Notes who runs the text.
    pub(crate) fn learn_route(&self, route: Route) {
        self.route.store(if route == Route::Read { 1 } else { 2 }, Ordering::Relaxed);
    }

    /// Notes what a prepare on the writer, under the schema of `epoch`, taught.
    pub(crate) fn learn(&self, class: &Class, epoch: u64) {
        self.learn_route(class.route);
        self.group_epoch.store(if class.groupable { epoch + 1 } else { 0 }, Ordering::Relaxed);
    }

    /// Whether the text may be a member of a group whose members shall be shorter than `short`.
    pub(crate) fn is_groupable(&self, epoch: u64, short: Duration) -> bool {
        let cost = self.cost_us.load(Ordering::Relaxed);
        self.group_epoch.load(Ordering::Relaxed) == epoch + 1
            && !self.aborting.load(Ordering::Relaxed)
            && cost != 0
            && u128::from(cost - 1) <= short.as_micros()
    }

    /// From now on its members run inside a savepoint.
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

    /// Whether it was timed often enough to trust that it takes no longer than `short`.
    pub(crate) fn has_short_history(&self, short: Duration) -> bool {
        let cost = self.cost_us.load(Ordering::Relaxed);
        self.timed.load(Ordering::Relaxed) >= HISTORY && u128::from(cost) <= short.as_micros()
    }

    /// Cells and bytes to expect of a result.
    pub(crate) fn expected_size(&self) -> (usize, usize) {
        (self.cells.load(Ordering::Relaxed) as usize, self.bytes.load(Ordering::Relaxed) as usize)
    }

    /// Notes the size of a result. A larger one counts at once, a smaller one by and by.
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

/// Equal by the SQL, which is the same text's own in most cases.
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

/// A text as the key of the catalogue, where it is looked up by its SQL.
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
    texts: Mutex<LruCache<Key, Arc<StatementInfo>>>,
    /// Goes up when the writer sees another schema. What was learnt in an earlier epoch about groups is void.
    epoch: AtomicU64,
    /// What the writer left in the WAL.
    pub(crate) left: Left,
}

impl Catalogue {
    pub(crate) fn new() -> Self {
        Self { texts: Mutex::new(LruCache::new(TEXTS)), epoch: AtomicU64::new(0), left: Left::default() }
    }

    /// The text, known or new.
    pub(crate) fn text(&self, sql: &str) -> Arc<StatementInfo> {
        if sql.len() > KEPT_TEXT_BYTES {
            return Arc::new(StatementInfo::new(sql));
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = texts.get(sql) {
            return text.clone();
        }
        let text = Arc::new(StatementInfo::new(sql));
        texts.insert(Key(text.clone()), text.clone());
        text
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// The schema changed: nothing is known to be groupable any more.
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
