//! The parameters of many runs of one statement.
//!
//! Owns: these parameters, as one block, so that a row costs no allocation, neither where it is made nor on the thread
//! that drops it. Invariant: rows keep their order. Leaves out: checking whether they fit the statement.

use super::block::Block;
use super::convert::ToSql;
use super::params::{ParamNames, ParamRow, Params};
use super::value::add;
use crate::error::Result;

/// Rows of parameters, each made from a type that implements [`IntoParams`](crate::IntoParams).
#[derive(Default)]
pub struct ParamRows {
    rows: usize,
    /// One form for consecutive rows that have as many values and the same names: usually one for all rows.
    forms: Vec<Form>,
    block: Block,
}

/// Consecutive rows of one form.
struct Form {
    first_row: usize,
    first_cell: usize,
    width: usize,
    names: ParamNames,
}

impl ParamRows {
    /// Adds a row of positional values.
    pub(crate) fn add<'a>(&mut self, values: impl ExactSizeIterator<Item = &'a dyn ToSql>) -> Result<()> {
        self.begin(values.len(), &None);
        for value in values {
            add(&mut self.block, value)?;
        }
        Ok(())
    }

    /// Adds a row of positional values of one type.
    pub(crate) fn add_values<T: ToSql>(&mut self, values: &[T]) -> Result<()> {
        self.add(values.iter().map(|value| value as &dyn ToSql))
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, params: &Params) {
        let row = params.row();
        self.begin(row.width, params.names());
        row.values().for_each(|value| self.block.push(value));
    }

    /// Begins a row. If its values cannot be added, the rows are of no use any more.
    fn begin(&mut self, width: usize, names: &ParamNames) {
        let is_same = |form: &Form| form.width == width && form.names == *names;
        if !self.forms.last().is_some_and(is_same) {
            let (first_row, first_cell) = (self.rows, self.block.cells());
            self.forms.push(Form { first_row, first_cell, width, names: names.clone() });
        }
        self.rows += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = ParamRow<'_>> {
        let ends = self.forms.iter().skip(1).map(|form| form.first_row).chain([self.rows]);
        self.forms.iter().zip(ends).flat_map(|(form, end)| {
            (0..end - form.first_row).map(|row| ParamRow {
                names: form.names.as_deref(),
                block: &self.block,
                first: form.first_cell + row * form.width,
                width: form.width,
            })
        })
    }

    /// Bytes of text and blob, for the limits on a group.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.block.bytes()
    }
}

/// Values stay out of debug output, as those of [`Params`] do.
impl std::fmt::Debug for ParamRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ParamRows({} rows)", self.rows)
    }
}

#[cfg(test)]
mod tests {
    use flatwater_sqlite::Bindings;

    use super::*;
    use crate::error::Kind;
    use crate::values::into_params::IntoParams;
    use crate::{named, params};

    fn rows(of: &[Params]) -> ParamRows {
        let mut rows = ParamRows::default();
        of.iter().for_each(|params| rows.push(params));
        rows
    }

    fn are_same(a: ParamRow<'_>, b: ParamRow<'_>) -> bool {
        let names = |row: ParamRow<'_>| (0..row.count()).map(|at| row.name(at).map(str::to_owned)).collect::<Vec<_>>();
        names(a) == names(b) && a.values().eq(b.values())
    }

    #[test]
    fn rows_come_back_in_their_order_whatever_they_are_made_of() {
        let wide = || params![1, "Ada", 0.5, None::<i64>, b"\0".to_vec()].unwrap();
        let named = || named! { ":id": 1, "name": "Ada" }.unwrap();
        let other = || named! { ":id": 1, "nick": "Ada" }.unwrap();
        for (of, forms) in [
            (vec![wide(), wide()], 1),
            (vec![Params::default(), Params::default()], 1),
            (vec![wide(), named(), wide()], 3),
            (vec![wide(), Params::default(), Params::default()], 2),
            (vec![named(), named(), other(), params![1, "Ada"].unwrap()], 3),
            (vec![], 0),
        ] {
            let rows = rows(&of);
            assert_eq!((rows.len(), rows.rows().count(), rows.forms.len()), (of.len(), of.len(), forms));
            assert!(rows.rows().zip(&of).all(|(row, params)| are_same(row, params.row())));
            assert_eq!(rows.heap_bytes(), of.iter().map(Params::heap_bytes).sum::<usize>());
        }
    }

    #[test]
    fn tuples_arrays_and_slices_are_added_as_they_are_and_the_same() {
        let mut added = ParamRows::default();
        ("Ada", "Eve").add_to(&mut added).unwrap();
        ["Ada", "Eve"].add_to(&mut added).unwrap();
        ["Ada", "Eve"][..].add_to(&mut added).unwrap();
        (&["Ada", "Eve"]).add_to(&mut added).unwrap();
        vec!["Ada", "Eve"].add_to(&mut added).unwrap();
        params!["Ada", "Eve"].add_to(&mut added).unwrap();
        assert_eq!((added.len(), added.forms.len()), (6, 1));
        let expected = params!["Ada", "Eve"].unwrap();
        assert!(added.rows().all(|row| are_same(row, expected.row())));
        (1,).add_to(&mut added).unwrap();
        assert!(are_same(added.rows().nth(6).unwrap(), params![1].unwrap().row()));
    }

    #[test]
    fn debug_output_shows_no_value() {
        assert_eq!(format!("{:?}", rows(&[params!["secret", 7].unwrap()])), "ParamRows(1 rows)");
    }

    #[test]
    fn a_value_that_cannot_be_stored_is_refused() {
        let refused = [(1.0, f64::NAN).add_to(&mut ParamRows::default()), [u64::MAX].add_to(&mut ParamRows::default())];
        assert!(refused.into_iter().all(|refused| refused.unwrap_err().kind() == Kind::Misuse));
    }
}
