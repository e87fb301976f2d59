//! Rows as they are moved.
//!
//! Owns: their values, with their types. Pure. Invariant: a value has the type that SQLite has for it. Leaves out: the SQL.

use flatwater::{Error, Params, Result, Row, Value};

/// A row: the values of its key, and the others.
pub(crate) type Values = Vec<Value>;

/// The values of a row of which each comes behind its type.
pub(crate) fn values(row: &Row<'_>) -> Result<Values> {
    (0..row.len() / 2)
        .map(|at| {
            let kind: String = row.get(2 * at)?;
            let value: Value = row.get(2 * at + 1)?;
            Ok(match (&*kind, value) {
                #[allow(clippy::cast_precision_loss, reason = "it was a REAL before it was written as JSON")]
                ("real", Value::Integer(whole)) => Value::Real(whole as f64),
                (_, value) => value,
            })
        })
        .collect()
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
    flatwater::bindings::server::error(flatwater::ErrorKind::Misuse, message, hint)
}
