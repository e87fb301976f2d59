//! Rows as they are moved.
//!
//! Owns: their values, with their types. Pure. Invariant: a value has the type that SQLite has for it. Leaves out: the SQL.

use flatwater::{Error, Params, Result, Row, Value};

/// A row: the values of its key, and the others.
pub(crate) type Values = Vec<Value>;

/// The values of a row from a column on, of which each comes behind its type: integers as text, and BLOBs as hexadecimal digits.
pub(crate) fn values(row: &Row<'_>, from: usize) -> Result<Values> {
    (from..row.len())
        .step_by(2)
        .map(|at| {
            let (kind, value): (String, Value) = (row.get(at)?, row.get(at + 1)?);
            typed(&kind, value).ok_or_else(|| refused(format!("a server answered no {kind}"), "look at its version"))
        })
        .collect()
}

fn typed(kind: &str, value: Value) -> Option<Value> {
    Some(match (kind, value) {
        ("integer", Value::Text(digits)) => Value::Integer(digits.parse().ok()?),
        ("blob", Value::Text(digits)) => Value::Blob(bytes(&digits)?),
        #[allow(clippy::cast_precision_loss, reason = "it was a REAL before it was written as JSON")]
        ("real", Value::Integer(whole)) => Value::Real(whole as f64),
        ("real", value @ Value::Real(_)) | ("text", value @ Value::Text(_)) | ("null", value @ Value::Null) => value,
        _ => return None,
    })
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The same as parameters.
pub(crate) fn params(values: &[Value]) -> Result<Params> {
    Params::positional(values)
}

/// What two rows have in common if they have one key. A REAL is the same if its bits are.
pub(crate) fn same(values: &[Value]) -> String {
    let one = |value: &Value| match value {
        Value::Real(real) => format!("r{:x}", real.to_bits()),
        other => format!("{other:?}"),
    };
    values.iter().map(one).collect::<Vec<_>>().join("\u{1f}")
}

/// The error of what cannot be moved.
pub(crate) fn refused(message: String, hint: &'static str) -> Error {
    flatwater::bindings::server::error(flatwater::ErrorCode::Unsupported, message, hint)
}
