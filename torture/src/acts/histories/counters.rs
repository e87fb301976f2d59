//! Counters that all tasks share: each addition returns another number, none is lost, and no read returns less than a
//! value that was returned before the read began.
//!
//! These statements are short enough to run inline, so they cannot record ticks. Their results show the order instead.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use flatwater::Database;
use rusqlite::types::Value;

use super::op::{Op, Told};
use crate::finding::Finding;

/// The results so far.
#[derive(Default)]
pub(super) struct Counters(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    answered: BTreeSet<(i64, i64)>,
    /// For each counter, the number of additions that may have been done.
    open: Vec<i64>,
    wrong: Option<String>,
}

impl Noted {
    fn highest(&self, id: i64) -> i64 {
        self.answered.range((id, i64::MIN)..=(id, i64::MAX)).next_back().map_or(0, |(_, n)| *n)
    }
}

impl Counters {
    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the highest number returned so far for the operation's counter.
    pub(super) fn highest(&self, op: &Op) -> i64 {
        match op {
            Op::Count(id, _) | Op::ReadCount(id) => self.lock().highest(*id),
            _ => 0,
        }
    }

    /// Records the results of an operation that began when `before` was the highest number.
    pub(super) fn note(&self, op: &Op, before: i64, told: &[Told]) {
        let mut noted = self.lock();
        let number = match told {
            [Told::Row(Some(cells))] => {
                if let [Value::Integer(n)] = cells[..] {
                    Some(n)
                } else {
                    None
                }
            }
            _ => None,
        };
        match (op, number, told) {
            (Op::Count(id, _), Some(n), _) => {
                let is_new = noted.answered.insert((*id, n));
                if n <= before || !is_new {
                    noted.wrong = Some(format!("counter {id} answered {n}, where {before} was answered before"));
                }
            }
            (Op::ReadCount(id), Some(n), _) if n < before => {
                noted.wrong = Some(format!("counter {id} was read as {n}, where {before} was answered before"));
            }
            (Op::ReadCount(_), Some(_), _) | (Op::Count(..), None, [Told::TimedOut]) => {}
            (Op::Count(id, _), None, [Told::Left]) => noted.open.push(*id),
            (Op::Count(id, _) | Op::ReadCount(id), None, _) => {
                noted.wrong = Some(format!("counter {id} told {told:?}"));
            }
            _ => {}
        }
    }

    /// Compares the results with the counters in the database.
    pub(super) async fn are_right(&self, db: &Database) -> Result<(), Finding> {
        let there: Vec<(i64, i64)> = db.query_as("SELECT id, n FROM counters", ()).await?;
        let noted = self.lock();
        if let Some(wrong) = &noted.wrong {
            return Err(Finding::new(wrong.clone()));
        }
        for (id, n) in there {
            let answered = noted.answered.range((id, i64::MIN)..=(id, i64::MAX)).count() as i64;
            let open = noted.open.iter().filter(|of| **of == id).count() as i64;
            if n < answered || n > answered + open || noted.highest(id) > n {
                let sure = format!("{answered} additions were answered and {open} were left alone");
                return Err(Finding::new(format!("counter {id} is {n}, where {sure}")));
            }
        }
        Ok(())
    }
}
