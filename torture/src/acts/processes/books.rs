//! The tables that all processes share, and the conditions that every read of them must satisfy.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;

use super::ledger::Told;
use crate::finding::Finding;

pub(super) const ACCOUNTS: i64 = 16;
const START: i64 = 1_000;

/// `entry`: rows that one statement writes. `mark`: rows that are written together with the second counter. `moved`:
/// transfers between accounts, written together with their balances.
pub(super) const SCHEMA: &str = "
    PRAGMA journal_mode = wal;
    CREATE TABLE counter (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
    INSERT INTO counter VALUES (1, 0), (2, 0);
    CREATE TABLE entry (place INTEGER PRIMARY KEY, id INTEGER NOT NULL);
    CREATE INDEX entry_by_id ON entry (id);
    CREATE TABLE mark (place INTEGER PRIMARY KEY, id INTEGER NOT NULL);
    CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
    WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 16)
        INSERT INTO account SELECT id, 1000 FROM n;
    CREATE TABLE moved (place INTEGER PRIMARY KEY, id INTEGER NOT NULL, amount INTEGER NOT NULL,
        giver INTEGER NOT NULL REFERENCES account, taker INTEGER NOT NULL REFERENCES account);";

pub(super) const ENTER: &str = "INSERT INTO entry (id) VALUES (?)";
pub(super) const MARK: &str = "INSERT INTO mark (id) VALUES (?)";
pub(super) const RAISE_MARKED: &str = "UPDATE counter SET value = value + ? WHERE id = 2";
pub(super) const COUNT: &str = "UPDATE counter SET value = value + 1 WHERE id = 1 RETURNING value";
pub(super) const VALUE: &str = "SELECT value FROM counter WHERE id = 1";
pub(super) const ENTRY: &str = "SELECT count(*) FROM entry WHERE id = ?";
pub(super) const GIVE: &str = "UPDATE account SET balance = balance - ? WHERE id = ?";
pub(super) const TAKE: &str = "UPDATE account SET balance = balance + ? WHERE id = ?";
pub(super) const MOVED: &str = "INSERT INTO moved (id, amount, giver, taker) VALUES (?, ?, ?, ?)";
/// A single statement, and so a single snapshot.
pub(super) const SIGHT: &str = "SELECT (SELECT sum(balance) FROM account), (SELECT value FROM counter WHERE id = 2), \
    (SELECT count(*) FROM mark), (SELECT value FROM counter WHERE id = 1)";

/// The result of `SIGHT`: the sum of balances, the second counter, the marks, the first counter.
pub(super) type Sight = (i64, i64, i64, i64);

pub(super) fn seen(connection: &Connection) -> rusqlite::Result<Sight> {
    connection.prepare_cached(SIGHT)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
}

/// Checks a snapshot. `floor` is a value of the counter that some process received before the read began.
pub(super) fn check(sight: Sight, floor: i64) -> Result<(), Finding> {
    let (sum, marked, marks, value) = sight;
    if sum != ACCOUNTS * START {
        return Err(Finding::new(format!("a read sees {sum} in all accounts together, which is never so")));
    }
    if marked != marks {
        return Err(Finding::new(format!("a read sees {marks} marks and a counter of {marked}: half of a write")));
    }
    check_value(value, floor)
}

pub(super) fn check_value(value: i64, floor: i64) -> Result<(), Finding> {
    if value < floor {
        return Err(Finding::new(format!("a read sees {value} where {floor} was answered before it began")));
    }
    Ok(())
}

/// Checks that a counter that was raised is higher than any value received before.
pub(super) fn check_raised(value: i64, floor: i64) -> Result<(), Finding> {
    if value <= floor {
        return Err(Finding::new(format!("the counter was raised to {value} where {floor} was answered before")));
    }
    Ok(())
}

pub(super) fn check_entry(id: i64, found: i64) -> Result<(), Finding> {
    if found != 1 {
        return Err(Finding::new(format!(
            "a read finds row {id} {found} times, which was acknowledged before it began"
        )));
    }
    Ok(())
}

/// Checks the content of the file after a round against the results of all parts, and the highest value that any part
/// received.
pub(super) fn audit(path: &Path, told: &Told, highest: i64) -> Result<(), Finding> {
    let plain = Connection::open(path)?;
    check(seen(&plain)?, highest)?;
    let rows = "SELECT id, count(*) FROM (SELECT id FROM entry UNION ALL SELECT id FROM mark UNION ALL \
                SELECT id FROM moved) GROUP BY id";
    let mut rows = plain.prepare(rows)?;
    let rows: BTreeMap<i64, i64> =
        rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let lost = told.acknowledged.iter().filter(|id| !rows.contains_key(id));
    none("rows were acknowledged and are not there", lost)?;
    none("rows are there more than once", rows.iter().filter(|(_, times)| **times > 1).map(|(id, _)| id))?;
    none(
        "rows are there whose writes were told to have failed",
        told.denied.iter().filter(|id| rows.contains_key(id)),
    )?;
    let mut counted = told.counted.clone();
    counted.sort_unstable();
    let twice = counted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]);
    none("values of the counter were answered to two", twice)?;
    let wrong = "SELECT id FROM account WHERE balance <> 1000 \
                 - ifnull((SELECT sum(amount) FROM moved WHERE giver = account.id), 0) \
                 + ifnull((SELECT sum(amount) FROM moved WHERE taker = account.id), 0)";
    let mut wrong = plain.prepare(wrong)?;
    let wrong: Vec<i64> = wrong.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    none("accounts hold another balance than what was moved", wrong.iter())
}

fn none<'a>(what: &str, wrong: impl Iterator<Item = &'a i64>) -> Result<(), Finding> {
    let wrong: Vec<_> = wrong.collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let some = &wrong[..wrong.len().min(20)];
    Err(Finding::new(format!("{} {what}", wrong.len())).with_history(format!("among them {some:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(change: &str, told: &Told, highest: i64) -> Result<(), Finding> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test.db");
        let plain = Connection::open(&path).unwrap();
        plain.execute_batch(SCHEMA).unwrap();
        plain
            .execute_batch("INSERT INTO entry (id) VALUES (1), (2); UPDATE counter SET value = 5 WHERE id = 1")
            .unwrap();
        plain.execute_batch("INSERT INTO mark (id) VALUES (3); UPDATE counter SET value = 1 WHERE id = 2").unwrap();
        plain.execute_batch(change).unwrap();
        audit(&path, told, highest)
    }

    fn told() -> Told {
        Told { acknowledged: [1, 3].into(), denied: [7].into(), unknown: [8].into(), counted: vec![4, 5] }
    }

    #[test]
    fn each_way_to_be_wrong_is_found() {
        book("", &told(), 5).unwrap();
        // A write whose outcome was unknown may be present.
        book("INSERT INTO entry (id) VALUES (8)", &told(), 5).unwrap();
        for (change, what) in [
            ("DELETE FROM entry WHERE id = 1", "not there"),
            ("INSERT INTO entry (id) VALUES (2)", "more than once"),
            ("INSERT INTO entry (id) VALUES (7)", "told to have failed"),
            ("UPDATE account SET balance = 999 WHERE id = 3", "never so"),
            ("UPDATE account SET balance = 2 * 1000 * (id = 1) + 1000 * (id > 2)", "another balance"),
            ("DELETE FROM mark", "half of a write"),
            ("UPDATE counter SET value = 4 WHERE id = 1", "answered before"),
        ] {
            let finding = book(change, &told(), 5).unwrap_err();
            assert!(finding.what.contains(what), "{change}: {}", finding.what);
        }
        let twice = Told { counted: vec![4, 5, 4], ..told() };
        assert!(book("", &twice, 5).unwrap_err().what.contains("answered to two"));
    }
}
