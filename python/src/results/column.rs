//! One column of a result that is kept by columns. Pure.
//!
//! Owns: the type of a column, which its values decide. Runs on the thread that adds rows; what is complete is read on any
//! thread. Invariants: the chunk that grows has the type of the column; a value is kept unchanged or refused, and a text is
//! UTF-8. Leaves out: the memory of the values (`chunk`), when a chunk ends (`columns`).
//!
//! A column of integers becomes one of floats with its first float, if a float equals each of the integers. Chunks that
//! ended before that, or before the first value, are converted at the end.

use flatwater::ValueRef;

use crate::results::chunk::{Chunk, Values};

pub(crate) struct Column {
    /// Those that have ended.
    pub(crate) chunks: Vec<Chunk>,
    open: Chunk,
    /// The row of the first value of the column's type.
    first: usize,
    /// The row of the first integer that no float equals.
    inexact: Option<usize>,
    /// The type that it has if it has no values.
    declared: Values,
}

/// Why a value cannot be in the column. The rows are numbered from 0.
pub(crate) enum Refused {
    /// The type of the column, and of the value, each with its row.
    Type([(&'static str, usize); 2]),
    /// The row of a float, and of an integer that no float equals.
    Inexact {
        real: usize,
        integer: usize,
    },
    NotUtf8,
    TooLong,
}

/// Returns true if a float equals the integer.
#[inline]
fn is_exact(value: i64) -> bool {
    // The greatest integer rounds up to a float that is beyond all integers.
    value.unsigned_abs() <= 1 << 53 || (value != i64::MAX && value as f64 as i64 == value)
}

impl Column {
    /// A column that was declared as this in its table, if it is of a table.
    pub(crate) fn new(declared: Option<&str>) -> Self {
        let declared = declared.map_or(Values::Nulls, Values::of_declared);
        Self { chunks: Vec::new(), open: Chunk::default(), first: 0, inexact: None, declared }
    }

    /// Adds the value of a row.
    #[inline]
    pub(crate) fn push(&mut self, row: usize, value: ValueRef<'_>) -> Result<(), Refused> {
        match (&mut self.open.values, value) {
            (_, ValueRef::Null) => {
                self.open.null();
                return Ok(());
            }
            (Values::Integers(all), ValueRef::Integer(value)) => {
                all.push(value);
                if !is_exact(value) {
                    self.inexact.get_or_insert(row);
                }
            }
            (Values::Reals(all), ValueRef::Real(value)) => all.push(value),
            (Values::Reals(all), ValueRef::Integer(value)) if is_exact(value) => all.push(value as f64),
            (Values::Texts(all), ValueRef::Text(value)) => {
                if std::str::from_utf8(value).is_err() {
                    return Err(Refused::NotUtf8);
                }
                if !all.push(value) {
                    return Err(Refused::TooLong);
                }
            }
            (Values::Blobs(all), ValueRef::Blob(value)) => {
                if !all.push(value) {
                    return Err(Refused::TooLong);
                }
            }
            _ => return self.push_other(row, value),
        }
        self.open.added();
        Ok(())
    }

    /// Adds a value of another type than the column has, if there is a type for both.
    #[cold]
    fn push_other(&mut self, row: usize, value: ValueRef<'_>) -> Result<(), Refused> {
        let other = Values::of(value);
        match (&self.open.values, &other, self.inexact) {
            (Values::Nulls, ..) | (Values::Integers(_), Values::Reals(_), None) => {
                self.first = row;
                self.open.convert(&other);
                self.push(row, value)
            }
            (Values::Integers(_), Values::Reals(_), Some(integer)) => Err(Refused::Inexact { real: row, integer }),
            (Values::Reals(_), Values::Integers(_), _) => Err(Refused::Inexact { real: self.first, integer: row }),
            (own, ..) => Err(Refused::Type([(own.name(), self.first), (other.name(), row)])),
        }
    }

    /// The bytes of the texts or blobs in the chunk that grows.
    #[inline]
    pub(crate) fn open_bytes(&self) -> usize {
        match &self.open.values {
            Values::Texts(bytes) | Values::Blobs(bytes) => bytes.bytes.len(),
            _ => 0,
        }
    }

    /// Ends the chunk that grows.
    pub(crate) fn end_chunk(&mut self) {
        let next = Chunk { values: self.open.values.same(), ..Chunk::default() };
        self.chunks.push(std::mem::replace(&mut self.open, next));
    }

    /// The type of the column.
    pub(crate) fn values(&self) -> &Values {
        &self.open.values
    }

    /// Gives a column without values the type that it was declared as.
    pub(crate) fn prefer_declared(&mut self) {
        if matches!(self.open.values, Values::Nulls) {
            self.open.convert(&self.declared);
        }
    }

    /// Gives a chunk that has ended the type of the column. Returns false if it has it.
    pub(crate) fn convert(&mut self, chunk: usize) -> bool {
        let chunk = &mut self.chunks[chunk];
        let differs = std::mem::discriminant(&chunk.values) != std::mem::discriminant(&self.open.values);
        if differs {
            chunk.convert(&self.open.values);
        }
        differs
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.iter().map(Chunk::bytes).sum::<usize>() + self.open.bytes()
    }

    /// The values of the chunks that have ended.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ValueRef<'_>> {
        self.chunks.iter().flat_map(|chunk| (0..chunk.rows).map(|row| chunk.get(row)))
    }
}
