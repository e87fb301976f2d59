//! What a subscriber is told of a result, which depends on what its consumer has.
//!
//! Owns: the comparison with the result that the consumer took last. Runs on the thread that ran the query, without a lock of
//! the live queries, and takes a time that grows with the number of rows. Invariant: the result that was told in full last,
//! with the differences that were told after it, is the newest one that was taken. Leaves out: the difference of two results
//! (`values::difference`), and where a result waits to be taken (`subscriber`).

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use flatwater_base::error::Result;
use flatwater_base::values::difference::{Difference, Repeated, check};
use flatwater_base::values::row::Rows;
use flatwater_sql::dependencies::tables::PrimaryKeys;

/// The results of all statements of a live query.
pub(crate) type Results = Arc<[Arc<Rows>]>;

/// The positions of the columns that are a result's key.
pub(crate) type KeyColumns = Box<[usize]>;

/// One result of a live query, or why there is none.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) result: Result<Results>,
    /// For each statement: the keys of the tables that it read. None after an error.
    pub(crate) keys: Arc<[Arc<PrimaryKeys>]>,
    /// The number of the last commit whose effect it surely has.
    pub(crate) commit: u64,
    /// When it became known.
    pub(crate) at: Instant,
    /// The results of a live query are counted, from 1.
    pub(super) version: u64,
    /// The first statement in whose result two rows have the same key. Unknown before one was compared.
    pub(super) repeated: Arc<OnceLock<Option<usize>>>,
}

/// What a subscriber is told of a delivery.
#[derive(Debug, Clone)]
pub(crate) enum Update {
    /// The whole of it, which may be an error.
    All,
    /// For each statement, if the subscriber gets differences.
    Changes(Arc<[PartUpdate]>),
    /// The result of the statement at this position has no key.
    NoKey(usize),
    /// Two rows of the result at this position have the same key.
    Repeated(usize, KeyColumns),
}

/// What it is told of the result of one statement.
#[derive(Debug, Clone)]
pub(crate) enum PartUpdate {
    Full,
    /// From this result, which the consumer has. It may be empty.
    Difference(Arc<Rows>, Arc<Difference>),
}

/// What a consumer has: what it took last.
#[derive(Debug, Clone, Default)]
pub(super) enum Has {
    /// Nothing, or an error.
    #[default]
    Nothing,
    /// For each result its key, if the consumer gets differences.
    Results(Results, Arc<[KeyColumns]>),
    /// The error that two rows have the same key.
    Repeated,
}

/// What a consumer is told of a delivery, if anything, and what it has then.
#[derive(Debug, Clone)]
pub(super) struct Compared {
    pub(super) update: Option<Update>,
    pub(super) then: Has,
}

impl Has {
    /// What a consumer has that took the whole delivery.
    pub(super) fn all_of(delivery: &Delivery) -> Self {
        delivery.result.as_ref().map_or(Self::Nothing, |results| Self::Results(results.clone(), Arc::default()))
    }

    /// Returns true if it is the same, not only equal.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, Self::Nothing) | (Self::Repeated, Self::Repeated) => true,
            (Self::Results(one, keys), Self::Results(other, others)) => Arc::ptr_eq(one, other) && keys == others,
            _ => false,
        }
    }

    /// Returns true if a small result is compared with it in microseconds.
    pub(super) fn is_small(&self) -> bool {
        if let Self::Results(results, _) = self { are_small(results) } else { true }
    }

    /// Returns the result of the statement at this position, if it has these columns and this key.
    fn comparable(&self, at: usize, new: &Rows, key: &KeyColumns) -> Option<&Arc<Rows>> {
        let Self::Results(results, keys) = self else { return None };
        let old = results.get(at).filter(|old| old.names == new.names)?;
        (keys.get(at) == Some(key)).then_some(old)
    }
}

/// Returns true if comparing them takes microseconds.
fn are_small(results: &Results) -> bool {
    results.iter().all(|rows| rows.is_small())
}

impl Delivery {
    /// Returns true if a small result is compared with it in microseconds.
    pub(super) fn is_small(&self) -> bool {
        self.result.as_ref().is_ok_and(are_small)
    }

    /// Returns what a consumer that has `has` is told of this, or `None` if that would take long.
    pub(super) fn at_once(&self, has: &Has, gets_differences: bool) -> Option<Compared> {
        let is_known = match has {
            _ if self.result.is_err() => true,
            Has::Nothing | Has::Repeated => !gets_differences || self.repeated.get().is_some(),
            Has::Results(..) => false,
        };
        is_known.then(|| self.compare(has, gets_differences))
    }

    /// Returns what a consumer that has `has` is told of this.
    pub(super) fn compare(&self, has: &Has, gets_differences: bool) -> Compared {
        match (&self.result, has) {
            (Ok(results), _) if gets_differences => self.differences(results, has),
            (Ok(new), Has::Results(old, _)) if old == new => Compared { update: None, then: Has::all_of(self) },
            _ => Compared { update: Some(Update::All), then: Has::all_of(self) },
        }
    }

    fn differences(&self, results: &Results, has: &Has) -> Compared {
        let mut keys: Vec<KeyColumns> = Vec::with_capacity(results.len());
        for (at, (rows, keys_read)) in results.iter().zip(&*self.keys).enumerate() {
            match keys_read.of_result(rows.names.sources()) {
                Some(key) => keys.push(key),
                None => return Compared { update: Some(Update::NoKey(at)), then: Has::Nothing },
            }
        }
        let mut parts = Vec::with_capacity(results.len());
        for (at, (new, key)) in results.iter().zip(&keys).enumerate() {
            match self.part(at, new, key, has) {
                Ok(part) => parts.push(part),
                Err(Repeated) => {
                    let _ = self.repeated.set(Some(at));
                    let update = (!matches!(has, Has::Repeated)).then(|| Update::Repeated(at, key.clone()));
                    return Compared { update, then: Has::Repeated };
                }
            }
        }
        let _ = self.repeated.set(None);
        let is_nothing =
            |part: &PartUpdate| matches!(part, PartUpdate::Difference(_, difference) if difference.is_empty());
        let update = (!parts.iter().all(is_nothing)).then(|| Update::Changes(parts.into()));
        Compared { update, then: Has::Results(results.clone(), keys.into()) }
    }

    fn part(&self, at: usize, new: &Arc<Rows>, key: &KeyColumns, has: &Has) -> Result<PartUpdate, Repeated> {
        let found = self.repeated.get().copied();
        if found == Some(Some(at)) {
            return Err(Repeated);
        }
        match has.comparable(at, new, key) {
            Some(old) if Arc::ptr_eq(old, new) => Ok(PartUpdate::Difference(old.clone(), Arc::default())),
            Some(old) => Ok(PartUpdate::Difference(old.clone(), Difference::between(old, new, key)?.into())),
            None if found == Some(None) => Ok(PartUpdate::Full),
            None => check(new, key).map(|()| PartUpdate::Full),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use flatwater_sqlite::{ColumnOrigin, ColumnSource};
    use rusqlite::types::ValueRef;

    use super::*;
    use flatwater_base::error::{Error, ErrorCode};
    use flatwater_base::values::block::Block;
    use flatwater_base::values::column::ColumnNames;
    use flatwater_sql::dependencies::tables::{Kind, Table, Tables};

    /// A delivery of results of `SELECT id, a FROM t`.
    pub(in super::super) fn delivery(version: u64, results: &[&[[i64; 2]]]) -> Delivery {
        let table = Table { primary_key: vec!["id".into()], ..Table::of(Kind::Rowid, 2) };
        let tables = Tables { tables: [("t".into(), table)].into(), ..Tables::default() };
        let source = |column: &str| {
            let origin = ColumnOrigin { database: "main".into(), table: "t".into(), column: column.into() };
            ColumnSource { declared_type: None, origin: Some(origin) }
        };
        let rows = |values: &&[[i64; 2]]| {
            let mut block = Block::default();
            values.iter().flatten().for_each(|value| block.push(ValueRef::Integer(*value)));
            let sources = vec![source("id"), source("a")];
            let names = ColumnNames::new(vec!["id".into(), "a".into()], sources, "SELECT id, a FROM t".into());
            Arc::new(Rows { names, block })
        };
        let keys = results.iter().map(|_| Arc::new(PrimaryKeys::of(&tables))).collect();
        let result = Ok(results.iter().map(rows).collect());
        Delivery { result, keys, commit: 0, at: Instant::now(), version, repeated: Arc::default() }
    }

    #[test]
    fn what_takes_no_comparison_is_known_at_once() {
        let first = delivery(1, &[&[[1, 10]]]);
        assert!(first.at_once(&Has::Nothing, false).is_some());
        assert!(first.at_once(&Has::Nothing, true).is_none(), "nobody has looked at its keys");
        let then = first.compare(&Has::Nothing, true).then;
        assert!(matches!(first.at_once(&Has::Nothing, true).unwrap().update, Some(Update::Changes(_))));
        let second = delivery(2, &[&[[1, 11]]]);
        assert!(second.at_once(&then, true).is_none() && second.at_once(&Has::all_of(&first), false).is_none());
        let error = Delivery { result: Err(Error::new(ErrorCode::InvalidArgument, "no table")), ..delivery(3, &[]) };
        let update = error.at_once(&then, true).unwrap();
        assert!(matches!((update.update, update.then), (Some(Update::All), Has::Nothing)));
    }

    #[test]
    fn other_columns_or_another_key_come_in_full() {
        let then = delivery(1, &[&[[1, 10]]]).compare(&Has::Nothing, true).then;
        let update = |new: &Delivery| match new.compare(&then, true).update {
            Some(Update::Changes(parts)) => matches!(parts[0], PartUpdate::Full),
            other => panic!("{other:?}"),
        };
        assert!(!update(&delivery(2, &[&[[1, 11]]])));
        let Has::Results(results, keys) = &then else { panic!("{then:?}") };
        let by_both = Has::Results(results.clone(), [Box::from([0, 1])].into());
        assert!(!by_both.is(&then) && Has::Results(results.clone(), keys.clone()).is(&then));
        let another = delivery(2, &[&[[1, 11]]]).compare(&by_both, true).update;
        assert!(matches!(another, Some(Update::Changes(parts)) if matches!(parts[0], PartUpdate::Full)));
        let mut named = delivery(2, &[&[[1, 11]]]);
        let rows = Rows {
            names: ColumnNames::new(vec!["id".into(), "b".into()], results[0].names.sources().to_vec(), "".into()),
            ..(*results[0]).clone()
        };
        named.result = Ok([Arc::new(rows)].into());
        assert!(update(&named));
        let no_key = Delivery { keys: [Arc::default()].into(), ..delivery(2, &[&[[1, 11]]]) };
        assert!(matches!(no_key.compare(&then, true).update, Some(Update::NoKey(0))));
    }
}
