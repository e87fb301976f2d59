//! Rows of a file with a JSON object on each line.
//!
//! Owns: which columns there are, those of the first object, and which value each is. Invariants: a name that the first object does not
//! have is an error, so that nothing is lost; objects and arrays become their JSON. Leaves out: parsing JSON.

use std::fmt;
use std::io::{BufRead, BufReader, Read};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::ReadError;
use super::chunk::{Cell, Chunk, Source};

pub(super) struct Jsonl<R> {
    reader: BufReader<R>,
    columns: Vec<String>,
    line: Vec<u8>,
    number: u64,
}

/// The members of an object, in their order.
struct Object(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Object(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

impl<R: Read> Jsonl<R> {
    pub(super) fn new(from: R) -> Self {
        Self { reader: BufReader::with_capacity(256 << 10, from), columns: Vec::new(), line: Vec::new(), number: 0 }
    }

    /// Reads the next line that is not blank.
    fn next(&mut self) -> Result<Option<Object>, ReadError> {
        loop {
            self.line.clear();
            self.number += 1;
            let number = self.number;
            let failed = |message: String| ReadError { line: Some(number), message };
            let read = self.reader.read_until(b'\n', &mut self.line).map_err(|error| failed(error.to_string()))?;
            if read == 0 {
                return Ok(None);
            }
            if !self.line.trim_ascii().is_empty() {
                return serde_json::from_slice(&self.line).map(Some).map_err(|error| failed(error.to_string()));
            }
        }
    }
}

fn add(value: Value, chunk: &mut Chunk) {
    let text = |text: &str, chunk: &mut Chunk| {
        let begin = chunk.add_text(text);
        Cell::Text(begin, begin + text.len())
    };
    let cell = match value {
        Value::Null => Cell::Null,
        Value::Bool(is) => Cell::Integer(i64::from(is)),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Cell::Integer(integer),
            // JSON has no number that is no float.
            None => Cell::Real(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(string) => text(&string, chunk),
        nested @ (Value::Array(_) | Value::Object(_)) => text(&nested.to_string(), chunk),
    };
    chunk.add(cell);
}

impl<R: Read> Source for Jsonl<R> {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn fill(&mut self, chunk: &mut Chunk) -> Result<(), ReadError> {
        while !chunk.is_full() {
            let Some(Object(mut members)) = self.next()? else { break };
            let failed = |message: String| ReadError { line: Some(self.number), message };
            if self.columns.is_empty() {
                self.columns = members.iter().map(|(name, _)| name.clone()).collect();
                if self.columns.is_empty() {
                    return Err(failed("the first object has no members".to_owned()));
                }
            }
            if let Some((name, _)) = members.iter().find(|(name, _)| !self.columns.contains(name)) {
                return Err(failed(format!("the first object has no member {name}")));
            }
            chunk.begin_row(self.number);
            for column in &self.columns {
                let found = members.iter().position(|(name, _)| name == column);
                add(found.map_or(Value::Null, |at| members.swap_remove(at).1), chunk);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flatwater::ValueRef;

    use super::*;

    #[test]
    fn members_become_columns_in_their_order() {
        let text = "{\"b\":1,\"a\":\"x\"}\n\n{\"a\":[1,{\"c\":true}],\"b\":2.5}\n{\"b\":false}\n";
        let mut jsonl = Jsonl::new(text.as_bytes());
        let mut chunk = Chunk::default();
        jsonl.fill(&mut chunk).unwrap();
        assert_eq!(jsonl.columns(), ["b", "a"]);
        let rows: Vec<Vec<ValueRef<'_>>> = (0..chunk.rows()).map(|row| chunk.row(row).collect()).collect();
        assert_eq!(rows[0], [ValueRef::Integer(1), ValueRef::Text(b"x")]);
        assert_eq!(rows[1], [ValueRef::Real(2.5), ValueRef::Text(b"[1,{\"c\":true}]")]);
        assert_eq!(rows[2], [ValueRef::Integer(0), ValueRef::Null]);
        assert_eq!(chunk.line(1), 3);
    }

    #[test]
    fn a_member_that_has_no_column_is_an_error() {
        let mut jsonl = Jsonl::new(&b"{\"a\":1}\n{\"b\":1}\n"[..]);
        let error = jsonl.fill(&mut Chunk::default()).unwrap_err();
        assert_eq!((error.line, &*error.message), (Some(2), "the first object has no member b"));
        let mut jsonl = Jsonl::new(&b"[1]\n"[..]);
        assert!(jsonl.fill(&mut Chunk::default()).unwrap_err().message.contains("an object"));
    }
}
