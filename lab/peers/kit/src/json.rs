//! Rows as JSON objects, for peers that have no JSON of their own.
//!
//! Owns: the two ways a program does it with serde: a map for each row, or streamed. Leaves out: reading the rows.

use anyhow::{Result, bail};
use serde::ser::{Error, Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value as Json};

use crate::value::{Cells, Value};

/// A row as a map.
pub fn map(names: &[String], cells: &impl Cells) -> Result<Map<String, Json>> {
    let mut map = Map::new();
    for (at, name) in names.iter().enumerate() {
        let value = match cells.cell(at)? {
            Value::Null => Json::Null,
            Value::Integer(value) => value.into(),
            Value::Real(value) => value.into(),
            Value::Text(text) => text.into_owned().into(),
            Value::Blob(_) => bail!("a blob has no form in JSON"),
        };
        map.insert(name.clone(), value);
    }
    Ok(map)
}

/// A row that is written straight from its cells.
pub struct Streamed<'a, C>(pub &'a [String], pub C);

impl<C: Cells> Serialize for Streamed<'_, C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(names, cells) = self;
        let mut object = serializer.serialize_map(Some(names.len()))?;
        for (at, name) in names.iter().enumerate() {
            match cells.cell(at).map_err(S::Error::custom)? {
                Value::Null => object.serialize_entry(name, &()),
                Value::Integer(value) => object.serialize_entry(name, &value),
                Value::Real(value) => object.serialize_entry(name, &value),
                Value::Text(text) => object.serialize_entry(name, &text),
                Value::Blob(_) => Err(S::Error::custom("a blob has no form in JSON")),
            }?;
        }
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_write_the_same_object() {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let cells = vec![Value::from(1), Value::from(0.5), Value::from("\"x\""), Value::Null];
        let mapped = Json::Object(map(&names, &cells).unwrap());
        let streamed = serde_json::to_vec(&Streamed(&names, cells)).unwrap();
        assert_eq!(serde_json::from_slice::<Json>(&streamed).unwrap(), mapped);
    }
}
