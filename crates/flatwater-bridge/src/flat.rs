//! Rows as an array of numbers beside one text, for hosts in which a call for each value costs more than the value.
//!
//! Owns: the form of such a chunk, and how many rows are in one. Runs on the loop's thread. Invariants: each value is there as it
//! is, or the chunk is refused: no number is rounded; a kept text keeps no more than the text of its chunk. Leaves out: making
//! values of the host's language of it.
//!
//! The cells are row after row. A column has one form in a chunk: numbers, the ends of texts in the text, the ends of blobs in the
//! bytes, or integers of 64 bits as their bits. NULL is NaN, which SQLite does not store
//! (<https://sqlite.org/floatingpoint.html>). A column in which values of several kinds occur has two cells for each: the form of
//! the value, and the value. A column that has a meaning (`meaning`) is of booleans, of moments as milliseconds since 1970, of documents,
//! or of texts.

use std::fmt::Write as _;

use chrono::Timelike;
use flatwater::bindings::cells;
use flatwater::{Rows, ValueRef};
use uuid::Uuid;

use crate::forms::{Form, Integers, exact, form_of};
use crate::meaning::{Meaning, Meant};

/// A chunk ends after the row with which it has so many bytes of texts and blobs, or so many cells.
const CHUNK_BYTES: usize = 16 << 10;
const CHUNK_CELLS: usize = 8 << 10;

/// Why rows could not be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The integer in this column is beyond 2^53.
    Inexact {
        /// Its position.
        column: usize,
    },
    /// The value has not the meaning of its column.
    Unreadable {
        /// Its position in the rows.
        row: usize,
        /// Its position.
        column: usize,
        /// What its column means.
        meaning: Meaning,
        /// Why not.
        why: &'static str,
    },
    /// A row has more columns than there are cells.
    Wide,
}

/// The text of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub enum Text<'a> {
    /// Only ASCII.
    Ascii(&'a [u8]),
    /// In units of UTF-16, which the ends count.
    Wide(&'a [u16]),
}

/// The memory of chunks.
#[derive(Default)]
pub struct Flat {
    forms: Vec<Form>,
    ascii: Vec<u8>,
    wide: Vec<u16>,
    is_wide: bool,
    bytes: Vec<u8>,
}

impl Flat {
    /// Encodes the rows at these positions, as many as make a chunk, into `out`. Returns their number. `meanings` is empty, or has what
    /// each column means.
    ///
    /// # Errors
    /// A value cannot be there as it is. Nothing of the chunk is of use then.
    pub fn encode(
        &mut self,
        rows: &Rows,
        positions: impl ExactSizeIterator<Item = usize> + Clone,
        integers: Integers,
        meanings: &[Option<Meaning>],
        out: &mut [f64],
    ) -> Result<usize, Refused> {
        let count = self.measure(rows, positions.clone(), integers, meanings, out.len())?;
        let mut out = out.iter_mut();
        let mut put = |number: f64| {
            if let Some(place) = out.next() {
                *place = number;
            }
        };
        for row in positions.take(count) {
            for (column, value) in cells(rows, row).enumerate() {
                let form = self.forms[column];
                let meaning = meanings.get(column).copied().flatten();
                let own = form_of(value, integers, meaning);
                if form == Form::Mixed {
                    put(f64::from(own as u8));
                }
                let value = match meaning {
                    Some(meaning) => match self.add_meant(meaning, value) {
                        Ok(Ok(number)) => {
                            put(number);
                            continue;
                        }
                        Ok(Err(value)) => value,
                        Err(why) => return Err(Refused::Unreadable { row, column, meaning, why }),
                    },
                    None => value,
                };
                put(match value {
                    ValueRef::Null => f64::NAN,
                    ValueRef::Real(number) => number,
                    ValueRef::Integer(number) if own == Form::Big => f64::from_bits(number.cast_unsigned()),
                    ValueRef::Integer(number) => exact(number).ok_or(Refused::Inexact { column })?,
                    ValueRef::Text(text) => self.add_text(text),
                    ValueRef::Blob(bytes) => {
                        self.bytes.extend_from_slice(bytes);
                        self.bytes.len() as f64
                    }
                });
            }
        }
        Ok(count)
    }

    /// The forms of the columns of the last chunk.
    #[must_use]
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// The texts of the last chunk, one after the other.
    #[must_use]
    pub fn text(&self) -> Text<'_> {
        if self.is_wide { Text::Wide(&self.wide) } else { Text::Ascii(&self.ascii) }
    }

    /// The blobs of the last chunk, one after the other.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Finds the forms of the columns, and returns how many rows make the chunk.
    fn measure(
        &mut self,
        rows: &Rows,
        positions: impl ExactSizeIterator<Item = usize>,
        integers: Integers,
        meanings: &[Option<Meaning>],
        room: usize,
    ) -> Result<usize, Refused> {
        self.forms.clear();
        self.forms.resize(rows.columns().len(), Form::Null);
        self.ascii.clear();
        self.wide.clear();
        self.bytes.clear();
        self.is_wide = false;
        let (mut count, mut bytes) = (0, 0);
        // A column may become mixed later.
        let most = room.min(CHUNK_CELLS.max(2 * self.forms.len())) / (2 * self.forms.len()).max(1);
        if most == 0 && positions.len() > 0 {
            return Err(Refused::Wide);
        }
        for row in positions.take(most) {
            for (column, (form, value)) in self.forms.iter_mut().zip(cells(rows, row)).enumerate() {
                if let ValueRef::Text(value) | ValueRef::Blob(value) = value {
                    bytes += value.len();
                }
                if let ValueRef::Text(text) = value {
                    self.is_wide |= !text.is_ascii();
                }
                let meaning = meanings.get(column).copied().flatten();
                *form = match (*form, form_of(value, integers, meaning)) {
                    // All bits are integers, none stands for NULL.
                    (Form::Big, Form::Null) => Form::Mixed,
                    (Form::Null, Form::Big) if count > 0 => Form::Mixed,
                    (known, Form::Null) => known,
                    (Form::Null, own) => own,
                    (known, own) if known == own => known,
                    _ => Form::Mixed,
                };
            }
            count += 1;
            if bytes >= CHUNK_BYTES {
                break;
            }
        }
        Ok(count)
    }

    /// Adds a value that has this meaning. Returns its cell, or a number that is read as others are.
    fn add_meant<'a>(
        &mut self,
        meaning: Meaning,
        value: ValueRef<'a>,
    ) -> Result<Result<f64, ValueRef<'a>>, &'static str> {
        let mut short = ShortText::default();
        Ok(Ok(match meaning.read(value)? {
            Meant::Null => f64::NAN,
            Meant::Boolean(is_so) => f64::from(u8::from(is_so)),
            Meant::Datetime(moment) => moment.and_utc().timestamp_millis() as f64,
            Meant::Integer(_) | Meant::Real(_) => return Ok(Err(value)),
            Meant::Json(text) => self.add_text(text.as_bytes()),
            Meant::Decimal(digits) => self.add_text(digits.as_bytes()),
            Meant::Date(date) => self.add_text(short.of(format_args!("{date}"))),
            Meant::Time(time) => {
                // As it is stored: six digits, or none.
                let (hour, minute, second) = (time.hour(), time.minute(), time.second());
                match time.nanosecond() / 1_000 {
                    0 => self.add_text(short.of(format_args!("{hour:02}:{minute:02}:{second:02}"))),
                    micros => self.add_text(short.of(format_args!("{hour:02}:{minute:02}:{second:02}.{micros:06}"))),
                }
            }
            Meant::Uuid(bytes) => self.add_text(short.of(format_args!("{}", Uuid::from_bytes(bytes)))),
        }))
    }

    /// Returns the end of the text. What is not UTF-8 has replacement characters.
    fn add_text(&mut self, text: &[u8]) -> f64 {
        if !self.is_wide {
            self.ascii.extend_from_slice(text);
            return self.ascii.len() as f64;
        }
        match std::str::from_utf8(text) {
            Ok(text) => self.wide.extend(text.encode_utf16()),
            Err(_) => self.wide.extend(String::from_utf8_lossy(text).encode_utf16()),
        }
        self.wide.len() as f64
    }
}

/// The text of a value that is made.
#[derive(Default)]
struct ShortText(String);

impl ShortText {
    fn of(&mut self, text: std::fmt::Arguments<'_>) -> &[u8] {
        // A `String` takes all.
        let _ = self.0.write_fmt(text);
        self.0.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sql: &str) -> Rows {
        flatwater::Database::open(":memory:").wait().unwrap().query(sql, ()).wait().unwrap()
    }

    /// The cells, with NaN as -1.
    fn encoded(flat: &mut Flat, sql: &str, integers: Integers) -> Result<Vec<f64>, Refused> {
        let rows = rows(sql);
        let mut out = [-2.0; 64];
        let count = flat.encode(&rows, 0..rows.len(), integers, &[], &mut out)?;
        assert_eq!(count, rows.len());
        let cells = out.iter().take_while(|cell| **cell != -2.0);
        Ok(cells.map(|cell| if cell.is_nan() { -1.0 } else { *cell }).collect())
    }

    #[test]
    fn a_column_of_one_kind_has_one_cell_for_each_value() {
        let mut flat = Flat::default();
        let cells = encoded(
            &mut flat,
            "VALUES (1, 'ab', NULL, x'0102'), (2.5, NULL, NULL, x'03'), (NULL, 'c', NULL, x'')",
            Integers::Exact,
        );
        assert_eq!(cells.unwrap(), [1.0, 2.0, -1.0, 2.0, 2.5, -1.0, -1.0, 3.0, -1.0, 3.0, -1.0, 3.0]);
        assert_eq!(flat.forms(), [Form::Number, Form::Text, Form::Null, Form::Blob]);
        assert_eq!((flat.text(), flat.bytes()), (Text::Ascii(b"abc"), &[1, 2, 3][..]));
    }

    #[test]
    fn a_column_of_several_kinds_says_the_form_of_each_value() {
        let mut flat = Flat::default();
        let cells = encoded(&mut flat, "VALUES (1), ('a'), (NULL), (x'00')", Integers::Exact).unwrap();
        assert_eq!(cells, [1.0, 1.0, 2.0, 1.0, 0.0, -1.0, 3.0, 1.0]);
        assert_eq!(flat.forms(), [Form::Mixed]);
    }

    #[test]
    fn no_integer_is_rounded() {
        let (sql, mut flat) = ("SELECT 1, 9007199254740992, 9007199254740993", Flat::default());
        assert_eq!(encoded(&mut flat, sql, Integers::Exact), Err(Refused::Inexact { column: 2 }));
        let cells = encoded(&mut flat, sql, Integers::Auto).unwrap();
        assert_eq!(cells[..2], [1.0, 9_007_199_254_740_992.0]);
        assert_eq!((flat.forms()[2], cells[2].to_bits()), (Form::Big, 9_007_199_254_740_993));
        encoded(&mut flat, "SELECT -1, NULL", Integers::Big).unwrap();
        assert_eq!(flat.forms(), [Form::Big, Form::Null]);
        for mixed in ["VALUES (1), (NULL)", "VALUES (NULL), (1)"] {
            encoded(&mut flat, mixed, Integers::Big).unwrap();
            assert_eq!(flat.forms(), [Form::Mixed]);
        }
    }

    #[test]
    fn the_ends_count_units_of_utf_16_unless_all_is_ascii() {
        let mut flat = Flat::default();
        assert_eq!(
            encoded(&mut flat, "SELECT 'a', '\u{1f600}b', CAST(x'ff' AS TEXT)", Integers::Exact).unwrap(),
            [1.0, 4.0, 5.0]
        );
        assert_eq!(flat.text(), Text::Wide(&"a\u{1f600}b\u{fffd}".encode_utf16().collect::<Vec<_>>()));
    }

    #[test]
    fn a_chunk_ends_with_its_bytes_its_cells_and_the_room() {
        let (mut flat, mut out) = (Flat::default(), vec![0.0; 64 << 10]);
        let many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100000)";
        let numbers = rows(&format!("{many} SELECT x, x FROM c"));
        assert_eq!(flat.encode(&numbers, 0..100_000, Integers::Exact, &[], &mut out), Ok(CHUNK_CELLS / 4));
        assert_eq!(flat.encode(&numbers, 99_990..100_000, Integers::Exact, &[], &mut out), Ok(10));
        assert_eq!(flat.encode(&numbers, 0..100_000, Integers::Exact, &[], &mut out[..9]), Ok(2));
        assert_eq!(flat.encode(&numbers, 0..100_000, Integers::Exact, &[], &mut out[..3]), Err(Refused::Wide));
        let texts = rows(&format!("{many} SELECT printf('%1000d', x) FROM c LIMIT 40"));
        assert_eq!(flat.encode(&texts, 0..40, Integers::Exact, &[], &mut out), Ok(17));
        let none = rows("SELECT 1 WHERE 0");
        assert_eq!(flat.encode(&none, 0..0, Integers::Exact, &[], &mut out), Ok(0));
    }

    #[test]
    fn a_column_with_a_meaning_has_its_form() {
        let (mut flat, mut out) = (Flat::default(), [0.0; 32]);
        let columns = [
            Some(Meaning::Boolean),
            Some(Meaning::Datetime),
            Some(Meaning::Json),
            Some(Meaning::Uuid),
            Some(Meaning::Time),
            None,
        ];
        let sql = "VALUES (1, '1970-01-01 00:00:01.5', '{}', x'67e5504410b1426f9247bb680e5fe0c8', '10:00', 7), \
                   (NULL, NULL, 5, NULL, NULL, NULL)";
        let all = rows(sql);
        assert_eq!(flat.encode(&all, 0..2, Integers::Exact, &columns, &mut out), Ok(2));
        let forms = [Form::Boolean, Form::Moment, Form::Mixed, Form::Text, Form::Text, Form::Number];
        assert_eq!(flat.forms(), forms);
        assert_eq!(flat.text(), Text::Ascii(b"{}67e55044-10b1-426f-9247-bb680e5fe0c810:00:00"));
        assert_eq!(out[..7], [1.0, 1500.0, 8.0, 2.0, 38.0, 46.0, 7.0]);
        assert!(out[7].is_nan() && out[8].is_nan() && out[9..11] == [1.0, 5.0]);
        let refused = flat.encode(&rows("VALUES (0), (2)"), 0..2, Integers::Exact, &columns[..1], &mut out);
        assert!(matches!(refused, Err(Refused::Unreadable { row: 1, column: 0, .. })), "{refused:?}");
    }

    #[test]
    fn a_chunk_has_the_rows_at_its_positions() {
        let (mut flat, mut out) = (Flat::default(), [0.0; 8]);
        let rows = rows("VALUES ('a'), ('b'), ('c'), ('d')");
        assert_eq!(flat.encode(&rows, [3, 1].into_iter(), Integers::Exact, &[], &mut out), Ok(2));
        assert_eq!((&out[..2], flat.text()), (&[1.0, 2.0][..], Text::Ascii(b"db")));
    }
}
