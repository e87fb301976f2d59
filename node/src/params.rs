//! JavaScript values as the parameters of statements.
//!
//! Owns: which types are bound, and in which form. Runs on the loop's thread, when the call is made. Invariants: a value is stored
//! unchanged or refused with its place; nothing of JavaScript is kept. Leaves out: rows of parameters (`many`).

use chrono::{DateTime, Utc};
use flatwater::rusqlite::types::{ToSqlOutput, Value as SqlValue};
use flatwater::{ErrorCode, Params, ToSql, ValueRef};
use flatwater_bridge::decimal_to_store;

use crate::capi::value::{Env, Kind, Value};
use crate::failure::{Failure, half_in};

/// Up to here all integers are exact as numbers of JavaScript.
const SAFE: f64 = 9_007_199_254_740_991.0;

/// True for a number that is stored as an integer. Minus zero is none: an integer has no such sign.
fn is_integer(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= SAFE && (number != 0.0 || number.is_sign_positive())
}

/// True for an integer that is exact as a number of JavaScript.
pub(crate) fn is_safe(integer: i64) -> bool {
    integer.unsigned_abs() <= SAFE as u64
}

/// Returns the result of a function as SQLite has it: what may be a parameter. Undefined is NULL.
pub(crate) fn result<'e>(env: Env<'e>, value: Value<'e>) -> Result<SqlValue, &'static str> {
    if env.kind(value) == Kind::Undefined {
        return Ok(SqlValue::Null);
    }
    let mut owned = SqlValue::Null;
    let bound = bind(env, value, false, &mut |value| {
        owned = owned_of(value);
        Ok(())
    });
    match bound {
        Ok(()) => Ok(owned),
        Err(Refused::Value(what, _)) => Err(what),
        Err(Refused::Failure(_)) => Err("it could not be read"),
    }
}

fn owned_of(value: ToSqlOutput<'_>) -> SqlValue {
    match value {
        ToSqlOutput::Owned(value) => value,
        ToSqlOutput::Borrowed(value) => value.try_into().unwrap_or(SqlValue::Null),
        _ => SqlValue::Null,
    }
}

/// The form in which a number is stored that is not NaN.
pub(crate) fn number(number: f64) -> ValueRef<'static> {
    if is_integer(number) { ValueRef::Integer(number as i64) } else { ValueRef::Real(number) }
}

/// Returns the parameters, of which `has_types` makes arrays and plain objects JSON: an array of values, an object of names and values, or nothing.
pub(crate) fn of(env: Env<'_>, given: Value<'_>, has_types: bool) -> Result<Params, Failure> {
    let mut params = Params::default();
    fill(env, &mut params, given, has_types)?;
    Ok(params)
}

/// Returns an array of values as node-sqlite3 binds them: an integer beyond 32 bits is a REAL, and so are the milliseconds of a `Date`.
pub(crate) fn with_reals<'e>(env: Env<'e>, given: Value<'e>) -> Result<Params, Failure> {
    let mut params = Params::default();
    for index in 0..env.array_length(given).unwrap_or(0) {
        let value = env.element(given, index).map_err(|_| unreadable())?;
        if let Some(time) = env.as_date(value) {
            params.push(time).map_err(Failure::from)?;
            continue;
        }
        bind(env, value, false, &mut |value| params.push(as_real(value)).map_err(Failure::from))
            .map_err(|refused| refused.at(&format!("parameter {}", index + 1)))?;
    }
    Ok(params)
}

fn as_real(value: ToSqlOutput<'_>) -> ToSqlOutput<'_> {
    match value {
        ToSqlOutput::Borrowed(ValueRef::Integer(number)) if i32::try_from(number).is_err() => {
            ToSqlOutput::Borrowed(ValueRef::Real(number as f64))
        }
        value => value,
    }
}

/// Fills parameters that are empty.
pub(crate) fn fill<'e>(env: Env<'e>, params: &mut Params, given: Value<'e>, has_types: bool) -> Result<(), Failure> {
    if let Some(length) = env.array_length(given) {
        for index in 0..length {
            let value = env.element(given, index).map_err(|_| unreadable())?;
            bind(env, value, has_types, &mut |value| params.push(value).map_err(Failure::from))
                .map_err(|refused| refused.at(&format!("parameter {}", index + 1)))?;
        }
        return Ok(());
    }
    match env.kind(given) {
        Kind::Undefined | Kind::Null => Ok(()),
        Kind::Object if env.as_date(given).is_none() && env.with_bytes(given, |_| ()).is_none() => {
            *params = named(env, given, has_types)?;
            Ok(())
        }
        _ => Err(Failure::misuse(
            "parameters must be an array or an object, not one value",
            Some("pass an array for `?`: [value], and an object for `:name`: { name: value }"),
        )),
    }
}

fn named<'e>(env: Env<'e>, given: Value<'e>, has_types: bool) -> Result<Params, Failure> {
    let names = env.names(given).map_err(|_| unreadable())?;
    // A name that was changed on its way is the name of another parameter.
    if let Some(name) = names.iter().find(|name| name.contains(char::REPLACEMENT_CHARACTER)) {
        return Err(half_in(&format!("the name of parameter {name:?}")));
    }
    let mut pairs: Vec<(String, SqlValue)> = Vec::with_capacity(names.len());
    for name in names {
        let value = env.property(given, &name).map_err(|_| unreadable())?;
        let mut owned = SqlValue::Null;
        let bound = bind(env, value, has_types, &mut |value| {
            owned = owned_of(value);
            Ok(())
        });
        bound.map_err(|refused| refused.at(&format!("parameter {name:?}")))?;
        pairs.push((name, owned));
    }
    Ok(Params::named(pairs.iter().map(|(name, value)| (&**name, value)))?)
}

/// Why a value is not bound.
enum Refused {
    Value(&'static str, Option<&'static str>),
    Failure(Failure),
}

impl Refused {
    fn at(self, place: &str) -> Failure {
        match self {
            Self::Value(what, hint) => Failure::refused(ErrorCode::InvalidValue, format!("{place}: {what}"), hint),
            Self::Failure(failure) => failure,
        }
    }
}

/// Calls `bound` with the form in which the value is stored.
fn bind<'e>(
    env: Env<'e>,
    value: Value<'e>,
    has_types: bool,
    bound: &mut dyn FnMut(ToSqlOutput<'_>) -> Result<(), Failure>,
) -> Result<(), Refused> {
    let mut put = |value: ToSqlOutput<'_>| bound(value).map_err(Refused::Failure);
    let integer = |number| ToSqlOutput::Owned(SqlValue::Integer(number));
    match env.kind(value) {
        Kind::Null => put(ToSqlOutput::Owned(SqlValue::Null)),
        Kind::Number => match env.as_f64(value).unwrap_or(f64::NAN) {
            value if value.is_nan() => Err(Refused::Value("NaN cannot be stored", Some("pass null"))),
            value => put(ToSqlOutput::Borrowed(number(value))),
        },
        Kind::String => env
            .with_text(value, |text| {
                // What Node writes for half of a surrogate pair.
                if text.contains(char::REPLACEMENT_CHARACTER) && !env.is_well_formed(value) {
                    return Err(Refused::Value(
                        "half of a surrogate pair cannot be stored",
                        Some("cut the text between characters, or pass text.toWellFormed()"),
                    ));
                }
                put(ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())))
            })
            .unwrap_or_else(|_| Err(Refused::Failure(unreadable()))),
        Kind::Boolean => put(integer(env.as_bool(value).unwrap_or(false).into())),
        Kind::BigInt => match env.as_i64(value) {
            Ok(Some(number)) => put(integer(number)),
            _ => Err(Refused::Value("a bigint beyond 64 bits cannot be stored", Some("store it as a string"))),
        },
        Kind::Object => object(env, value, has_types, &mut put),
        Kind::Undefined => {
            Err(Refused::Value("undefined cannot be stored", Some("pass null, or check the name of the property")))
        }
        Kind::Symbol => Err(Refused::Value("a symbol cannot be stored", None)),
        Kind::Function => Err(Refused::Value("a function cannot be stored", None)),
        Kind::External => Err(Refused::Value("an external value cannot be stored", None)),
    }
}

type Put<'p> = &'p mut dyn FnMut(ToSqlOutput<'_>) -> Result<(), Refused>;

fn object<'e>(env: Env<'e>, value: Value<'e>, has_types: bool, put: Put<'_>) -> Result<(), Refused> {
    let thrown = |_| Refused::Failure(unreadable());
    let text = |text: &str, put: Put<'_>| put(ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())));
    if let Some(time) = env.as_date(value) {
        return date(time, put);
    }
    if let Some(blob) = env.with_bytes(value, |bytes| put(ToSqlOutput::Borrowed(ValueRef::Blob(bytes)))) {
        return blob;
    }
    let is_array = env.array_length(value).is_some();
    if has_types && (is_array || env.is_plain(value)) {
        let json = env.json(value).map_err(thrown)?;
        let bound = env.with_text(json, |json| text(json, put));
        return bound.unwrap_or(Err(Refused::Value("the value has no form in JSON", None)));
    }
    if has_types && let Some(digits) = env.decimal(value).map_err(thrown)? {
        let hint = "pass value.toFixed() for a column declared TEXT or DECIMAL TEXT, and null for no number";
        let bound = env.with_text(digits, |digits| match decimal_to_store(digits) {
            Ok(digits) => text(digits, put),
            Err(why) => Err(Refused::Value(why, Some(hint))),
        });
        return bound
            .unwrap_or(Err(Refused::Value("an object whose `toFixed` returns no text cannot be stored", None)));
    }
    Err(match (is_array, env.is_promise(value)) {
        (true, _) => Refused::Value(
            "an array cannot be stored",
            Some(
                "for IN write sql`... IN ${sql.list(values)}`; { types: \"standard\" } of `open` stores arrays as JSON",
            ),
        ),
        (_, true) => Refused::Value("a promise cannot be stored", Some("await it, and pass its value")),
        _ if has_types => {
            Refused::Value("an object cannot be stored", Some("pass JSON.stringify(value), or its fields one by one"))
        }
        _ => Refused::Value(
            "an object cannot be stored",
            Some(
                "pass JSON.stringify(value), or its fields; { types: \"standard\" } of `open` stores plain objects as JSON",
            ),
        ),
    })
}

/// Binds a `Date`, which has whole milliseconds, at most 8.64e15 of them.
fn date(time: f64, put: Put<'_>) -> Result<(), Refused> {
    if time.is_nan() {
        return Err(Refused::Value("the Date is invalid", Some("pass null")));
    }
    match DateTime::from_timestamp_millis(time as i64).as_ref().map(DateTime::<Utc>::to_sql) {
        Some(Ok(date)) => put(date),
        _ => Err(Refused::Value("a Date beyond the years 0 to 9999 cannot be stored", None)),
    }
}

/// Node did not answer: code of the program threw, which is pending.
fn unreadable() -> Failure {
    Failure::misuse("the parameters could not be read", None)
}
