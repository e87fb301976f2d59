//! The catalogue of SQL texts: the texts that a database has seen, and what it learned about each; and how often its schema may have
//! changed.
//!
//! Owns: the bounded catalogue of texts, guarded by one lock that is held only for a lookup; the epoch of the schema; and the state of
//! the WAL that this engine's writer left behind, with the number of possible schema changes up to then. Any thread may use it.
//! Invariants: the number of texts and their bytes are bounded, whatever callers send; a text that is used once does
//! not displace one that is used again. Leaves out: what is known of one text (`statement_info`), and what a connection has seen of
//! the schema (`connection::learn::schema`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::grouping::Grouping;
use super::lru::SegmentedLru;
use super::statement_info::{KEPT_TEXT_BYTES, StatementInfo, hash_without_literals};
use super::tokens::looks_like_a_write;
use flatwater_base::growth_counter::step;
use flatwater_base::thread::lock;

/// The maximum number of texts in the catalogue, and how many of these places are only for texts that were looked up
/// once.
const TEXTS: usize = 1024;
const NEW_TEXTS: usize = 256;
/// The maximum number of sets of texts that are alike.
const ALIKE: usize = 256;

struct Texts {
    /// By their SQL.
    by_sql: SegmentedLru<Arc<str>, Arc<StatementInfo>>,
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

/// The state that the writer left. The holder of the writer slot writes it, and any thread reads it. The state and
/// the number of changes share one word, so that a reader never combines a state with an older number.
#[derive(Default)]
pub struct LeftWal(AtomicU64);

impl LeftWal {
    /// Records the stamp of the state at which the holder releases the slot. `may_have_changed`: whether the schema may have changed
    /// since the slot was last released, either by another process or by what the holder ran.
    pub fn leave(&self, stamp: u32, may_have_changed: bool) {
        let changes = (self.0.load(Ordering::Relaxed) >> 32).wrapping_add(u64::from(may_have_changed));
        self.0.store(changes << 32 | u64::from(stamp), Ordering::Release);
    }

    /// Returns how often the schema may have changed when the writer left this state; `None` if the writer did not
    /// leave it.
    pub fn changes(&self, stamp: u32) -> Option<u32> {
        let left = self.0.load(Ordering::Acquire);
        let (changes, last) = ((left >> 32) as u32, left as u32);
        (last == stamp).then_some(changes)
    }
}

/// The texts of one database.
pub struct Catalogue {
    texts: Mutex<Texts>,
    /// The epoch grows when the writer sees a new schema. What was learned about groups in an earlier epoch is void.
    epoch: AtomicU64,
    /// The state in which the writer last left the WAL, and how often the schema may have changed by then.
    pub left: LeftWal,
    prepared_again: Arc<AtomicU64>,
}

impl Catalogue {
    /// Makes one without texts.
    pub fn new() -> Self {
        let (by_sql, alike) = (SegmentedLru::new(TEXTS, NEW_TEXTS), SegmentedLru::new(ALIKE, ALIKE / 8));
        let texts = Mutex::new(Texts { by_sql, alike });
        Self { texts, epoch: AtomicU64::new(0), left: LeftWal::default(), prepared_again: Arc::default() }
    }

    /// Returns the entry of `sql`, adding a new one if there is none.
    pub fn text(&self, sql: &str) -> Arc<StatementInfo> {
        step(1);
        if sql.len() > KEPT_TEXT_BYTES {
            return Arc::new(StatementInfo::new(sql));
        }
        if let Some(text) = lock(&self.texts).find(sql) {
            return text;
        }
        let is_write = looks_like_a_write(sql);
        let hash = if is_write { hash_without_literals(sql) } else { None };
        let mut texts = lock(&self.texts);
        // Another thread may have added it meanwhile.
        if let Some(text) = texts.find(sql) {
            return text;
        }
        let alike = hash.map(|hash| texts.alike(hash));
        let text = Arc::new(StatementInfo::with_shared(sql, is_write, alike, self.prepared_again.clone()));
        texts.by_sql.insert(text.sql.clone(), text.clone(), false);
        text
    }

    /// Returns how often texts were prepared again.
    pub fn prepared_again(&self) -> u64 {
        self.prepared_again.load(Ordering::Relaxed)
    }

    /// Returns the epoch of the schema.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Begins a new epoch, because the schema changed: no text is known to be groupable any more.
    pub fn next_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::class::{Class, Route};

    #[test]
    fn a_million_distinct_texts_leave_a_thousand() {
        let catalogue = Catalogue::new();
        for number in 0..1_000_000 {
            catalogue.text(&format!("SELECT {number}"));
        }
        assert_eq!(lock(&catalogue.texts).by_sql.len(), TEXTS);
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
            writes: crate::dependencies::change::Writes::Everything,
            lists_attached: false,
            reads_setting: false,
            change_function: None,
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
        assert_eq!(lock(&catalogue.texts).alike.len(), 1);
        for number in 0..10_000 {
            catalogue.text(&format!("UPDATE t{number} SET a = 1"));
        }
        assert_eq!(lock(&catalogue.texts).alike.len(), ALIKE);
    }
}
