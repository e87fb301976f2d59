//! Decimals: numbers with all their digits, as texts.
//!
//! Owns: what is the text of one, and which digits come back from a column of numbers. Pure, on any thread. Invariant: no digit is rounded
//! away without an error. Leaves out: which columns have decimals (`meaning`).

use std::borrow::Cow;

use flatwater::ValueRef;

/// So many digits of a text come back from a column that SQLite takes for one of numbers: <https://sqlite.org/datatype3.html>.
const DIGITS: usize = 15;
/// The exponents of its numbers are smaller.
const EXPONENT: usize = 300;

/// Reads the digits of a value.
pub(crate) fn digits(value: ValueRef<'_>) -> Result<Cow<'_, str>, &'static str> {
    let why = "it is not a decimal number";
    match value {
        ValueRef::Integer(number) => Ok(number.to_string().into()),
        // The fewest digits that are this number, without an exponent.
        ValueRef::Real(number) if number.is_finite() => Ok(number.to_string().into()),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).map_err(|_| why)?;
            is_decimal(text).then_some(Cow::Borrowed(text)).ok_or(why)
        }
        _ => Err(why),
    }
}

/// A sign, digits, and a point with digits behind it.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    [whole, fraction].iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the text of a decimal as it is stored: zero has no sign.
///
/// # Errors
/// For what is no number, and for one that a column of numbers would round: more than 15 digits, unless it is an integer of 64 bits.
pub fn decimal_to_store(text: &str) -> Result<&str, &'static str> {
    if !is_decimal(text) {
        return Err("NaN and infinity cannot be stored as a decimal");
    }
    let unsigned = text.trim_start_matches(['-', '+']);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    if whole.is_empty() && fraction.is_empty() {
        return Ok(unsigned);
    }
    let significant = [whole, fraction].concat().trim_matches('0').len();
    let zeros = if whole.is_empty() { fraction.len() - fraction.trim_start_matches('0').len() } else { 0 };
    let is_kept = significant <= DIGITS && whole.len() < EXPONENT && zeros < EXPONENT;
    let is_integer = || fraction.is_empty() && text.split('.').next().is_some_and(|whole| whole.parse::<i64>().is_ok());
    if is_kept || is_integer() {
        return Ok(text);
    }
    Err("a column of numbers keeps 15 digits of a decimal, and this one has more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_column_of_numbers_would_round_is_not_stored() {
        let kept =
            ["0", "12.50", "-0.1", "999999999999999", "0.000000000000001", "100000000000000000000", "1234567890.12345"];
        for text in
            kept.into_iter().chain(["9223372036854775807", "-9223372036854775808.00", "0.00000000000123456789012345"])
        {
            assert_eq!(decimal_to_store(text), Ok(text));
        }
        assert_eq!(decimal_to_store("-0.00"), Ok("0.00"));
        for text in ["1234567890123456.5", "0.1234567890123456", "9223372036854775808", "-12345678901234567890"] {
            assert!(decimal_to_store(text).unwrap_err().contains("15 digits"), "{text}");
        }
        assert!(decimal_to_store(&format!("1{}", "0".repeat(300))).unwrap_err().contains("15 digits"));
        assert!(decimal_to_store(&format!("0.{}1", "0".repeat(300))).unwrap_err().contains("15 digits"));
        for text in ["NaN", "Infinity", "1e3", "", "hunter2"] {
            assert!(decimal_to_store(text).unwrap_err().contains("NaN"), "{text}");
        }
    }

    #[test]
    fn what_is_stored_comes_back_from_a_column_of_numbers() {
        let db = flatwater::rusqlite::Connection::open_in_memory().unwrap();
        db.execute("CREATE TABLE t (a DECIMAL(10, 2))", ()).unwrap();
        for text in ["12.5", "-0.1", "999999999999999", "0.000000000000001", "1234567890.12345", "9223372036854775807"]
        {
            db.execute("DELETE FROM t", ()).unwrap();
            db.execute("INSERT INTO t VALUES (?)", (decimal_to_store(text).unwrap(),)).unwrap();
            let read = db.query_row("SELECT a FROM t", (), |row| Ok(digits(row.get_ref(0)?).map(Cow::into_owned)));
            assert_eq!(read.unwrap().as_deref(), Ok(text));
        }
    }
}
