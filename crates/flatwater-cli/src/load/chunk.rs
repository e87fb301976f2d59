//! Some rows of a file, until they are in the table.
//!
//! Owns: their memory: all texts of a chunk in one string. Invariant: a chunk has at most some thousand rows and about a megabyte, so
//! that files of any size are read in bounded memory. Leaves out: reading and inserting.

use flatwater::ValueRef;

use super::ReadError;

/// A chunk is full with so many rows, or so many bytes of texts.
const ROWS: usize = 4096;
const BYTES: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    /// The bytes of the text, from one to another.
    Text(usize, usize),
}

#[derive(Debug, Default)]
pub(crate) struct Chunk {
    text: String,
    cells: Vec<Cell>,
    /// Of each row the line at which it begins.
    lines: Vec<u64>,
    is_broken: bool,
}

impl Chunk {
    /// Stands for the rest of a file that cannot be read.
    pub(crate) fn broken() -> Self {
        Self { is_broken: true, ..Self::default() }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    pub(crate) fn rows(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && !self.is_broken
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows() >= ROWS || self.text.len() >= BYTES
    }

    /// Returns how many rows have about so many bytes of texts: at least one, and not too many of rows without any.
    pub(crate) fn rows_of(&self, bytes: usize) -> usize {
        (bytes * self.rows() / self.text.len().max(1)).clamp(1, 32)
    }

    pub(crate) fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    /// Begins a row, whose cells follow.
    pub(crate) fn begin_row(&mut self, line: u64) {
        self.lines.push(line);
    }

    /// Adds bytes of text, and returns where they begin.
    pub(crate) fn add_text(&mut self, text: &str) -> usize {
        let begin = self.text.len();
        self.text.push_str(text);
        begin
    }

    pub(crate) fn add(&mut self, cell: Cell) {
        self.cells.push(cell);
    }

    /// Returns the values of a row.
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = ValueRef<'_>> {
        let width = self.cells.len() / self.rows();
        self.cells[row * width..(row + 1) * width].iter().map(|cell| match *cell {
            Cell::Null => ValueRef::Null,
            Cell::Integer(number) => ValueRef::Integer(number),
            Cell::Real(number) => ValueRef::Real(number),
            Cell::Text(from, to) => ValueRef::Text(&self.text.as_bytes()[from..to]),
        })
    }
}

/// Rows of a file.
pub(crate) trait Source {
    /// The names of the columns: known after the first chunk, and empty if the file has none.
    fn columns(&self) -> &[String];

    /// Adds rows until the chunk is full. It stays empty at the end.
    fn fill(&mut self, chunk: &mut Chunk) -> Result<(), ReadError>;
}
