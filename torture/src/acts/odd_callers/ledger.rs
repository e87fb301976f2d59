//! What may be in the database: the fate of each number that a caller tried to write.
//!
//! Every write has a number of its own. One that was acknowledged is there once; one that was refused is not; of one whose
//! caller left, either is right, but never twice and never half. A pair is a number and its negative, written together.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use flatwater::{Applied, Error, Kind};

use crate::round::Finding;

/// What is known of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Its caller left, or the outcome cannot be known.
    Open,
    Acknowledged,
    Refused,
}

#[derive(Default)]
struct Written {
    last: i64,
    fates: HashMap<i64, (Fate, bool)>,
}

/// All writes of one database.
#[derive(Default)]
pub(crate) struct Ledger(Mutex<Written>);

impl Ledger {
    /// The number of a new write, whose fate is open; `is_pair` if its negative is written with it.
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

    /// It was refused, or never begun: it must not be there.
    pub(crate) fn refused(&self, number: i64) {
        self.set(number, Fate::Refused);
    }

    /// What the answer says about the write.
    pub(crate) fn answered<T>(&self, number: i64, answer: &Result<T, Error>) {
        match answer {
            Ok(_) => self.acknowledged(number),
            Err(error) if is_unknown(error) => {}
            Err(error) if error.applied() == Some(Applied::Yes) => self.acknowledged(number),
            Err(_) => self.refused(number),
        }
    }

    /// How many were acknowledged.
    pub(crate) fn count_acknowledged(&self) -> u64 {
        self.lock().fates.values().filter(|(fate, _)| *fate == Fate::Acknowledged).count() as u64
    }

    /// Whether these numbers, in any order, are what may be there.
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
    error.kind() == Kind::CommitUnknown || error.applied() == Some(Applied::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An acknowledged write, an acknowledged pair, a refused write, an open pair.
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
