//! CSV, and values with another character between.
//!
//! Owns: the form of a line. Invariants: NULL is an empty field and an empty text is `""`, so that the two differ; a field is quoted if a
//! reader could take it for more than one, or for NULL. Leaves out: files of other separators with quotes.

use flatwater::{Rows, ValueRef};

use super::{Out, Sink, text};
use crate::failure::Outcome;

pub(crate) struct Csv {
    separator: u8,
    quotes: bool,
    headers: bool,
}

impl Csv {
    pub(crate) fn new(separator: u8, quotes: bool, headers: bool) -> Self {
        Self { separator, quotes, headers }
    }

    fn field(&self, bytes: &[u8], to: &mut Vec<u8>) {
        let special = |byte: &u8| *byte == self.separator || matches!(byte, b'"' | b'\n' | b'\r');
        if !self.quotes || !bytes.is_empty() && !bytes.iter().any(special) {
            to.extend_from_slice(bytes);
            return;
        }
        to.push(b'"');
        for part in bytes.split_inclusive(|byte| *byte == b'"') {
            to.extend_from_slice(part);
            if part.ends_with(b"\"") {
                to.push(b'"');
            }
        }
        to.push(b'"');
    }

    fn value(&self, value: ValueRef<'_>, to: &mut Vec<u8>) {
        match value {
            ValueRef::Null => {}
            ValueRef::Integer(number) => text::integer(number, to),
            ValueRef::Real(number) => text::real(number, to),
            ValueRef::Text(bytes) => self.field(bytes, to),
            ValueRef::Blob(bytes) => text::blob(bytes, to),
        }
    }
}

impl Sink for Csv {
    fn begin(&mut self, columns: &[&str], out: &mut Out) -> Outcome {
        if self.headers {
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    out.buffer.push(self.separator);
                }
                self.field(column.as_bytes(), &mut out.buffer);
            }
            out.buffer.push(b'\n');
        }
        Ok(())
    }

    fn rows(&mut self, rows: &Rows, out: &mut Out) -> Outcome {
        for row in rows {
            let to = &mut out.buffer;
            for (at, value) in row.values().enumerate() {
                if at > 0 {
                    to.push(self.separator);
                }
                self.value(value, to);
            }
            to.push(b'\n');
            out.spill()?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out) -> Outcome {
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(csv: &Csv, values: &[ValueRef<'_>]) -> String {
        let mut to = Vec::new();
        for value in values {
            csv.value(*value, &mut to);
            to.push(b' ');
        }
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn a_field_is_quoted_if_it_could_be_misread() {
        let csv = Csv::new(b',', true, true);
        let values = ["a b", "a,b", "say \"x\"", "two\nlines", ""].map(|text| ValueRef::Text(text.as_bytes()));
        assert_eq!(fields(&csv, &values), "a b \"a,b\" \"say \"\"x\"\"\" \"two\nlines\" \"\" ");
        assert_eq!(fields(&csv, &[ValueRef::Null, ValueRef::Real(0.5), ValueRef::Blob(b"\x0a")]), " 0.5 x'0a' ");
    }

    #[test]
    fn a_list_has_its_values_as_they_are() {
        let list = Csv::new(b'|', false, true);
        assert_eq!(fields(&list, &[ValueRef::Text(b"a|\"b"), ValueRef::Text(b"")]), "a|\"b  ");
    }
}
