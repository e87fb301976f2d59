//! What makes a write apply once, whatever became of the connections on which it was sent.
//!
//! Owns: the tables for it, and the statements that stand around the callers' own. Pure. Invariants: a request of a writer is applied
//! only if its number is higher than that of each request of this writer before, in the same transaction, so a request that is sent
//! again, or arrives late, is refused by the database itself, for ever; what each statement changed is in a table, in the same
//! transaction, and so can be asked when the answer was lost. No clock is compared for any of it. Leaves out: sending.
//!
//! ```text
//! INSERT OR REPLACE INTO _flatwater_writers ...   a trigger refuses a number that is not higher
//! the statement of the first caller
//! INSERT OR REPLACE INTO _flatwater_results ...   changes() and last_insert_rowid() of it
//! the statement of the second caller
//! ...
//! UPDATE _flatwater_results ... RETURNING ...     what the callers get
//! ```
//!
//! A request that consists of the first statement alone, with the number of one of which nothing is known, ends that one: it was applied
//! before, and then it has results, or it never will be.
//!
//! Both tables have rowids that we choose, so before each statement `last_insert_rowid()` is one of ours: if it still is
//! afterwards, the statement has inserted no row. (The server returns the last one of the connection, whoever inserted it.)

use std::collections::HashMap;

use flatwater::bindings::server::{One, executed};
use flatwater::values::ExecuteResult;

use crate::check::changes_rows;
use crate::dialect::Dialect;
use crate::forms::Statements;
use crate::results::RowValue;

/// The message with which the trigger refuses.
const APPLIED: &str = "flatwater: this request was applied before";

/// Creates what is needed, if it is not there. The trigger runs before the row of before is replaced.
pub(crate) const SCHEMA: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS _flatwater_writers (id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, at INTEGER NOT NULL, marked INTEGER)",
    "CREATE TABLE IF NOT EXISTS _flatwater_results (id INTEGER PRIMARY KEY, request INTEGER NOT NULL, changes INTEGER NOT NULL, rowid_after INTEGER NOT NULL)",
    "CREATE TRIGGER IF NOT EXISTS _flatwater_once BEFORE INSERT ON _flatwater_writers \
     WHEN NEW.sequence <= (SELECT sequence FROM _flatwater_writers WHERE id = NEW.id) \
     BEGIN SELECT RAISE(ABORT, 'flatwater: this request was applied before'); END",
];

/// Removes what writers left that have written nothing for a week, which is far longer than a request can be under way: they are marked, and
/// removed if they are marked for a day. A request of a writer takes its mark away. So one client whose clock is wrong removes nothing: another
/// clock has to be ahead of that one, too. `?1` is the time, in seconds.
pub(crate) const CLEAN: &[&str] = &[
    "DELETE FROM _flatwater_results WHERE id >> 20 IN (SELECT id FROM _flatwater_writers WHERE marked < ?1 - 86400)",
    "DELETE FROM _flatwater_writers WHERE marked < ?1 - 86400",
    "UPDATE _flatwater_writers SET marked = ?1 WHERE at < ?1 - 604800 AND marked IS NULL",
];

const BEGIN: &str = "INSERT OR REPLACE INTO _flatwater_writers (id, sequence, at) VALUES (?, ?, ?)";
const RECORD: &str = "INSERT OR REPLACE INTO _flatwater_results (id, request, changes, rowid_after) VALUES (?, ?, changes(), last_insert_rowid())";
/// For the rows of an `execute_many` after the first one.
const ADD: &str = "UPDATE _flatwater_results SET changes = changes + changes() WHERE id = ?";
/// Of a list that writes the server returns rows for RETURNING only.
const RESULTS: &str = "UPDATE _flatwater_results SET request = request WHERE id BETWEEN ? AND ? AND request = ? RETURNING id, changes, rowid_after";
const QUESTION: &str =
    "SELECT id, changes, rowid_after FROM _flatwater_results WHERE id BETWEEN ? AND ? AND request = ?";

/// One request of this client has so many results at most; the rest of a rowid's bits is the number of the writer.
const SLOT_BITS: u32 = 20;
pub(crate) const MOST_RESULTS: usize = (1 << SLOT_BITS) - 1;

/// Who writes: the requests of one are made one after the other.
pub(crate) struct Writer {
    id: i64,
    sequence: i64,
    /// A number at random for each request, by which its results are known: a copy of this program that goes on with the same
    /// numbers, as a machine that was cloned has, is not told the results of ours.
    request: i64,
}

impl Writer {
    /// Returns a writer whose number nobody else has: it is one of 2^41.
    pub(crate) fn new(random: u64) -> Self {
        Self { id: (1 << 41) | (random >> 23).cast_signed(), sequence: 0, request: 0 }
    }

    /// To be called before each request that is not the same one again.
    pub(crate) fn next(&mut self, random: u64) {
        self.sequence += 1;
        self.request = random.cast_signed();
    }

    fn slot(&self, number: usize) -> i64 {
        self.id << SLOT_BITS | i64::try_from(number).unwrap_or(i64::MAX)
    }

    /// Begins a request. `now` is in seconds; it matters only when what old writers left is removed.
    pub(crate) fn begin(&self, dialect: Dialect, now: i64) -> Statements {
        let mut statements = dialect.transaction();
        self.begin_in(&mut statements, now);
        statements
    }

    pub(crate) fn begin_in(&self, statements: &mut Statements, now: i64) {
        statements.own(BEGIN, &[self.id, self.sequence, now]);
    }

    /// Sees to it that `last_insert_rowid()` is one of ours, where other statements came before.
    pub(crate) fn set_rowid(&self, to: &mut Statements) {
        to.own(RECORD, &[self.slot(0), self.request]);
    }

    /// Sees to it that the request has the result with the number 1.
    pub(crate) fn mark(&self, to: &mut Statements) {
        to.own(RECORD, &[self.slot(1), self.request]);
    }

    /// Adds a statement whose result is the one with this number, from 1.
    pub(crate) fn add(&self, to: &mut Statements, one: &One<'_>, number: usize) {
        to.add(one);
        to.own(RECORD, &[self.slot(number), self.request]);
    }

    /// Adds a further row of the statement with this number.
    pub(crate) fn add_row(&self, to: &mut Statements, one: &One<'_>, number: usize) {
        to.add(one);
        to.own(ADD, &[self.slot(number)]);
    }

    /// Ends a request that has so many results.
    pub(crate) fn end(&self, to: &mut Statements, results: usize) {
        to.own(RESULTS, &[self.slot(1), self.slot(results), self.request]);
    }

    /// Asks for the results of the request. There are none if it was not applied.
    pub(crate) fn question(&self, mut statements: Statements, results: usize) -> Statements {
        statements.own(QUESTION, &[self.slot(1), self.slot(results), self.request]);
        statements
    }

    /// Reads the results, by their numbers.
    pub(crate) fn results(&self, rows: &[Vec<RowValue>]) -> Option<HashMap<usize, Recorded>> {
        rows.iter().map(|row| self.result(row)).collect()
    }

    fn result(&self, row: &[RowValue]) -> Option<(usize, Recorded)> {
        let [id, changes, rowid] = row else { return None };
        let (id, changes, rowid) = (id.integer()?, changes.integer()?, rowid.integer()?);
        let number = usize::try_from(id.checked_sub(self.slot(0))?).ok()?;
        let rowid = Some(rowid).filter(|rowid| !self.is_own(*rowid));
        Some((number, Recorded { changes: u64::try_from(changes).ok()?, rowid }))
    }

    /// Returns true for a rowid that this writer has chosen.
    fn is_own(&self, rowid: i64) -> bool {
        rowid == self.id || rowid >> SLOT_BITS == self.id
    }
}

/// What a statement has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) changes: u64,
    rowid: Option<i64>,
}

impl Recorded {
    /// `changes()` keeps its value in a statement that is no INSERT, UPDATE or DELETE.
    pub(crate) fn of(self, sql: &str) -> ExecuteResult {
        if changes_rows(sql) { executed(self.changes, self.rowid) } else { executed(0, None) }
    }
}

/// Returns true for the message of the trigger.
pub(crate) fn was_applied(message: &str) -> bool {
    message.contains(APPLIED)
}

/// Returns true for the message of a database that has not the tables yet.
pub(crate) fn is_without_tables(message: &str) -> bool {
    message.contains("no such table: _flatwater_writers") || message.contains("no such table: _flatwater_results")
}

#[cfg(test)]
mod tests {
    use flatwater::rusqlite::Connection;

    use super::*;

    fn database() -> Connection {
        let sqlite = Connection::open_in_memory().unwrap();
        SCHEMA.iter().for_each(|sql| sqlite.execute_batch(sql).unwrap());
        sqlite.execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b)").unwrap();
        sqlite
    }

    fn begin(sqlite: &Connection, writer: &Writer) -> flatwater::rusqlite::Result<usize> {
        sqlite.execute(BEGIN, [writer.id, writer.sequence, 0])
    }

    #[test]
    fn a_request_is_applied_if_its_number_is_higher_than_all_before() {
        let sqlite = database();
        let (mut one, mut other) = (Writer::new(1 << 40), Writer::new(2 << 40));
        for writer in [&mut one, &mut other] {
            writer.next(0);
            begin(&sqlite, writer).unwrap();
            let again = begin(&sqlite, writer).unwrap_err().to_string();
            assert!(was_applied(&again), "{again}");
            writer.next(0);
            writer.next(0);
            begin(&sqlite, writer).unwrap();
            writer.sequence -= 1;
            assert!(begin(&sqlite, writer).is_err(), "a number that was passed over");
        }
        assert!(is_without_tables(&Connection::open_in_memory().unwrap().prepare(BEGIN).unwrap_err().to_string()));
    }

    #[test]
    fn what_is_left_is_removed_and_a_clock_that_is_wrong_removes_nothing() {
        const DAY: i64 = 86_400;
        let sqlite = database();
        let mut writers = [Writer::new(1 << 40), Writer::new(2 << 40)];
        let begin_at = |writer: &mut Writer, at: i64| {
            writer.next(0);
            sqlite.execute(BEGIN, [writer.id, writer.sequence, at]).unwrap();
            sqlite.execute(RECORD, [writer.slot(1), writer.request]).unwrap();
        };
        let clean = |at: i64| {
            for sql in CLEAN {
                sqlite.execute(sql, [at]).unwrap();
            }
        };
        let left = || {
            let of = |table: &str| sqlite.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0));
            (of("_flatwater_writers").unwrap(), of("_flatwater_results").unwrap())
        };
        let now = 1000 * DAY;
        writers.iter_mut().for_each(|writer| begin_at(writer, now));
        // A clock that jumps to next year and back, again and again, and others that are right.
        for minute in 0..60 {
            clean(now + 60 * minute + 365 * DAY);
            clean(now + 60 * minute);
        }
        assert_eq!(left(), (2_i64, 2_i64));
        // A request takes the mark away.
        begin_at(&mut writers[0], now + DAY);
        clean(now + 8 * DAY);
        assert_eq!(left(), (2, 2), "the other one is marked by a clock that is ahead");
        clean(now + 365 * DAY + 2 * DAY);
        assert_eq!(left(), (1, 1));
        assert!(begin(&sqlite, &writers[0]).is_err(), "its guard is there");
        clean(now + 400 * DAY);
        clean(now + 402 * DAY);
        assert_eq!(left(), (0, 0));
    }

    #[test]
    fn what_a_statement_changed_and_inserted_is_recorded() {
        let sqlite = database();
        sqlite.execute_batch("INSERT INTO t VALUES (1, 1)").unwrap();
        let mut writer = Writer::new(u64::MAX);
        writer.next(7);
        begin(&sqlite, &writer).unwrap();
        let texts = [
            "UPDATE t SET b = 2",
            "INSERT INTO t (b) VALUES (1), (2)",
            "DELETE FROM t WHERE a > 90",
            "CREATE TABLE other (a)",
            "INSERT INTO other VALUES (1)",
            "INSERT INTO t VALUES (1, 5) ON CONFLICT DO UPDATE SET b = excluded.b",
        ];
        for (number, sql) in (1..).zip(texts) {
            sqlite.execute(sql, []).unwrap();
            sqlite.execute(RECORD, [writer.slot(number), writer.request]).unwrap();
        }
        let mut read = sqlite.prepare(RESULTS).unwrap();
        let integer = |row: &flatwater::rusqlite::Row<'_>, at: usize| row.get(at).map(RowValue::Whole);
        let row = |row: &flatwater::rusqlite::Row<'_>| (0..3).map(|at| integer(row, at)).collect::<Result<Vec<_>, _>>();
        let all = [writer.slot(1), writer.slot(texts.len()), writer.request];
        let rows = read.query_map(all, row).unwrap();
        let rows: Vec<_> = rows.map(Result::unwrap).collect();
        let results = writer.results(&rows).unwrap();
        let of = |number: usize| {
            let result = results[&number].of(texts[number - 1]);
            (result.changes, result.last_insert_rowid)
        };
        let expected = [(1, None), (2, Some(3)), (0, None), (0, None), (1, Some(1)), (1, None)];
        assert_eq!((1..=texts.len()).map(of).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_numbers_of_writers_and_results_do_not_overlap() {
        let (low, high) = (Writer::new(0), Writer::new(u64::MAX));
        assert!(low.id > 0 && high.slot(MOST_RESULTS) > 0 && low.slot(0) > high.id);
        assert!(Writer::new(1 << 23).slot(0) > low.slot(MOST_RESULTS));
    }
}
