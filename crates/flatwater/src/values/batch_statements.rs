//! The statements of a batch, with their parameters.
//!
//! Owns: keeping them by text: statements that follow each other and have one text are that text with rows of parameters, so
//! it is looked up and prepared once for all of them, and none of them costs an allocation. Invariants: statements keep their
//! order; each text has a row. Leaves out: what a text is.

use super::param_rows::ParamRows;
use super::params::ParamRow;

/// Statements that run one after the other, in one transaction.
pub struct BatchStatements<T> {
    texts: Vec<(T, ParamRows)>,
}

impl<T> Default for BatchStatements<T> {
    fn default() -> Self {
        Self { texts: Vec::new() }
    }
}

impl<T> BatchStatements<T> {
    /// Returns the rows for the parameters of the next statement, which is one row of them. `is_same` says whether its text is
    /// that of the statement before; otherwise it is what `text` returns. If a row cannot be added, the statements are of no
    /// use any more.
    pub(crate) fn rows<E>(
        &mut self,
        is_same: impl FnOnce(&T) -> bool,
        text: impl FnOnce() -> Result<T, E>,
    ) -> Result<&mut ParamRows, E> {
        if !self.texts.last().is_some_and(|(last, _)| is_same(last)) {
            self.texts.push((text()?, ParamRows::default()));
        }
        let last = self.texts.len() - 1;
        Ok(&mut self.texts[last].1)
    }

    /// The number of statements.
    pub(crate) fn len(&self) -> usize {
        self.texts.iter().map(|(_, rows)| rows.len()).sum()
    }

    /// The texts in their order, each with a row for each of its statements.
    pub(crate) fn texts(&self) -> &[(T, ParamRows)] {
        &self.texts
    }

    /// Returns the statement, if there is one only.
    pub(crate) fn only(&self) -> Option<(&T, ParamRow<'_>)> {
        let [(text, rows)] = &*self.texts else { return None };
        rows.only().map(|row| (text, row))
    }

    /// Returns the same statements with what `map` makes of each text and its rows.
    pub(crate) fn map_texts(mut self, mut map: impl FnMut(T, &ParamRows) -> T) -> Self {
        self.texts = self.texts.into_iter().map(|(text, rows)| (map(text, &rows), rows)).collect();
        self
    }

    /// Returns the same statements with what `find` makes of each text.
    pub(crate) fn find<U, E>(self, mut find: impl FnMut(T) -> Result<U, E>) -> Result<BatchStatements<U>, E> {
        let found = self.texts.into_iter().map(|(text, rows)| Ok((find(text)?, rows)));
        found.collect::<Result<_, E>>().map(|texts| BatchStatements { texts })
    }
}

#[cfg(test)]
mod tests {
    use flatwater_sqlite::Bindings;

    use super::*;
    use crate::error::Error;
    use crate::values::into_params::IntoParams;

    fn statements(texts: &[&'static str]) -> BatchStatements<&'static str> {
        let mut all = BatchStatements::default();
        for (number, text) in texts.iter().enumerate() {
            let rows = all.rows(|last| last == text, || Ok::<_, Error>(*text)).unwrap();
            (number,).add_to(rows).unwrap();
        }
        all
    }

    #[test]
    fn statements_that_follow_each_other_and_have_one_text_are_one_text() {
        for (texts, lengths) in
            [(&["a", "a", "a"][..], &[3][..]), (&["a", "b", "a", "a"], &[1, 1, 2]), (&["a"], &[1]), (&[], &[])]
        {
            let all = statements(texts);
            let found = all.texts().iter().map(|(_, rows)| rows.len()).collect::<Vec<_>>();
            assert_eq!((found.as_slice(), all.len()), (lengths, texts.len()));
            let each = all.texts().iter().flat_map(|(text, rows)| rows.rows().map(move |row| (*text, row)));
            for (number, (text, row)) in each.enumerate() {
                assert_eq!((text, row.value(0).as_i64().unwrap()), (texts[number], number as i64));
            }
            assert_eq!(all.only().is_some(), texts.len() == 1);
        }
    }

    #[test]
    fn each_text_is_found_once() {
        let mut looked = Vec::new();
        let all = statements(&["a", "a", "b", "a"]).find(|text| {
            looked.push(text);
            Ok::<_, Error>(text.to_uppercase())
        });
        let all = all.unwrap();
        assert_eq!((looked, all.len()), (vec!["a", "b", "a"], 4));
        assert!(all.texts().iter().map(|(text, _)| &**text).eq(["A", "B", "A"]));
        assert!(statements(&["a", "b"]).find(|text| if text == "b" { Err(()) } else { Ok(text) }).is_err());
    }
}
