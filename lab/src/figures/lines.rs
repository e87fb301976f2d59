//! JSON whose lines are entries: the first two levels have a line for each entry, and what lies deeper stands on it.
//!
//! Owns: the layout of a file that is committed and read in a diff. Leaves out: what the file says.

use std::io::{Result as Written, Write};

use anyhow::Result;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// The number of levels that have a line for each entry.
const LEVELS: usize = 2;

/// Returns the value as JSON, with a newline at the end.
pub fn text(value: &impl Serialize) -> Result<String> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Lines::default()))?;
    text.push(b'\n');
    Ok(String::from_utf8(text)?)
}

/// How deep the writer is, and whether nothing was written yet between the brackets it is in.
#[derive(Default)]
struct Lines {
    depth: usize,
    empty: bool,
}

impl Lines {
    fn open(&mut self, out: &mut (impl Write + ?Sized), bracket: &[u8]) -> Written<()> {
        (self.depth, self.empty) = (self.depth + 1, true);
        out.write_all(bracket)
    }

    fn entry(&mut self, out: &mut (impl Write + ?Sized)) -> Written<()> {
        let separator: &[u8] = if self.empty { b"" } else { b"," };
        out.write_all(separator)?;
        match (self.depth <= LEVELS, self.empty) {
            (true, _) => line(out, self.depth)?,
            (false, true) => {}
            (false, false) => out.write_all(b" ")?,
        }
        self.empty = false;
        Ok(())
    }

    fn close(&mut self, out: &mut (impl Write + ?Sized), bracket: &[u8]) -> Written<()> {
        if self.depth <= LEVELS && !self.empty {
            line(out, self.depth - 1)?;
        }
        (self.depth, self.empty) = (self.depth - 1, false);
        out.write_all(bracket)
    }
}

fn line(out: &mut (impl Write + ?Sized), depth: usize) -> Written<()> {
    write!(out, "\n{:1$}", "", 2 * depth)
}

impl Formatter for Lines {
    fn begin_array<W: Write + ?Sized>(&mut self, out: &mut W) -> Written<()> {
        self.open(out, b"[")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, _first: bool) -> Written<()> {
        self.entry(out)
    }

    fn end_array<W: Write + ?Sized>(&mut self, out: &mut W) -> Written<()> {
        self.close(out, b"]")
    }

    fn begin_object<W: Write + ?Sized>(&mut self, out: &mut W) -> Written<()> {
        self.open(out, b"{")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, _first: bool) -> Written<()> {
        self.entry(out)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> Written<()> {
        out.write_all(b": ")
    }

    fn end_object<W: Write + ?Sized>(&mut self, out: &mut W) -> Written<()> {
        self.close(out, b"}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn two_levels_have_lines_and_the_rest_stands_on_them() {
        let value = json!({"a": [{"x": 1, "y": [1, 2]}, {}], "b": {}, "c": "d\ne", "f": {"g": {"h": [null]}}});
        let expected = "{\n  \"a\": [\n    {\"x\": 1, \"y\": [1, 2]},\n    {}\n  ],\n  \"b\": {},\n  \"c\": \"d\\ne\",\n  \
             \"f\": {\n    \"g\": {\"h\": [null]}\n  }\n}\n";
        let text = text(&value).unwrap();
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
