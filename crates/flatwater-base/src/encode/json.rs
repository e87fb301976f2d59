//! The sink that writes rows as JSON.
//!
//! Owns: the document while it grows, and its encoding rules. Runs inside the step loop, on the thread that runs the
//! statement; of rows that are there, on any thread. Invariants: a document that leaves the sink is JSON in UTF-8, with one key for each column of an object; a
//! value that has no form in JSON is an error that names its column, except infinity, which is `null`; a string is written as
//! `serde_json` does; it takes no more memory than there is room, but for one row without its texts and blobs. Leaves out: the
//! check of texts that are JSON (`embedded`).

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flatwater_sqlite::{FirstRow, Flow, Sink};
use rusqlite::types::ValueRef;

use super::Room;
#[cfg(feature = "serde_json")]
use super::embedded::is_json;
use crate::encode::json_options::JsonOptions;
use crate::error::hint::hint;
use crate::error::{Error, ErrorCode, Result};
use crate::values::outcome::Document;
use crate::values::row::Rows;

/// JavaScript's `Number.MAX_SAFE_INTEGER`.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// What stands before each value of an object: the brace or the comma, and the column's name.
#[derive(Debug, Clone)]
pub struct Keys(Box<[Box<str>]>);

impl Keys {
    /// Refuses a name that two columns have: most readers of JSON would lose one of the values.
    pub fn new(names: &[Box<str>]) -> Result<Self> {
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(&***name)) {
            return Err(Error::new(
                ErrorCode::DuplicateColumn,
                format!("two columns are named {twice}, but an object has one value per name"),
            )
            .with_hint(hint!["name one of them with AS, or use " JsonArrays]));
        }
        let key = |column: usize| {
            let mut key = String::from(if column == 0 { "{" } else { "," });
            push_string(&mut key, &names[column]);
            key.push(':');
            key.into()
        };
        Ok(Self((0..names.len()).map(key).collect()))
    }
}

/// Writes rows as JSON.
pub struct JsonSink<'a> {
    out: Document,
    /// `None` if rows are arrays.
    keys: Option<Cow<'a, Keys>>,
    names: Cow<'a, [Box<str>]>,
    options: &'a JsonOptions,
    /// Whether each column is embedded. Empty if none is.
    embedded: Vec<bool>,
    /// A read with more rows ends early.
    most_rows: usize,
    room: Room,
    is_over: bool,
    /// The column of the next cell.
    column: usize,
    rows: usize,
    failure: Option<Error>,
}

impl<'a> JsonSink<'a> {
    /// Creates a sink with capacity for a document of this many bytes. `keys` are those of `names`, unless rows are
    /// arrays.
    pub fn new(
        names: &'a [Box<str>],
        keys: Option<&'a Keys>,
        options: &'a JsonOptions,
        bytes: usize,
        (most_rows, room): (usize, Room),
    ) -> Self {
        let mut out = Document::with_room(bytes.max(2));
        out.text.push('[');
        Self {
            out,
            keys: keys.map(Cow::Borrowed),
            names: names.into(),
            options,
            embedded: embedded(names, options),
            most_rows,
            room,
            is_over: false,
            column: 0,
            rows: 0,
            failure: None,
        }
    }

    /// Returns the number of cells and bytes of the document.
    pub fn size(&self) -> (usize, usize) {
        (self.rows * self.names.len(), self.out.text.len())
    }

    /// Returns true if the document would be longer, or have more rows, than it may. Then it is not whole.
    pub fn is_over(&self) -> bool {
        self.is_over || self.rows > self.most_rows
    }

    #[inline]
    fn has_room(&mut self, value: &[u8]) -> bool {
        let fits = self.out.text.len().saturating_add(value.len()) <= self.room.bytes;
        self.is_over |= !fits;
        fits
    }

    /// Returns the document, or why a value cannot be in it.
    pub fn finish(mut self) -> Result<Document> {
        if self.rows > 0 {
            // The comma.
            self.out.text.pop();
        }
        self.out.text.push(']');
        self.out.rows = self.rows;
        self.failure.map_or(Ok(self.out), Err)
    }

    /// Writes what stands before a value.
    #[inline]
    fn begin_value(&mut self) {
        match &self.keys {
            Some(keys) => self.out.text.push_str(&keys.0[self.column]),
            None => self.out.text.push(if self.column == 0 { '[' } else { ',' }),
        }
        self.column += 1;
    }

    /// Returns true if the value that was begun is in an embedded column.
    #[inline]
    fn is_embedded(&self) -> bool {
        self.embedded.get(self.column - 1) == Some(&true)
    }

    /// Fails because of the value that was begun, whose content stays out of the error.
    #[cold]
    fn fail(&mut self, why: &'static str, hint: &'static str) {
        let column = self.column - 1;
        let name = &self.names[column];
        let error = || Error::new(ErrorCode::NoJsonForm, format!("column {column} ({name}): {why}")).with_hint(hint);
        self.failure.get_or_insert_with(error);
    }
}

/// Writes rows that are there, as their statement would have.
pub fn json_of(rows: &Rows, options: &JsonOptions) -> Result<Document> {
    let keys = if options.arrays { None } else { Some(Keys::new(&rows.names)?) };
    let room = Room { bytes: usize::MAX, runs_to_end: true };
    let mut sink = JsonSink::new(&rows.names, keys.as_ref(), options, 0, (usize::MAX, room));
    for row in 0..rows.len() {
        for value in rows.values(row) {
            match value {
                ValueRef::Null => sink.null(),
                ValueRef::Integer(value) => sink.integer(value),
                ValueRef::Real(value) => sink.real(value),
                ValueRef::Text(value) => sink.text(value),
                ValueRef::Blob(value) => sink.blob(value),
            }
        }
        let _ = sink.row_done();
    }
    sink.finish()
}

fn embedded(names: &[Box<str>], options: &JsonOptions) -> Vec<bool> {
    let Some(embedded) = &options.embedded else { return Vec::new() };
    let embedded: HashSet<&str> = embedded.iter().map(|name| &**name).collect();
    names.iter().map(|name| embedded.contains(&**name)).collect()
}

#[cfg(not(feature = "serde_json"))]
fn is_json(_: &str) -> bool {
    false
}

impl Sink for JsonSink<'_> {
    fn first_row(&mut self, row: FirstRow<'_>) {
        let Some(names) = row.new_names() else { return };
        self.embedded = embedded(&names, self.options);
        if self.keys.is_some() {
            let keys = Keys::new(&names).map_err(|error| self.failure = Some(error));
            self.keys = keys.ok().map(Cow::Owned);
        }
        self.names = names.into();
    }

    #[inline]
    fn null(&mut self) {
        self.begin_value();
        self.out.text.push_str("null");
    }

    #[inline]
    fn integer(&mut self, value: i64) {
        self.begin_value();
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(value);
        if self.options.big_integers_as_strings && value.unsigned_abs() > MAX_SAFE {
            self.out.text.push('"');
            self.out.text.push_str(digits);
            self.out.text.push('"');
        } else {
            self.out.text.push_str(digits);
        }
    }

    #[inline]
    fn real(&mut self, value: f64) {
        self.begin_value();
        let mut digits = zmij::Buffer::new();
        self.out.text.push_str(if value.is_finite() { digits.format_finite(value) } else { "null" });
    }

    #[inline]
    fn text(&mut self, value: &[u8]) {
        self.begin_value();
        if !self.has_room(value) {
            return;
        }
        let Ok(text) = std::str::from_utf8(value) else {
            return self.fail("its TEXT is not UTF-8", "read it as a BLOB: CAST(column AS BLOB)");
        };
        if !self.is_embedded() {
            push_string(&mut self.out.text, text);
        } else if is_json(text) {
            self.out.text.push_str(text);
        } else {
            self.fail("its TEXT is not valid JSON", "CHECK (json_valid(column)) keeps other texts out");
        }
    }

    #[inline]
    fn blob(&mut self, value: &[u8]) {
        self.begin_value();
        if self.is_embedded() {
            return self.fail("it is a BLOB, which cannot be embedded", "read JSONB as text: json(column)");
        }
        if !self.has_room(value) {
            return;
        }
        self.out.text.push('"');
        STANDARD.encode_string(value, &mut self.out.text);
        self.out.text.push('"');
    }

    #[inline]
    fn row_done(&mut self) -> Flow {
        self.out.text.push_str(if self.keys.is_some() { "}," } else { "]," });
        self.column = 0;
        self.rows += 1;
        self.is_over |= self.out.text.len() > self.room.bytes;
        if self.is_over {
            self.out.text.clear();
        }
        let ends = !self.room.runs_to_end && (self.failure.is_some() || self.is_over());
        if ends { Flow::Stop } else { Flow::Continue }
    }
}

/// The bytes that are looked at together.
const CHUNK: usize = 16;

/// Writes the text as a JSON string. Parts that need no escape are copied as they are.
pub fn push_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = first_special(rest.as_bytes()) {
        let (plain, from) = rest.split_at(at);
        out.push_str(plain);
        push_escape(out, from.as_bytes()[0]);
        rest = &from[1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Returns the position of the first byte that needs an escape.
fn first_special(bytes: &[u8]) -> Option<usize> {
    let (chunks, _) = bytes.as_chunks::<CHUNK>();
    // Without an early end, so that the compiler compares all bytes of a chunk at once.
    let is_plain = |chunk: &&[u8; CHUNK]| !chunk.iter().fold(false, |found, byte| found | is_special(*byte));
    let plain = chunks.iter().take_while(is_plain).count() * CHUNK;
    bytes[plain..].iter().position(|byte| is_special(*byte)).map(|at| plain + at)
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

fn push_escape(out: &mut String, byte: u8) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        control => {
            let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
            out.push_str("\\u00");
            out.push(digit(control >> 4));
            return out.push(digit(control & 0xf));
        }
    };
    out.push('\\');
    out.push(char::from(letter));
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_text_is_as_serde_json_writes_it(text in ".{0,80}|[\\x00-\\x7f]{0,80}") {
            assert_eq!(string(&text), serde_json::to_string(&text).unwrap());
        }
    }

    fn string(text: &str) -> String {
        let mut out = String::new();
        push_string(&mut out, text);
        out
    }

    #[test]
    fn every_byte_at_every_place_of_a_chunk_is_as_serde_json_writes_it() {
        let filler = "0123456789abcdefghijklmnopqrstuvwxyz é";
        for special in (0..=0x7f_u8).map(char::from).chain(['\u{80}', '\u{2028}', '\u{fffd}', '😀']) {
            for before in 0..=2 * CHUNK {
                let text = format!("{}{special}{}", &filler[..before], &filler[before..]);
                assert_eq!(string(&text), serde_json::to_string(&text).unwrap());
            }
        }
    }

    #[test]
    fn consecutive_escapes_and_the_empty_text_are_strings() {
        for text in ["", "\"", "\\\\\\\"\"\n\0\u{1f}\u{7f}", "\\u0000\\ud800", "</script>"] {
            assert_eq!(string(text), serde_json::to_string(text).unwrap());
        }
    }
}
