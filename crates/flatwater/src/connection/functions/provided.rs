//! The functions that every connection has besides SQLite's: `regexp`, with the feature of this name; and the mathematical functions,
//! for a library that is compiled without them.
//!
//! Owns: these functions. The mathematical ones (<https://sqlite.org/lang_mathfunc.html>) have SQLite's results. Runs on the thread that
//! runs the statement. Invariants: they only compute; where the library has mathematical functions itself they are its own, which run
//! inline. Leaves out: functions of the user, which may have the same names; `abs`, `round` and `sign`, which every library has.

use std::f64::consts::PI;
use std::sync::LazyLock;

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Result};

/// Registers these functions, before anything runs on the connection.
pub(crate) fn provide(connection: &Connection) -> rusqlite::Result<()> {
    register_regexp(connection)?;
    if *IS_MISSING { register_math(connection) } else { Ok(()) }
}

/// Registers REGEXP, if this crate has it.
pub(super) fn register_regexp(connection: &Connection) -> rusqlite::Result<()> {
    #[cfg(feature = "regexp")]
    return super::regexp::register(connection);
    #[cfg(not(feature = "regexp"))]
    {
        let _ = connection;
        Ok(())
    }
}

static IS_MISSING: LazyLock<bool> = LazyLock::new(|| {
    let used = "SELECT sqlite_compileoption_used('ENABLE_MATH_FUNCTIONS')";
    let has = Connection::open_in_memory().and_then(|plain| plain.query_row(used, [], |row| row.get::<_, bool>(0)));
    !has.unwrap_or(false)
});

/// Functions by their names.
type Named<F> = [(&'static str, F)];
type OfOne = fn(f64) -> f64;
type OfTwo = fn(f64, f64) -> f64;

const OF_ONE: &Named<OfOne> = &[
    ("exp", f64::exp),
    ("acos", f64::acos),
    ("asin", f64::asin),
    ("atan", f64::atan),
    ("cos", f64::cos),
    ("sin", f64::sin),
    ("tan", f64::tan),
    ("cosh", f64::cosh),
    ("sinh", f64::sinh),
    ("tanh", f64::tanh),
    ("acosh", f64::acosh),
    ("asinh", f64::asinh),
    ("atanh", f64::atanh),
    ("sqrt", f64::sqrt),
    ("radians", f64::to_radians),
    ("degrees", f64::to_degrees),
];

const OF_TWO: &Named<OfTwo> =
    &[("pow", f64::powf), ("power", f64::powf), ("mod", |one, other| one % other), ("atan2", f64::atan2)];

/// An integer stays what it is.
const ROUNDING: &Named<OfOne> =
    &[("ceil", f64::ceil), ("ceiling", f64::ceil), ("floor", f64::floor), ("trunc", f64::trunc)];

const LOGARITHMS: &Named<OfOne> = &[("ln", f64::ln), ("log", f64::log10), ("log10", f64::log10), ("log2", f64::log2)];

fn register_math(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    for &(name, of) in OF_ONE {
        connection.create_scalar_function(name, 1, flags, move |context| Ok(real(context, 0).map(of)))?;
    }
    for &(name, of) in OF_TWO {
        let of_two = move |context: &Context<'_>| Ok(real(context, 0).zip(real(context, 1)).map(|(a, b)| of(a, b)));
        connection.create_scalar_function(name, 2, flags, of_two)?;
    }
    for &(name, of) in ROUNDING {
        connection.create_scalar_function(name, 1, flags, move |context| {
            Ok(match number(context.get_raw(0)) {
                Value::Real(value) => Value::Real(of(value)),
                other => other,
            })
        })?;
    }
    for &(name, of) in LOGARITHMS {
        let log = move |context: &Context<'_>| Ok(real(context, 0).filter(|value| *value > 0.0).map(of));
        connection.create_scalar_function(name, 1, flags, log)?;
    }
    connection.create_scalar_function("log", 2, flags, |context| {
        let base = real(context, 0).map(f64::ln).filter(|base| *base > 0.0);
        let value = real(context, 1).filter(|value| *value > 0.0);
        Ok(base.zip(value).map(|(base, value)| value.ln() / base))
    })?;
    connection.create_scalar_function("pi", 0, flags, |_| Ok(PI))
}

fn real(context: &Context<'_>, at: usize) -> Option<f64> {
    match number(context.get_raw(at)) {
        #[allow(clippy::cast_precision_loss, reason = "as SQLite converts it")]
        Value::Integer(value) => Some(value as f64),
        Value::Real(value) => Some(value),
        _ => None,
    }
}

/// Returns the value as a number: a text that is one too. Anything else is NULL.
fn number(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).unwrap_or_default().trim();
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
            let integer = || text.parse().map(Value::Integer);
            let real = || text.parse().map(Value::Real);
            if is_number { integer().ok().or_else(|| real().ok()).unwrap_or(Value::Null) } else { Value::Null }
        }
        ValueRef::Null | ValueRef::Blob(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The library of this workspace has the functions itself. A build without its flags has not, and compares nothing.
    #[test]
    fn they_return_what_sqlites_own_return() {
        let (sqlites, ours) = (Connection::open_in_memory().unwrap(), Connection::open_in_memory().unwrap());
        let has_own = "SELECT sqlite_compileoption_used('ENABLE_MATH_FUNCTIONS')";
        if !sqlites.query_row(has_own, [], |row| row.get::<_, bool>(0)).unwrap() {
            eprintln!("the linked SQLite has no mathematical functions: nothing was compared");
            return;
        }
        register_math(&ours).unwrap();
        let values =
            ["NULL", "0", "1", "-1", "7", "-2.5", "0.3", "2.7", "'3'", "' 4.5 '", "'x'", "''", "x'00'", "1e300"];
        let ones = [OF_ONE, ROUNDING, LOGARITHMS].concat();
        let of_one = ones.iter().flat_map(|(name, _)| values.map(|value| format!("{name}({value})")));
        let twos: Vec<_> = OF_TWO.iter().map(|(name, _)| *name).chain(["log"]).collect();
        let of_two = twos
            .iter()
            .flat_map(|name| values.iter().flat_map(move |one| values.map(|other| format!("{name}({one}, {other})"))));
        let mut compared = 0;
        for call in of_one.chain(of_two).chain(["pi()".to_owned()]) {
            let get =
                |of: &Connection| of.query_row(&format!("SELECT {call}"), [], |row| row.get::<_, Value>(0)).unwrap();
            match (get(&sqlites), get(&ours)) {
                (Value::Real(one), Value::Real(other)) => {
                    assert!(one == other || (one - other).abs() <= one.abs() * 1e-12, "{call}: {one} {other}");
                }
                (one, other) => assert_eq!(one, other, "{call}"),
            }
            compared += 1;
        }
        assert!(compared > 1000);
    }
}
