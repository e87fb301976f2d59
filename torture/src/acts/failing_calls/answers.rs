//! The result of each write: the model that the database must agree with.

use std::collections::BTreeMap;
use std::path::Path;

use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorKind};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::case::Load;
use crate::finding::Finding;

/// What is known about a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    There,
    NotThere,
    Unknown,
}

impl Outcome {
    pub(super) fn of(error: &Error) -> Self {
        match (error.kind(), error.applied()) {
            (ErrorKind::CommitUnknown, _) | (_, Some(TimeoutEffect::Unknown)) => Self::Unknown,
            _ => Self::NotThere,
        }
    }
}

/// One write: its number, its rows in both files, and its result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) number: i64,
    pub(super) load: Load,
    pub(super) main: u64,
    pub(super) other: u64,
    /// Whether the write also added one to the counter.
    pub(super) is_counted: bool,
    pub(super) outcome: Outcome,
    /// The text of the error.
    pub(super) said: String,
}

/// The rows of each write in one table: how many there are, and how many distinct ones.
type Found = BTreeMap<i64, (u64, u64)>;

/// Checks that every write is as its result says: all of its rows, each once, or none of them; and that the counter has
/// the right value.
pub(super) fn agree(answers: &[Answer], main: &Path, other: &Path) -> Result<(), Finding> {
    let plain = Connection::open(main)?;
    let in_main = found(&plain, "t")?;
    let in_other = found(&Connection::open(other)?, "o")?;
    let mut counted = 0;
    for answer in answers {
        for (rows, found, file) in [(answer.main, &in_main, "main"), (answer.other, &in_other, "other")] {
            let found = found.get(&answer.number).copied().unwrap_or_default();
            let is_right = match answer.outcome {
                Outcome::There => found == (rows, rows),
                Outcome::NotThere => found == (0, 0),
                Outcome::Unknown => found == (rows, rows) || found == (0, 0),
            };
            if !is_right {
                return Err(Finding::new(format!(
                    "{file} has {found:?} rows (different ones) of {rows} of {answer:?}"
                )));
            }
        }
        counted += i64::from(answer.is_counted && in_main.contains_key(&answer.number));
    }
    let known = |number: &&i64| answers.iter().all(|answer| answer.number != **number);
    if let Some(number) = in_main.keys().chain(in_other.keys()).find(known) {
        return Err(Finding::new(format!("there are rows of write {number}, which nobody made")));
    }
    let counter: i64 = plain.query_row("SELECT n FROM counter", [], |row| row.get(0))?;
    if counter != counted {
        return Err(Finding::new(format!("the counter is {counter} where {counted} writes added one each")));
    }
    Ok(())
}

pub(super) fn found(plain: &Connection, table: &str) -> Result<Found, Finding> {
    let mut statement =
        plain.prepare(&format!("SELECT op, count(*), count(DISTINCT part) FROM {table} GROUP BY op"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok(rows.collect::<rusqlite::Result<Found>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the finding if the writes had this outcome, and `sql` then changed the databases directly.
    fn found_after(outcome: Outcome, sql: &str) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let [main, other] = ["main.db", "other.db"].map(|name| directory.path().join(name));
        let plain = Connection::open(&main).unwrap();
        plain.execute("ATTACH ? AS beside", [other.to_str()]).unwrap();
        plain
            .execute_batch(
                "CREATE TABLE t (op, part, pad); CREATE TABLE beside.o (op, part, pad); CREATE TABLE counter (n);
                 INSERT INTO t (op, part) VALUES (1, 0), (1, 1); INSERT INTO o (op, part) VALUES (1, 0), (1, 1);
                 INSERT INTO counter VALUES (1)",
            )
            .unwrap();
        plain.execute_batch(sql).unwrap();
        let answer =
            Answer { number: 1, load: Load::Both, main: 2, other: 2, is_counted: true, outcome, said: String::new() };
        agree(&[answer], &main, &other).err().map(|finding| finding.what)
    }

    #[test]
    fn what_was_not_answered_so_is_found() {
        use Outcome::{NotThere, There, Unknown};
        const GONE: &str = "DELETE FROM t; DELETE FROM o; UPDATE counter SET n = 0";
        let right = [(There, ""), (Unknown, ""), (Unknown, GONE), (NotThere, GONE), (Unknown, "DELETE FROM o")];
        for (outcome, sql) in right {
            assert_eq!(found_after(outcome, sql), None, "{outcome:?} {sql}");
        }
        let wrong = [
            (There, GONE, "main has (0, 0)"),
            (There, "DELETE FROM o WHERE part = 1", "other has (1, 1)"),
            (Unknown, "DELETE FROM t WHERE part = 1", "main has (1, 1)"),
            (NotThere, "", "main has (2, 2)"),
            (There, "INSERT INTO t (op, part) VALUES (1, 1)", "main has (3, 2)"),
            (Unknown, "INSERT INTO t (op, part) VALUES (1, 1)", "main has (3, 2)"),
            (There, "INSERT INTO o (op, part) VALUES (9, 0)", "write 9, which nobody made"),
            (There, "UPDATE counter SET n = 2", "the counter is 2"),
        ];
        for (outcome, sql, what) in wrong {
            let found = found_after(outcome, sql);
            assert!(found.as_ref().is_some_and(|found| found.contains(what)), "{outcome:?} {sql}: {found:?}");
        }
    }
}
