//! Rows as types that implement serde's `Deserialize`.
//!
//! Owns: `Serde`, and the deserializers of a row and of a cell. Runs on the thread that reads the rows. Invariant: no
//! error has the value of a cell in it, except where the message of the caller's own type has it. Leaves out: JSON in a
//! column (`foreign_types`), and what the errors say (`serde_error`).

use rusqlite::types::ValueRef;
use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess};
use serde::de::{Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::from_row::FromRow;
use super::row::Row;
use super::serde_error::Failure;
use crate::error::Result;

/// A row that is read as a type that implements serde's `Deserialize`: `query_as::<Serde<User>>(...)`.
///
/// A struct or a map is read by the names of the columns, a tuple or a list by their positions, and a single value from
/// the only column. A cell is a number, a text, or a blob, which is read as bytes or as a list of `u8`; an INTEGER is read
/// as a `bool` too, and a TEXT as an enum without data. A NULL needs an `Option`.
///
/// It follows serde's rules: a column that is missing is `None` in a field of type `Option`, names are case-sensitive,
/// and columns without a field are ignored. Inside of `flatten` and of an untagged enum a cell has the type that SQLite
/// stores, so a `bool` or a list of `u8` cannot be read there. Dates, UUIDs and JSON are read in serde's form, which
/// may differ from the form that Flatwater stores; the derive macro `FromRow` reads Flatwater's form, and is
/// faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Serde<T>(pub T);

impl<T: DeserializeOwned> FromRow for Serde<T> {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        T::deserialize(OfRow(row)).map(Self).map_err(|failure| failure.explain(row))
    }
}

/// What a visitor makes of a value.
type Made<'de, V> = Result<<V as Visitor<'de>>::Value, Failure>;

/// The names of fields or variants.
type Names = &'static [&'static str];

/// The deserializer of a row.
struct OfRow<'a>(&'a Row<'a>);

impl<'a> OfRow<'a> {
    /// The only column, for a value that is not a struct, a map, a tuple or a list.
    fn only(self) -> Result<OfCell<'a>, Failure> {
        match self.0.len() {
            1 => cell(self.0, 0),
            columns => Err(Failure::custom(format!("the result has {columns} column(s) and is read as one value"))),
        }
    }
}

fn cell<'a>(row: &'a Row<'a>, position: usize) -> Result<OfCell<'a>, Failure> {
    let value = row.value(position).map_err(|error| Failure::custom(error.message()))?;
    Ok(OfCell(value))
}

/// Methods that read the only column.
macro_rules! of_the_only_column {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
            self.only()?.$method(visitor).map_err(|failure| failure.in_column(0))
        }
    )+};
}

/// Methods that do the same for a row and for a cell.
macro_rules! as_for_any {
    () => {
        fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Made<'de, V> {
            visitor.visit_newtype_struct(self)
        }

        fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, count: usize, visitor: V) -> Made<'de, V> {
            self.deserialize_tuple(count, visitor)
        }

        fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
            visitor.visit_unit()
        }
    };
}

impl<'de> Deserializer<'de> for OfRow<'_> {
    type Error = Failure;

    as_for_any! {}

    of_the_only_column! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char
        deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf deserialize_identifier
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        self.deserialize_map(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        visitor.visit_map(ByName(Places { row: self.0, next: 0 }))
    }

    fn deserialize_struct<V: Visitor<'de>>(self, _: &'static str, _: Names, visitor: V) -> Made<'de, V> {
        self.deserialize_map(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        visitor.visit_seq(Places { row: self.0, next: 0 })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, count: usize, visitor: V) -> Made<'de, V> {
        match self.0.len() {
            columns if columns == count => self.deserialize_seq(visitor),
            columns => Err(Failure::custom(format!("the result has {columns} column(s) and is read as {count}"))),
        }
    }

    /// `None` if all columns are NULL.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        if self.0.values().all(|value| value == ValueRef::Null) {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(self, name: &'static str, variants: Names, visitor: V) -> Made<'de, V> {
        self.only()?.deserialize_enum(name, variants, visitor).map_err(|failure| failure.in_column(0))
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Made<'de, V> {
        visitor.visit_unit()
    }
}

/// The cells of a row, in order.
struct Places<'a> {
    row: &'a Row<'a>,
    next: usize,
}

impl Places<'_> {
    fn read<'de, S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Failure> {
        let position = self.next;
        self.next += 1;
        seed.deserialize(cell(self.row, position)?).map_err(|failure| failure.in_column(position))
    }
}

impl<'de> SeqAccess<'de> for Places<'_> {
    type Error = Failure;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Failure> {
        if self.next == self.row.len() { Ok(None) } else { self.read(seed).map(Some) }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.row.len() - self.next)
    }
}

/// The cells of a row with the names of their columns.
struct ByName<'a>(Places<'a>);

impl<'de> MapAccess<'de> for ByName<'_> {
    type Error = Failure;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Failure> {
        let Places { row, next } = &self.0;
        let Some(name) = row.columns().nth(*next) else { return Ok(None) };
        let name: StrDeserializer<'_, Failure> = name.into_deserializer();
        seed.deserialize(name).map(Some).map_err(|failure| failure.in_column(*next))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Failure> {
        self.0.read(seed)
    }
}

/// The deserializer of a cell.
struct OfCell<'a>(ValueRef<'a>);

impl OfCell<'_> {
    fn text(&self) -> Option<Result<&str, Failure>> {
        let ValueRef::Text(text) = self.0 else { return None };
        Some(std::str::from_utf8(text).map_err(|_| Failure::custom("its TEXT is not UTF-8")))
    }
}

impl<'de> Deserializer<'de> for OfCell<'_> {
    type Error = Failure;

    as_for_any! {}

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct map struct identifier
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        match self.0 {
            ValueRef::Null => visitor.visit_unit(),
            ValueRef::Integer(value) => visitor.visit_i64(value),
            ValueRef::Real(value) => visitor.visit_f64(value),
            ValueRef::Text(_) => visitor.visit_str(self.text().unwrap_or(Ok(""))?),
            ValueRef::Blob(value) => visitor.visit_bytes(value),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        match self.0 {
            // Serde would read the bytes as a text.
            ValueRef::Blob(_) => Err(Failure::invalid_type(unexpected(self.0), &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        match self.0 {
            ValueRef::Integer(value) => visitor.visit_bool(value != 0),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        if self.0 == ValueRef::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_enum<V: Visitor<'de>>(self, _: &'static str, _: Names, visitor: V) -> Made<'de, V> {
        match self.text() {
            Some(text) => {
                let text: StrDeserializer<'_, Failure> = text?.into_deserializer();
                visitor.visit_enum(text)
            }
            None => Err(Failure::invalid_type(unexpected(self.0), &"an enum")),
        }
    }

    /// A blob is a list of bytes.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Made<'de, V> {
        match self.0 {
            ValueRef::Blob(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.iter().copied())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, count: usize, visitor: V) -> Made<'de, V> {
        match self.0 {
            ValueRef::Blob(bytes) if bytes.len() != count => {
                Err(Failure::custom(format!("its BLOB has {} bytes and is read as {count}", bytes.len())))
            }
            _ => self.deserialize_seq(visitor),
        }
    }
}

fn unexpected(value: ValueRef<'_>) -> Unexpected<'_> {
    match value {
        ValueRef::Null => Unexpected::Unit,
        ValueRef::Integer(value) => Unexpected::Signed(value),
        ValueRef::Real(value) => Unexpected::Float(value),
        ValueRef::Text(_) => Unexpected::Str(""),
        ValueRef::Blob(value) => Unexpected::Bytes(value),
    }
}
