//! Tables for people, and values one below the other.
//!
//! Owns: the widths of columns, and the lines between. Invariants: the widths are those of the first batch, so that a result is never
//! held whole; a value that is wider moves what stands behind it, and is not cut; numbers are at the right. Leaves out: the width of
//! the terminal.

use flatwater::{Rows, ValueRef};
use unicode_width::UnicodeWidthStr;

use super::{Out, Sink, text};
use crate::failure::Outcome;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Borders {
    Ascii,
    Unicode,
    Markdown,
}

/// The characters of a line: at its begin, between two columns, at its end, and in a column.
type Line = [&'static str; 4];

impl Borders {
    fn top(self) -> Option<Line> {
        match self {
            Self::Ascii => Some(["+", "+", "+", "-"]),
            Self::Unicode => Some(["┌", "┬", "┐", "─"]),
            Self::Markdown => None,
        }
    }

    fn below_header(self) -> Line {
        match self {
            Self::Ascii => ["+", "+", "+", "-"],
            Self::Unicode => ["├", "┼", "┤", "─"],
            Self::Markdown => ["|", "|", "|", "-"],
        }
    }

    fn bottom(self) -> Option<Line> {
        match self {
            Self::Ascii => Some(["+", "+", "+", "-"]),
            Self::Unicode => Some(["└", "┴", "┘", "─"]),
            Self::Markdown => None,
        }
    }

    fn side(self) -> &'static str {
        if self == Self::Unicode { "│" } else { "|" }
    }
}

pub(crate) struct Table {
    borders: Borders,
    headers: bool,
    columns: Vec<String>,
    /// Of each column, from its first batch on.
    widths: Vec<usize>,
}

impl Table {
    pub(crate) fn new(borders: Borders, headers: bool) -> Self {
        Self { borders, headers, columns: Vec::new(), widths: Vec::new() }
    }

    fn rule(&self, [begin, between, end, inside]: Line, out: &mut Out) {
        for (at, width) in self.widths.iter().enumerate() {
            out.text(if at == 0 { begin } else { between });
            for _ in 0..width + 2 {
                out.text(inside);
            }
        }
        out.text(end);
        out.text("\n");
    }

    fn line<'a>(&self, cells: impl Iterator<Item = (&'a str, bool)>, out: &mut Out) {
        for ((cell, at_right), width) in cells.zip(&self.widths) {
            out.text(self.borders.side());
            let gap = width.saturating_sub(cell.width());
            let (before, behind) = if at_right { (gap + 1, 1) } else { (1, gap + 1) };
            out.buffer.resize(out.buffer.len() + before, b' ');
            out.text(cell);
            out.buffer.resize(out.buffer.len() + behind, b' ');
        }
        out.text(self.borders.side());
        out.text("\n");
    }

    /// Writes what stands above the first row.
    fn head(&mut self, out: &mut Out) {
        if let Some(top) = self.borders.top() {
            self.rule(top, out);
        }
        if self.headers || self.borders == Borders::Markdown {
            self.line(self.columns.iter().map(|column| (&**column, false)), out);
            self.rule(self.borders.below_header(), out);
        }
    }

    fn cell(&self, value: ValueRef<'_>) -> (String, bool) {
        let cell = text::cell(value);
        let cell = if self.borders == Borders::Markdown { cell.replace('|', "\\|") } else { cell };
        (cell, matches!(value, ValueRef::Integer(_) | ValueRef::Real(_)))
    }
}

impl Sink for Table {
    fn begin(&mut self, columns: &[&str], _: &mut Out) -> Outcome {
        self.columns = columns.iter().map(|column| text::visible(column)).collect();
        self.widths.clear();
        Ok(())
    }

    fn rows(&mut self, rows: &Rows, out: &mut Out) -> Outcome {
        let cells: Vec<Vec<(String, bool)>> =
            rows.iter().map(|row| row.values().map(|value| self.cell(value)).collect()).collect();
        if self.widths.is_empty() {
            self.widths = self.columns.iter().map(|column| if self.headers { column.width() } else { 0 }).collect();
            for row in &cells {
                for (width, (cell, _)) in self.widths.iter_mut().zip(row) {
                    *width = (*width).max(cell.width());
                }
            }
            self.head(out);
        }
        for row in &cells {
            self.line(row.iter().map(|(cell, at_right)| (&**cell, *at_right)), out);
            out.spill()?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out) -> Outcome {
        if self.widths.is_empty() {
            self.widths = self.columns.iter().map(|column| column.width()).collect();
            self.head(out);
        }
        if let Some(bottom) = self.borders.bottom() {
            self.rule(bottom, out);
        }
        out.flush()
    }
}

/// Each value on a line of its own.
#[derive(Default)]
pub(crate) struct Lines {
    columns: Vec<String>,
    any: bool,
}

impl Sink for Lines {
    fn begin(&mut self, columns: &[&str], _: &mut Out) -> Outcome {
        let width = columns.iter().map(|column| column.width()).max().unwrap_or(0);
        let padded = |column: &&str| format!("{}{}", " ".repeat(width - column.width()), text::visible(column));
        self.columns = columns.iter().map(padded).collect();
        Ok(())
    }

    fn rows(&mut self, rows: &Rows, out: &mut Out) -> Outcome {
        for row in rows {
            if std::mem::replace(&mut self.any, true) {
                out.text("\n");
            }
            for (column, value) in self.columns.iter().zip(row.values()) {
                out.text(column);
                out.text(" = ");
                out.text(&text::cell(value));
                out.text("\n");
            }
            out.spill()?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out) -> Outcome {
        out.flush()
    }
}
