//! What the database may contain: the fate of each number that a caller tried to write.
//!
//! Every write has a unique number. An acknowledged number is present once; a refused number is absent. If the caller
//! dropped the call, the number may be present or absent, but never twice and never in part. A pair is a number and its
//! negative, written together.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorKind};

use crate::finding::Finding;

/// What is known about one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The caller dropped the call, or the outcome is unknown.
    Open,
    Acknowledged,
    Refused,
}

#[derive(Default)]
struct Written {
    last: i64,
    fates: HashMap<i64, (Fate, bool)>,
}

/// All writes to one database.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<Written>);

impl Ledger {
    /// Returns the number of a new write, whose fate is open. With `is_pair` its negative is written with it.
    pub(crate) fn begin(&self, is_pair: bool) -> i64 {
        let mut written = self.lock();
        written.last += 1;
        let number = written.last;
        written.fates.insert(number, (Fate::Open, is_pair));
        number
    }

    pub(crate) fn acknowledged(&self, number: i64) {
        self.set(number, Fate::Acknowledged);
    }

    /// The write was refused, or never begun: it must not be present.
    pub(crate) fn refused(&self, number: i64) {
        self.set(number, Fate::Refused);
    }

    /// Records what the result says about the write.
    pub(crate) fn answered<T>(&self, number: i64, answer: &Result<T, Error>) {
        match answer {
            Ok(_) => self.acknowledged(number),
            Err(error) if is_unknown(error) => {}
            Err(_) => self.refused(number),
        }
    }

    /// Returns the number of acknowledged writes.
    pub(crate) fn count_acknowledged(&self) -> u64 {
        self.lock().fates.values().filter(|(fate, _)| *fate == Fate::Acknowledged).count() as u64
    }

    /// Checks that the database may contain exactly these numbers, in any order.
    pub(crate) fn agrees_with(&self, rows: &[i64]) -> Result<(), Finding> {
        let mut found = HashMap::<i64, usize>::new();
        for row in rows {
            *found.entry(*row).or_default() += 1;
        }
        let written = self.lock();
        let mut wrong = Vec::new();
        for (number, (fate, is_pair)) in &written.fates {
            let (count, negatives) = (found.remove(number).unwrap_or(0), found.remove(&-number).unwrap_or(0));
            let fault = match fate {
                Fate::Acknowledged if count == 0 => "acknowledged and lost",
                Fate::Refused if count + negatives > 0 => "refused and there",
                _ if count > 1 => "there more than once",
                _ if negatives != if *is_pair { count } else { 0 } => "there by halves",
                _ => continue,
            };
            wrong.push(format!("{number}: {fault} ({count} and {negatives} rows)"));
        }
        wrong.extend(found.iter().map(|(number, count)| format!("{number}: nobody wrote it ({count} rows)")));
        if wrong.is_empty() {
            return Ok(());
        }
        wrong.sort();
        wrong.truncate(20);
        let what = "the database does not have what its callers were answered";
        Err(Finding::new(what).with_history(wrong.join("\n")))
    }

    fn set(&self, number: i64, fate: Fate) {
        if let Some((known, _)) = self.lock().fates.get_mut(&number) {
            *known = fate;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_unknown(error: &Error) -> bool {
    error.kind() == ErrorKind::CommitUnknown || error.applied() == Some(TimeoutEffect::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a ledger with an acknowledged write, an acknowledged pair, a refused write and an open pair.
    fn four() -> Ledger {
        let ledger = Ledger::default();
        let numbers = [false, true, false, true].map(|is_pair| ledger.begin(is_pair));
        assert_eq!(numbers, [1, 2, 3, 4]);
        ledger.acknowledged(1);
        ledger.acknowledged(2);
        ledger.refused(3);
        ledger
    }

    #[test]
    fn what_was_answered_agrees_and_an_open_write_may_be_there_or_not() {
        four().agrees_with(&[2, 1, -2]).unwrap();
        four().agrees_with(&[1, 2, -2, 4, -4]).unwrap();
    }

    #[test]
    fn each_kind_of_fault_is_found() {
        for (rows, fault) in [
            (&[2, -2][..], "1: acknowledged and lost"),
            (&[1, 2], "2: there by halves"),
            (&[1, -2], "2: acknowledged and lost"),
            (&[1, 1, 2, -2], "1: there more than once"),
            (&[1, 2, -2, 3], "3: refused and there"),
            (&[1, 2, -2, -4], "4: there by halves"),
            (&[1, -1, 2, -2], "1: there by halves"),
            (&[1, 2, -2, 5], "5: nobody wrote it"),
        ] {
            let finding = four().agrees_with(rows).unwrap_err();
            assert!(finding.history.contains(fault), "{rows:?}: {}", finding.history);
        }
    }
}
