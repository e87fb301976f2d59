//! Backups while calls fail: a copy is one point in time, and after an error there is none.

use std::path::Path;

use flatwater::Database;
use rusqlite::Connection;

use super::answers::{Answer, Outcome, found};
use super::case::Load;
use super::writes::Work;
use crate::finding::Finding;

/// Makes a copy, and checks it against the writes that were answered before it began.
pub(super) async fn run(work: &Work, db: &Database, seed: u64) -> Result<(), Finding> {
    let copy = work.directory.join(format!("copy-{seed}.db"));
    let before = work.answers.borrow().clone();
    match db.backup(&copy).await {
        Ok(()) => {
            work.count("backups");
            judge(&copy, &before, &work.answers.borrow())?;
            std::fs::remove_file(&copy)?;
        }
        Err(error) => {
            work.may_fail(&error, Load::Backup)?;
            work.count("failed backups");
            if copy.exists() {
                return Err(Finding::new(format!("there is a copy after {error}")));
            }
        }
    }
    Ok(())
}

/// Checks that the copy has every write that was answered `before`, and each of those `after` whole or not at all.
fn judge(copy: &Path, before: &[Answer], after: &[Answer]) -> Result<(), Finding> {
    let plain = Connection::open(copy)?;
    let integrity: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if integrity != "ok" {
        return Err(Finding::new(format!("the copy is damaged: {integrity}")));
    }
    let rows = found(&plain, "t")?;
    for (position, answer) in after.iter().enumerate() {
        let found = rows.get(&answer.number).copied().unwrap_or_default();
        let is_whole = found == (answer.main, answer.main);
        let is_right = match answer.outcome {
            Outcome::There if position < before.len() => is_whole,
            Outcome::NotThere => found == (0, 0),
            _ => is_whole || found == (0, 0),
        };
        if !is_right {
            return Err(Finding::new(format!("a copy has {found:?} rows (different ones) of {answer:?}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_lacks_a_write_or_has_a_part_of_one_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let found_with = |sql: &str, known: usize| {
            let copy = directory.path().join("copy.db");
            let plain = Connection::open(&copy).unwrap();
            plain.execute_batch("CREATE TABLE t (op, part); INSERT INTO t VALUES (1, 0), (2, 0), (2, 1)").unwrap();
            plain.execute_batch(sql).unwrap();
            drop(plain);
            let answer = |number, rows, outcome| Answer {
                number,
                load: Load::Many,
                main: rows,
                other: 0,
                is_counted: false,
                outcome,
                said: String::new(),
            };
            let all = [answer(1, 1, Outcome::There), answer(2, 2, Outcome::There), answer(3, 1, Outcome::NotThere)];
            let judged = judge(&copy, &all[..known], &all);
            std::fs::remove_file(&copy).unwrap();
            judged.is_err()
        };
        assert!(!found_with("", 3));
        assert!(!found_with("DELETE FROM t WHERE op = 2", 1), "it was answered after the copy");
        assert!(found_with("DELETE FROM t WHERE op = 2", 2));
        assert!(found_with("DELETE FROM t WHERE op = 2 AND part = 1", 1));
        assert!(found_with("INSERT INTO t VALUES (3, 0)", 3));
    }
}
