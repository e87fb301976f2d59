//! The parameters of many runs of one statement, and those of the statements of a batch.
//!
//! Owns: these parameters, as blocks of many rows, so that a row costs no allocation, neither where it is made nor on
//! the thread that drops it. Statements of a batch that follow each other and have one text are that text with rows of parameters, so
//! it is looked up and prepared once for all of them. Invariants: rows and statements keep their order; each text has a row; no block
//! grows beyond a limit, because growing a large one would copy all of it in one go, on a thread that must not be held up. Leaves
//! out: checking whether parameters fit the statement, and what a text is.

use rusqlite::types::ValueRef;

use super::block::{Block, keep_spare, take_spare};
use super::params::{ParamNames, ParamRow, Params};

/// Rows of parameters, each made from a type that implements [`IntoParams`](crate::values::IntoParams).
#[derive(Default)]
pub struct ParamRows {
    rows: usize,
    /// The number of the first row, in errors.
    #[doc(hidden)]
    pub first_number: usize,
    /// In order; at least one for each change of the form.
    parts: Vec<Part>,
}

/// Consecutive rows that have as many values and the same names.
struct Part {
    rows: usize,
    width: usize,
    names: ParamNames,
    block: Block,
}

/// A part gets no further row that would make it longer than this many cells, or once it has this many bytes. These
/// cells take 64 KiB, which allocators take from memory that they have; larger blocks are often mapped anew, with a page
/// fault for every 4 KiB.
const FULL_CELLS: usize = 4_096;
const FULL_BYTES: usize = 1 << 20;
/// A row that has this many bytes, and is given as a block of its own, stays one.
const LONG_BYTES: usize = 16 << 10;

impl Part {
    fn has_form(&self, width: usize, names: &ParamNames) -> bool {
        self.width == width && self.names == *names
    }

    fn is_full(&self) -> bool {
        self.block.cells() + self.width > FULL_CELLS || self.block.bytes() >= FULL_BYTES
    }
}

impl ParamRows {
    /// Adds a row.
    #[doc(hidden)]
    pub fn push(&mut self, params: &Params) {
        let row = params.row();
        let block = self.begin(row.width, params.names());
        row.values().for_each(|value| block.push(value));
    }

    /// Adds a row, whose long values are not copied.
    #[doc(hidden)]
    pub fn take(&mut self, params: Params) {
        if params.heap_bytes() < LONG_BYTES {
            return self.push(&params);
        }
        self.rows += 1;
        let (width, names) = (params.row().width, params.names().clone());
        self.parts.push(Part { rows: 1, width, names, block: params.into_block() });
    }

    /// Adds a row of this many values without names, which SQLite stores unchanged.
    #[doc(hidden)]
    pub fn push_values<'a>(&mut self, width: usize, values: impl Iterator<Item = ValueRef<'a>>) {
        let block = self.begin(width, &None);
        values.for_each(|value| block.push(value));
    }

    /// Begins a row, and returns the block for its values. If its values cannot be added, the rows are of no use any more.
    #[inline]
    pub(super) fn begin(&mut self, width: usize, names: &ParamNames) -> &mut Block {
        let has_room = |part: &Part| part.has_form(width, names) && !part.is_full();
        if !self.parts.last().is_some_and(has_room) {
            self.begin_part(width, names);
        }
        self.rows += 1;
        let last = self.parts.len() - 1;
        let part = &mut self.parts[last];
        part.rows += 1;
        &mut part.block
    }

    #[cold]
    fn begin_part(&mut self, width: usize, names: &ParamNames) {
        // After a full part of the same form another full one is likely.
        let full = self.parts.last().filter(|part| part.has_form(width, names));
        let block = match full.map(|part| (part.block.cells(), part.block.bytes())) {
            Some((cells, bytes)) => take_spare().unwrap_or_else(|| Block::with_room(cells, bytes)),
            None => Block::default(),
        };
        self.parts.push(Part { rows: 0, width, names: names.clone(), block });
    }

    #[doc(hidden)]
    pub fn len(&self) -> usize {
        self.rows
    }

    #[doc(hidden)]
    pub fn rows(&self) -> impl Iterator<Item = ParamRow<'_>> {
        self.parts.iter().flat_map(|part| {
            let Part { width, names, block, .. } = part;
            (0..part.rows).map(move |row| ParamRow {
                names: names.as_deref().map(Vec::as_slice),
                block,
                first: row * width,
                width: *width,
            })
        })
    }

    /// Returns the row, if there is one only.
    #[doc(hidden)]
    pub fn only(&self) -> Option<ParamRow<'_>> {
        let mut rows = self.rows();
        rows.next().filter(|_| rows.next().is_none())
    }

    /// Bytes of text and blob, for the limits on a group.
    #[doc(hidden)]
    pub fn heap_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.block.bytes()).sum()
    }
}

/// The blocks of a long list are for the next one: as many as that takes.
impl Drop for ParamRows {
    fn drop(&mut self) {
        if self.parts.len() > 1 {
            keep_spare(self.parts.drain(1..).map(|part| part.block));
        }
    }
}

/// Values stay out of debug output, as those of [`Params`] do.
impl std::fmt::Debug for ParamRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ParamRows({} rows)", self.rows)
    }
}

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
    #[doc(hidden)]
    pub fn rows<E>(
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
    #[doc(hidden)]
    pub fn len(&self) -> usize {
        self.texts.iter().map(|(_, rows)| rows.len()).sum()
    }

    /// The texts in their order, each with a row for each of its statements.
    #[doc(hidden)]
    pub fn texts(&self) -> &[(T, ParamRows)] {
        &self.texts
    }

    /// Returns the same statements with what `map` makes of each text and its rows.
    #[doc(hidden)]
    pub fn map_texts(mut self, mut map: impl FnMut(T, &ParamRows) -> T) -> Self {
        self.texts = self.texts.into_iter().map(|(text, rows)| (map(text, &rows), rows)).collect();
        self
    }

    /// Returns the same statements with what `find` makes of each text.
    #[doc(hidden)]
    pub fn find<U, E>(self, mut find: impl FnMut(T) -> Result<U, E>) -> Result<BatchStatements<U>, E> {
        let found = self.texts.into_iter().map(|(text, rows)| Ok((find(text)?, rows)));
        found.collect::<Result<_, E>>().map(|texts| BatchStatements { texts })
    }
}

#[cfg(test)]
mod tests {
    use flatwater_sqlite::Bindings;

    use super::*;
    use crate::error::{Error, ErrorKind};
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
            assert_eq!((rows.len(), rows.rows().count(), rows.parts.len()), (of.len(), of.len(), forms));
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
        assert_eq!((added.len(), added.parts.len()), (6, 1));
        let expected = params!["Ada", "Eve"].unwrap();
        assert!(added.rows().all(|row| are_same(row, expected.row())));
        (1,).add_to(&mut added).unwrap();
        assert!(are_same(added.rows().nth(6).unwrap(), params![1].unwrap().row()));
    }

    #[test]
    fn no_block_grows_beyond_its_limit_and_rows_keep_their_order() {
        let mut rows = ParamRows::default();
        for number in 0..20_000 {
            (number, "Ada").add_to(&mut rows).unwrap();
        }
        assert_eq!(rows.parts.len(), (2 * 20_000_usize).div_ceil(FULL_CELLS));
        assert!(rows.parts.iter().all(|part| part.block.cells() <= FULL_CELLS));
        let expected = (0..20_000).map(|number| params![number, "Ada"].unwrap());
        assert!(rows.rows().zip(expected).all(|(row, params)| are_same(row, params.row())));
        let mut wide = ParamRows::default();
        (0..1_000).for_each(|number| [number; 20].add_to(&mut wide).unwrap());
        assert!(wide.parts.iter().all(|part| part.block.cells() <= FULL_CELLS && part.rows == part.block.cells() / 20));
        (0..2).for_each(|number| vec![number; FULL_CELLS + 1].add_to(&mut wide).unwrap());
        assert_eq!(wide.rows().map(|row| row.values().count()).sum::<usize>(), 20_000 + 2 * (FULL_CELLS + 1));
        let mut long = ParamRows::default();
        let text = "x".repeat(FULL_BYTES / 2);
        (0..4).for_each(|_| (&*text,).add_to(&mut long).unwrap());
        assert_eq!((long.parts.len(), long.rows().count()), (2, 4));
    }

    #[test]
    fn debug_output_shows_no_value() {
        assert_eq!(format!("{:?}", rows(&[params!["secret", 7].unwrap()])), "ParamRows(1 rows)");
    }

    #[test]
    fn a_value_that_cannot_be_stored_is_refused() {
        let refused = [(1.0, f64::NAN).add_to(&mut ParamRows::default()), [u64::MAX].add_to(&mut ParamRows::default())];
        assert!(refused.into_iter().all(|refused| refused.unwrap_err().kind() == ErrorKind::Misuse));
    }

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
