//! JSON: an array of objects for each result, or an object on a line for each row.
//!
//! Owns: the form of values, which is that of the library's `query_json`: Infinity is `null`, a blob is Base64. Invariant: two columns
//! of one name are refused before a row is written, because a reader would keep one. Leaves out: texts that are JSON themselves, which
//! stay texts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flatwater::{Row, Rows, ValueRef};

use super::{Out, Sink, text};
use crate::failure::{Failure, Outcome};

#[derive(Default)]
pub(crate) struct Json {
    lines: bool,
    /// What stands before the value of each column: its name, and the sign before that.
    keys: Vec<Vec<u8>>,
    any: bool,
}

impl Json {
    pub(crate) fn array() -> Self {
        Self::default()
    }

    pub(crate) fn lines() -> Self {
        Self { lines: true, ..Self::default() }
    }
}

fn string(text: &[u8], to: &mut Vec<u8>) {
    serde_json::to_writer(to, &*String::from_utf8_lossy(text)).expect("a buffer takes all bytes");
}

fn value(value: ValueRef<'_>, to: &mut Vec<u8>) {
    match value {
        ValueRef::Null => to.extend_from_slice(b"null"),
        ValueRef::Integer(number) => text::integer(number, to),
        ValueRef::Real(number) if number.is_finite() => text::real(number, to),
        ValueRef::Real(_) => to.extend_from_slice(b"null"),
        ValueRef::Text(bytes) => string(bytes, to),
        ValueRef::Blob(bytes) => {
            to.push(b'"');
            to.extend_from_slice(STANDARD.encode(bytes).as_bytes());
            to.push(b'"');
        }
    }
}

/// Adds a row as an object.
pub(crate) fn object(row: &Row<'_>, to: &mut Vec<u8>) {
    to.push(b'{');
    for (at, (name, cell)) in row.columns().zip(row.values()).enumerate() {
        if at > 0 {
            to.push(b',');
        }
        string(name.as_bytes(), to);
        to.push(b':');
        value(cell, to);
    }
    to.push(b'}');
}

impl Sink for Json {
    fn begin(&mut self, columns: &[&str], out: &mut Out) -> Outcome {
        let twice = columns.iter().enumerate().find(|(at, column)| columns[..*at].contains(column));
        if let Some((_, column)) = twice {
            return Err(Failure::Usage(format!("two columns are named {column}: name them apart with AS")));
        }
        self.any = false;
        self.keys = columns
            .iter()
            .map(|column| {
                let mut key = vec![b','];
                string(column.as_bytes(), &mut key);
                key.push(b':');
                key
            })
            .collect();
        if let Some(first) = self.keys.first_mut() {
            first[0] = b'{';
        }
        if !self.lines {
            out.text("[");
        }
        Ok(())
    }

    fn rows(&mut self, rows: &Rows, out: &mut Out) -> Outcome {
        for row in rows {
            if self.any && !self.lines {
                out.text(",\n");
            }
            self.any = true;
            for (key, cell) in self.keys.iter().zip(row.values()) {
                out.buffer.extend_from_slice(key);
                value(cell, &mut out.buffer);
            }
            out.text(if self.lines { "}\n" } else { "}" });
            out.spill()?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out) -> Outcome {
        if !self.lines {
            out.text("]\n");
        }
        out.flush()
    }
}
