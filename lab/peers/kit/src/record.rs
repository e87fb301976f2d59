//! Rows as typed records, and touching every field of them.
//!
//! Owns: `Record` for tuples, and the `Sum` that a consumer of rows ends with. A field is touched by adding the number
//! or the text's length and ends to the sum, so that no peer can answer rows it has not read. Leaves out: the queries.

use std::ops::AddAssign;

use anyhow::{Result, bail};

use crate::value::{Cells, Value};

/// What was seen of some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub rows: u64,
    pub cells: u64,
}

impl Sum {
    /// Touches one cell.
    pub fn add(&mut self, value: &Value<'_>) {
        match value {
            Value::Null => self.number(1),
            Value::Integer(value) => self.number(value.cast_unsigned()),
            Value::Real(value) => self.number(value.to_bits()),
            Value::Text(text) => self.bytes(text.as_bytes()),
            Value::Blob(bytes) => self.bytes(bytes),
        }
    }

    fn number(&mut self, value: u64) {
        self.cells = self.cells.wrapping_add(value);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let ends = bytes.first().map_or(0, |first| u64::from(*first) << 32)
            + bytes.last().map_or(0, |last| u64::from(*last) << 16);
        self.number(ends + bytes.len() as u64);
    }
}

/// What was seen of other rows is added.
impl AddAssign for Sum {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.number(other.cells);
    }
}

/// A row of known types: tuples of fields are.
pub trait Record: Sized + Clone + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    /// How many columns it has.
    const COLUMNS: usize;

    /// Reads it from a row.
    fn read(cells: &impl Cells) -> Result<Self>;

    /// Touches every field.
    fn touch(&self, sum: &mut Sum);
}

/// One column of a record.
pub trait Field: Sized + Clone + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    fn from_cell(value: Value<'_>) -> Result<Self>;
    fn touch(&self, sum: &mut Sum);
}

macro_rules! field {
    ($type:ty, $variant:ident, $value:ident => $read:expr, $kept:ident => $touch:expr) => {
        impl Field for $type {
            fn from_cell(value: Value<'_>) -> Result<Self> {
                match value {
                    Value::$variant($value) => Ok($read),
                    other => bail!("expected {} and found {other:?}", stringify!($variant)),
                }
            }

            fn touch(&self, sum: &mut Sum) {
                let $kept = self;
                $touch(sum)
            }
        }
    };
}

field!(i64, Integer, value => value, kept => |sum: &mut Sum| sum.number(kept.cast_unsigned()));
field!(f64, Real, value => value, kept => |sum: &mut Sum| sum.number(kept.to_bits()));
field!(String, Text, text => text.into_owned(), kept => |sum: &mut Sum| sum.bytes(kept.as_bytes()));
field!(Vec<u8>, Blob, bytes => bytes.into_owned(), kept => |sum: &mut Sum| sum.bytes(kept));

impl<T: Field> Field for Option<T> {
    fn from_cell(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Null => Ok(None),
            value => T::from_cell(value).map(Some),
        }
    }

    fn touch(&self, sum: &mut Sum) {
        match self {
            None => sum.add(&Value::Null),
            Some(value) => value.touch(sum),
        }
    }
}

macro_rules! records {
    ($count:literal $($name:ident $position:tt)+) => {
        impl<$($name: Field),+> Record for ($($name,)+) {
            const COLUMNS: usize = $count;

            fn read(cells: &impl Cells) -> Result<Self> {
                Ok(($($name::from_cell(cells.cell($position)?)?,)+))
            }

            fn touch(&self, sum: &mut Sum) {
                sum.rows += 1;
                $(self.$position.touch(sum);)+
            }
        }
    };
}

records!(1 A 0);
records!(2 A 0 B 1);
records!(3 A 0 B 1 C 2);
records!(4 A 0 B 1 C 2 D 3);
records!(5 A 0 B 1 C 2 D 3 E 4);
records!(6 A 0 B 1 C 2 D 3 E 4 F 5);
records!(7 A 0 B 1 C 2 D 3 E 4 F 5 G 6);

/// Rows that are all alike and too wide for a tuple.
#[derive(Debug, Clone, PartialEq)]
pub struct Wide<const N: usize>(pub [Value<'static>; N]);

impl<const N: usize> Record for Wide<N> {
    const COLUMNS: usize = N;

    fn read(cells: &impl Cells) -> Result<Self> {
        let mut values = [const { Value::Null }; N];
        for (at, value) in values.iter_mut().enumerate() {
            *value = cells.cell(at)?.into_owned();
        }
        Ok(Self(values))
    }

    fn touch(&self, sum: &mut Sum) {
        sum.rows += 1;
        self.0.iter().for_each(|value| sum.add(value));
    }
}

/// Touches every field of some records: what a lane expects of rows whose content it knows.
#[must_use]
pub fn sum_of<R: Record>(records: &[R]) -> Sum {
    let mut sum = Sum::default();
    records.iter().for_each(|record| record.touch(&mut sum));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_tells_different_rows_apart() {
        let one = sum_of(&[(1_i64, "Ada".to_owned(), Some(0.5))]);
        assert_eq!(one, sum_of(&[(1_i64, "Ada".to_owned(), Some(0.5))]));
        for other in [(2, "Ada", Some(0.5)), (1, "Eve", Some(0.5)), (1, "Adaa", Some(0.5)), (1, "Ada", None)] {
            assert_ne!(one, sum_of(&[(other.0, other.1.to_owned(), other.2)]));
        }
    }

    #[test]
    fn a_cell_of_another_type_is_an_error() {
        assert!(<(i64,)>::read(&vec![Value::from("one")]).is_err());
        assert_eq!(<(Option<i64>,)>::read(&vec![Value::Null]).unwrap(), (None,));
        assert!(<(i64, i64)>::read(&vec![Value::from(1)]).is_err());
    }
}
