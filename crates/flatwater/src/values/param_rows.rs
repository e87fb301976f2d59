//! The parameters of many runs of one statement.
//!
//! Owns: these parameters, as one block, so that a row costs no allocation, neither where it is made nor on the thread
//! that drops it. Invariant: rows keep their order. Leaves out: checking whether they fit the statement.

use flatwater_sqlite::Bindings;
use rusqlite::types::{ToSql, Value, ValueRef};

use super::block::Block;
use super::params::Params;
use super::value::with_value;
use crate::error::Result;

/// Rows of parameters, each made from a type that implements [`IntoParams`](crate::IntoParams).
pub struct ParamRows(Form);

enum Form {
    /// Positional parameters, `width` values in each row.
    Block { width: usize, rows: usize, block: Block },
    /// All other rows: named parameters, or rows of different lengths.
    Each(Vec<Params>),
}

impl ParamRows {
    pub(crate) fn new() -> Self {
        Self(Form::Block { width: 0, rows: 0, block: Block::default() })
    }

    /// Adds a row of positional values.
    pub(crate) fn add<'a>(&mut self, values: impl ExactSizeIterator<Item = &'a dyn ToSql>) -> Result<()> {
        let given = values.len();
        match &mut self.0 {
            Form::Block { width, rows, block } if *rows == 0 || *width == given => {
                for value in values {
                    with_value(value, |value| block.push(value))?;
                }
                (*width, *rows) = (given, *rows + 1);
            }
            _ => self.each().push(Params::positional(values)?),
        }
        Ok(())
    }

    /// Adds a row of positional values of one type.
    pub(crate) fn add_values<T: ToSql>(&mut self, values: &[T]) -> Result<()> {
        self.add(values.iter().map(|value| value as &dyn ToSql))
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, params: Params) -> Result<()> {
        match params.positional_values() {
            Some(values) => self.add_values(values),
            None => {
                self.each().push(params);
                Ok(())
            }
        }
    }

    /// Returns the rows as separate parameters, after converting the block if needed.
    fn each(&mut self) -> &mut Vec<Params> {
        if let Form::Block { rows, .. } = &self.0 {
            self.0 = Form::Each((0..*rows).map(|row| self.params(row)).collect());
        }
        match &mut self.0 {
            Form::Each(rows) => rows,
            Form::Block { .. } => unreachable!("it was replaced above"),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Form::Block { rows, .. } => *rows,
            Form::Each(rows) => rows.len(),
        }
    }

    /// Returns the values of a row, using `values` as the buffer.
    pub(crate) fn bindings<'a, 'b>(&'a self, row: usize, values: &'b mut Vec<ValueRef<'a>>) -> Bindings<'b>
    where
        'a: 'b,
    {
        match &self.0 {
            Form::Block { width, block, .. } => {
                values.clear();
                values.extend((row * width..(row + 1) * width).map(|cell| block.value(cell)));
                Bindings::Borrowed(values)
            }
            Form::Each(rows) => rows[row].bindings(),
        }
    }

    /// Returns a copy of one row.
    pub(crate) fn params(&self, row: usize) -> Params {
        match &self.0 {
            Form::Block { width, block, .. } => {
                let own = |cell| match block.value(cell) {
                    ValueRef::Null => Value::Null,
                    ValueRef::Integer(value) => Value::Integer(value),
                    ValueRef::Real(value) => Value::Real(value),
                    // The values were valid when they were added; a value that does not fit into a block is too long
                    // for SQLite anyway.
                    ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                    ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
                };
                Params::owned((row * width..(row + 1) * width).map(own).collect())
            }
            Form::Each(rows) => rows[row].clone(),
        }
    }

    /// Bytes of text and blob, for the limits on a group.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.0 {
            Form::Block { block, .. } => block.bytes(),
            Form::Each(rows) => rows.iter().map(Params::heap_bytes).sum(),
        }
    }
}

/// Values stay out of debug output, as those of [`Params`] do.
impl std::fmt::Debug for ParamRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ParamRows({} rows)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::values::into_params::IntoParams;
    use crate::{named, params};

    fn rows(of: Vec<Params>) -> ParamRows {
        let mut rows = ParamRows::new();
        of.into_iter().for_each(|params| rows.push(params).unwrap());
        rows
    }

    fn is_block(rows: &ParamRows) -> bool {
        matches!(rows.0, Form::Block { .. })
    }

    #[test]
    fn rows_come_back_in_their_order_whatever_they_are_made_of() {
        let wide = || params![1, "Ada", 0.5, None::<i64>, b"\0".to_vec()].unwrap();
        let named = || named! { ":id": 1, "name": "Ada" }.unwrap();
        for (of, block) in [
            (vec![wide(), wide()], true),
            (vec![Params::default(), Params::default()], true),
            (vec![wide(), named(), wide()], false),
            (vec![wide(), Params::default()], false),
            (vec![named(), named()], false),
        ] {
            let rows = rows(of.clone());
            assert_eq!((rows.len(), is_block(&rows)), (of.len(), block));
            assert!((0..rows.len()).all(|row| rows.params(row) == of[row]));
            assert_eq!(rows.heap_bytes(), of.iter().map(Params::heap_bytes).sum::<usize>());
        }
    }

    #[test]
    fn tuples_arrays_and_slices_are_added_as_they_are_and_the_same() {
        let mut added = ParamRows::new();
        ("Ada", "Eve").add_to(&mut added).unwrap();
        ["Ada", "Eve"].add_to(&mut added).unwrap();
        ["Ada", "Eve"][..].add_to(&mut added).unwrap();
        (&["Ada", "Eve"]).add_to(&mut added).unwrap();
        vec!["Ada", "Eve"].add_to(&mut added).unwrap();
        params!["Ada", "Eve"].add_to(&mut added).unwrap();
        assert!(is_block(&added));
        let expected = params!["Ada", "Eve"].unwrap();
        assert!((0..6).all(|row| added.params(row) == expected));
        (1,).add_to(&mut added).unwrap();
        assert_eq!((added.len(), added.params(6)), (7, params![1].unwrap()));
    }

    #[test]
    fn debug_output_shows_no_value() {
        assert_eq!(format!("{:?}", rows(vec![params!["secret", 7].unwrap()])), "ParamRows(1 rows)");
    }

    #[test]
    fn a_value_that_cannot_be_stored_is_refused() {
        for refused in [(1.0, f64::NAN).add_to(&mut ParamRows::new()), [u64::MAX].add_to(&mut ParamRows::new())] {
            assert_eq!(refused.unwrap_err().kind(), Kind::Misuse);
        }
    }
}
