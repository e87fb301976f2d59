//! The difference of two results whose rows have a key. Pure.
//!
//! Owns: finding the rows that came, changed and went, and the rows with equal keys. Runs on the thread that delivers
//! the new result, in a time that grows with the number of rows. Invariant: the old rows without those that went, and with those that came and
//! changed, are the new rows, in some order. Leaves out: which columns are the key (`dependencies::tables`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

use rusqlite::types::ValueRef;

use super::block::Block;
use super::row::Rows;
use crate::growth_counter::step;

/// The rows in which a new result differs from an old one, by their positions there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Positions in the new result.
    pub inserted: Vec<usize>,
    /// Positions in the old result and in the new one.
    pub updated: Vec<(usize, usize)>,
    /// Positions in the old result.
    pub deleted: Vec<usize>,
}

/// Two rows of a result have the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated;

impl Difference {
    /// Both results have the same columns, and no two rows of the old one have the same key.
    pub fn between(old: &Rows, new: &Rows, key: &[usize]) -> Result<Self, Repeated> {
        let found = by_key(new, key)?;
        let mut is_old = vec![false; new.len()];
        let mut difference = Self::default();
        for before in 0..old.len() {
            match found.get(&RowKey::of(old, before, key)) {
                None => difference.deleted.push(before),
                Some(&after) => {
                    is_old[after] = true;
                    if (0..new.names.len()).any(|column| old.value(before, column) != new.value(after, column)) {
                        difference.updated.push((before, after));
                    }
                }
            }
        }
        difference.inserted = (0..new.len()).filter(|row| !is_old[*row]).collect();
        Ok(difference)
    }

    /// Returns true if the results are equal.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Checks that no two rows have the same key.
pub fn check(rows: &Rows, key: &[usize]) -> Result<(), Repeated> {
    by_key(rows, key).map(drop)
}

fn by_key<'a>(rows: &'a Rows, columns: &'a [usize]) -> Result<HashMap<RowKey<'a>, usize>, Repeated> {
    let mut found = HashMap::with_capacity(rows.len());
    for row in 0..rows.len() {
        match found.entry(RowKey::of(rows, row, columns)) {
            Entry::Vacant(place) => place.insert(row),
            Entry::Occupied(_) => return Err(Repeated),
        };
    }
    Ok(found)
}

/// The key of a row. Values are equal if their type and their bytes are; NULL equals NULL.
struct RowKey<'a> {
    block: &'a Block,
    /// The first cell of the row.
    first: usize,
    columns: &'a [usize],
}

impl<'a> RowKey<'a> {
    fn of(rows: &'a Rows, row: usize, columns: &'a [usize]) -> Self {
        Self { block: &rows.block, first: row * rows.names.len(), columns }
    }

    fn values(&self) -> impl Iterator<Item = ValueRef<'a>> {
        let (block, first) = (self.block, self.first);
        self.columns.iter().map(move |column| block.value(first + column))
    }
}

impl Hash for RowKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for value in self.values() {
            step(1);
            std::mem::discriminant(&value).hash(state);
            match value {
                ValueRef::Null => {}
                ValueRef::Integer(value) => value.hash(state),
                ValueRef::Real(value) => value.to_bits().hash(state),
                ValueRef::Text(value) | ValueRef::Blob(value) => value.hash(state),
            }
        }
    }
}

impl PartialEq for RowKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.values().zip(other.values()).inspect(|_| step(1)).all(|values| match values {
            (ValueRef::Real(one), ValueRef::Real(other)) => one.to_bits() == other.to_bits(),
            (one, other) => one == other,
        })
    }
}

impl Eq for RowKey<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::column::ColumnNames;

    fn rows(values: &[ValueRef<'_>], columns: usize) -> Rows {
        let mut block = Block::default();
        values.iter().for_each(|value| block.push(*value));
        let sources = vec![flatwater_sqlite::ColumnSource::default(); columns];
        Rows { names: ColumnNames::new(vec!["c".into(); columns], sources, "SELECT".into()), block }
    }

    fn integers(values: &[[i64; 2]]) -> Rows {
        rows(&values.iter().flatten().map(|value| ValueRef::Integer(*value)).collect::<Vec<_>>(), 2)
    }

    #[test]
    fn rows_come_change_and_go() {
        let (old, new) = (integers(&[[1, 10], [2, 20], [3, 30]]), integers(&[[4, 40], [3, 30], [2, 21], [5, 50]]));
        let difference = Difference::between(&old, &new, &[0]).unwrap();
        assert_eq!(difference, Difference { inserted: vec![0, 3], updated: vec![(1, 2)], deleted: vec![0] });
        let both = Difference::between(&old, &new, &[0, 1]).unwrap();
        assert_eq!(both, Difference { inserted: vec![0, 2, 3], updated: vec![], deleted: vec![0, 1] });
    }

    #[test]
    fn order_is_no_difference_and_an_empty_result_is_one() {
        let (old, new) = (integers(&[[1, 10], [2, 20]]), integers(&[[2, 20], [1, 10]]));
        assert!(Difference::between(&old, &new, &[0]).unwrap().is_empty());
        assert!(Difference::between(&integers(&[]), &integers(&[]), &[0]).unwrap().is_empty());
        assert_eq!(Difference::between(&old, &integers(&[]), &[0]).unwrap().deleted, [0, 1]);
        assert_eq!(Difference::between(&integers(&[]), &new, &[0]).unwrap().inserted, [0, 1]);
    }

    #[test]
    fn equal_keys_are_found_anywhere_in_the_new_result() {
        let old = integers(&[[1, 10], [2, 20]]);
        for repeated in [integers(&[[1, 10], [2, 20], [1, 10]]), integers(&[[3, 1], [3, 2]])] {
            assert_eq!(Difference::between(&old, &repeated, &[0]), Err(Repeated));
            assert_eq!(check(&repeated, &[0]), Err(Repeated));
        }
        assert_eq!(check(&integers(&[[3, 1], [3, 2]]), &[0, 1]), Ok(()));
    }

    #[test]
    fn keys_of_different_types_differ_and_null_equals_null() {
        let alike = [
            ValueRef::Null,
            ValueRef::Integer(0),
            ValueRef::Real(0.0),
            ValueRef::Real(-0.0),
            ValueRef::Text(b""),
            ValueRef::Blob(b""),
            ValueRef::Text(b"0"),
            ValueRef::Blob(b"0"),
        ];
        let all = rows(&alike, 1);
        assert!(Difference::between(&all, &all, &[0]).unwrap().is_empty());
        assert_eq!(check(&rows(&[ValueRef::Null, ValueRef::Null], 1), &[0]), Err(Repeated));
    }

    #[test]
    fn the_parts_of_a_key_do_not_run_into_each_other() {
        let parts = [ValueRef::Text(b"a"), ValueRef::Text(b"bc"), ValueRef::Text(b"ab"), ValueRef::Text(b"c")];
        assert_eq!(check(&rows(&parts, 2), &[0, 1]), Ok(()));
    }
}
