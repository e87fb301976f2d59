//! Values as bytes.
//!
//! Owns: the form of each value in tables, as CSV, as a literal of SQL and as JSON. Invariants: numbers are read back as they were; a
//! terminal gets no control character of a value. Leaves out: what stands between values.

use flatwater::ValueRef;

/// Adds an integer.
pub(crate) fn integer(number: i64, to: &mut Vec<u8>) {
    to.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Adds a float: the shortest digits that are read as the same number, with `.0` if it is whole. Infinity is `Inf`, as in the
/// `sqlite3` shell.
pub(crate) fn real(number: f64, to: &mut Vec<u8>) {
    if number.is_finite() {
        to.extend_from_slice(zmij::Buffer::new().format(number).as_bytes());
    } else {
        to.extend_from_slice(if number > 0.0 { b"Inf" } else { b"-Inf" });
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Adds a blob as a literal of SQL: `x'00ff'`.
pub(crate) fn blob(bytes: &[u8], to: &mut Vec<u8>) {
    to.extend_from_slice(b"x'");
    to.extend(bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
    to.push(b'\'');
}

/// Adds a value as a literal of SQL. Infinity has none, but a number that is read as such.
pub(crate) fn literal(value: ValueRef<'_>, to: &mut Vec<u8>) {
    match value {
        ValueRef::Null => to.extend_from_slice(b"NULL"),
        ValueRef::Integer(number) => integer(number, to),
        ValueRef::Real(number) if number.is_finite() => real(number, to),
        ValueRef::Real(number) => to.extend_from_slice(if number > 0.0 { b"9e999" } else { b"-9e999" }),
        // SQLite reads SQL up to the first NUL.
        ValueRef::Text(bytes) if bytes.contains(&0) => {
            to.extend_from_slice(b"CAST(");
            blob(bytes, to);
            to.extend_from_slice(b" AS TEXT)");
        }
        ValueRef::Text(bytes) => {
            to.push(b'\'');
            for part in bytes.split_inclusive(|byte| *byte == b'\'') {
                to.extend_from_slice(part);
                if part.ends_with(b"'") {
                    to.push(b'\'');
                }
            }
            to.push(b'\'');
        }
        ValueRef::Blob(bytes) => blob(bytes, to),
    }
}

/// Returns a value as a cell of a table: without control characters, which could move the cursor or end the line.
pub(crate) fn cell(value: ValueRef<'_>) -> String {
    let mut bytes = Vec::new();
    match value {
        ValueRef::Null => return "NULL".to_owned(),
        ValueRef::Integer(number) => integer(number, &mut bytes),
        ValueRef::Real(number) => real(number, &mut bytes),
        ValueRef::Text(text) => return visible(&String::from_utf8_lossy(text)),
        ValueRef::Blob(value) => blob(value, &mut bytes),
    }
    String::from_utf8(bytes).expect("numbers and digits are ASCII")
}

/// Returns the text with each control character as an escape.
pub(crate) fn visible(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// Returns a name as a quoted identifier of SQL.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(values: &[ValueRef<'_>]) -> String {
        let mut to = Vec::new();
        for value in values {
            literal(*value, &mut to);
            to.push(b' ');
        }
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn literals_are_read_back_as_they_were() {
        let values = [
            ValueRef::Null,
            ValueRef::Integer(i64::MIN),
            ValueRef::Real(1.0),
            ValueRef::Real(f64::NEG_INFINITY),
            ValueRef::Text(b"it's"),
            ValueRef::Text(b"a\0b"),
            ValueRef::Blob(&[0, 255]),
        ];
        let expected = "NULL -9223372036854775808 1.0 -9e999 'it''s' CAST(x'610062' AS TEXT) x'00ff' ";
        assert_eq!(literals(&values), expected);
    }

    #[test]
    fn a_cell_has_no_control_characters() {
        assert_eq!(cell(ValueRef::Text(b"a\n\x1b[2Jb")), "a\\n\\u{1b}[2Jb");
        assert_eq!(cell(ValueRef::Blob(&[1])), "x'01'");
    }

    #[test]
    fn a_name_is_quoted() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
