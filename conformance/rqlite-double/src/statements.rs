//! Running the statements of a request, and their results as rqlite writes them.
//!
//! Owns: the JSON of both directions. Runs under the lock of the cluster. Invariant: with `transaction`, nothing stays of a list of
//! which one fails. Leaves out: who may run them.

use rusqlite::types::{Value as SqliteValue, ValueRef};
use rusqlite::{Connection, Statement};
use serde_json::{Map, Value, json};

/// What the server's JSON cannot say: the request fails after its commit.
pub(crate) const INFINITE: &str = "json: unsupported value: +Inf";

/// How the statements of a request run.
#[derive(Clone, Copy)]
pub(crate) struct Ways {
    pub(crate) kind: Kind,
    pub(crate) in_transaction: bool,
    pub(crate) blob_array: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Query,
    Execute,
    Request,
}

/// Why a request has no results.
pub(crate) enum Failed {
    /// It is not one.
    Invalid(String),
    /// Its commit has failed.
    Commit(String),
}

/// Returns the results of the statements.
pub(crate) fn run(sqlite: &Connection, body: &[u8], ways: Ways) -> Result<Vec<Value>, Failed> {
    let invalid = |text: &str| Failed::Invalid(text.into());
    let Ok(Value::Array(list)) = serde_json::from_slice(body) else { return Err(invalid("invalid request")) };
    if list.is_empty() {
        return Err(invalid("no statements"));
    }
    let parsed: Vec<(String, Vec<Value>)> =
        list.into_iter().map(parse).collect::<Result<_, _>>().map_err(Failed::Invalid)?;
    let failed = |error: rusqlite::Error| Failed::Commit(message(&error));
    if ways.in_transaction {
        sqlite.execute_batch("BEGIN").map_err(failed)?;
    }
    // A query has a connection that only reads.
    sqlite.pragma_update(None, "query_only", ways.kind == Kind::Query).map_err(failed)?;
    let (mut results, mut has_failed) = (Vec::new(), false);
    for (sql, values) in &parsed {
        match one(sqlite, sql, values, ways) {
            Ok(result) => results.push(result),
            Err(error) => {
                // What cannot be prepared does not end a list of this kind, up to 10.2.7.
                let goes_on = ways.kind == Kind::Request && sqlite.prepare(sql).is_err();
                results.push(json!({ "error": error }));
                if ways.in_transaction && !goes_on {
                    has_failed = true;
                    break;
                }
            }
        }
    }
    if has_failed {
        sqlite.execute_batch("ROLLBACK").map_err(failed)?;
    } else if ways.in_transaction {
        let committed = sqlite.execute_batch("COMMIT");
        if committed.is_err() {
            sqlite.execute_batch("ROLLBACK").map_err(failed)?;
        }
        committed.map_err(failed)?;
    }
    Ok(results)
}

fn parse(statement: Value) -> Result<(String, Vec<Value>), String> {
    match statement {
        Value::String(sql) => Ok((sql, Vec::new())),
        Value::Array(mut list) if matches!(list.first(), Some(Value::String(_))) => {
            let Value::String(sql) = list.remove(0) else { return Err("invalid request".into()) };
            Ok((sql, list))
        }
        _ => Err("invalid request".into()),
    }
}

fn one(sqlite: &Connection, sql: &str, values: &[Value], ways: Ways) -> Result<Value, String> {
    let mut statement = sqlite.prepare(sql).map_err(|error| message(&error))?;
    bind(&mut statement, values)?;
    let is_query = match ways.kind {
        Kind::Query => true,
        Kind::Request => statement.readonly() && statement.column_count() > 0,
        Kind::Execute => false,
    };
    // rqlite looks for these letters.
    let has_rows = is_query || sql.to_lowercase().contains("returning ");
    if has_rows { rows(sqlite, &mut statement, ways.blob_array) } else { changes(sqlite, &mut statement) }
}

/// What is missing of a list is an error, and a name that the statement has and the object has not is NULL.
fn bind(statement: &mut Statement<'_>, values: &[Value]) -> Result<(), String> {
    let is_named = values.iter().any(Value::is_object);
    if !is_named && values.len() < statement.parameter_count() {
        return Err(format!(
            "not enough args to execute query: want {} got {}",
            statement.parameter_count(),
            values.len()
        ));
    }
    for (index, given) in (1..).zip(values) {
        match given {
            Value::Object(named) => {
                for (name, value) in named {
                    let places = [":", "@", "$"].map(|sign| statement.parameter_index(&format!("{sign}{name}")));
                    for place in places.into_iter().flatten().flatten() {
                        let bound = statement.raw_bind_parameter(place, parameter(value)?);
                        bound.map_err(|error| message(&error))?;
                    }
                }
            }
            value if index <= statement.parameter_count() => {
                let bound = statement.raw_bind_parameter(index, parameter(value)?);
                bound.map_err(|error| message(&error))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn parameter(value: &Value) -> Result<SqliteValue, String> {
    match value {
        Value::Null => Ok(SqliteValue::Null),
        Value::Bool(value) => Ok(SqliteValue::Integer(i64::from(*value))),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => Ok(SqliteValue::Integer(value)),
            (None, Some(value)) => Ok(SqliteValue::Real(value)),
            (None, None) => Err(format!("invalid number {number}")),
        },
        Value::String(text) => Ok(hexadecimal(text).map_or_else(|| SqliteValue::Text(text.clone()), SqliteValue::Blob)),
        Value::Array(list) => {
            let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
            let bytes = list.iter().map(|value| byte(value).ok_or_else(|| format!("unsupported type {value}")));
            bytes.collect::<Result<_, _>>().map(SqliteValue::Blob)
        }
        Value::Object(_) => Err("unsupported type".into()),
    }
}

/// A text that is written as a BLOB is one.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let digits = text.strip_prefix("x'").or_else(|| text.strip_prefix("X'"))?.strip_suffix('\'')?;
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok().filter(|_| pair.len() == 2)).collect()
}

fn changes(sqlite: &Connection, statement: &mut Statement<'_>) -> Result<Value, String> {
    let before = sqlite.total_changes();
    let mut rows = statement.raw_query();
    while rows.next().map_err(|error| message(&error))?.is_some() {}
    drop(rows);
    let changed = if sqlite.total_changes() == before { 0 } else { sqlite.changes() };
    let mut result = Map::new();
    // Of the connection, whoever has inserted it.
    result.insert("last_insert_id".into(), sqlite.last_insert_rowid().into());
    if changed > 0 {
        result.insert("rows_affected".into(), changed.into());
    }
    Ok(result.into())
}

fn rows(sqlite: &Connection, statement: &mut Statement<'_>, blob_array: bool) -> Result<Value, String> {
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let declared = |column: rusqlite::Column<'_>| column.decl_type().unwrap_or_default().to_lowercase();
    let mut types: Vec<String> = statement.columns().map(declared).collect();
    let mut values = Vec::new();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|error| message(&error))? {
        let cells: Vec<ValueRef<'_>> = (0..names.len())
            .map(|column| row.get_ref(column))
            .collect::<Result<_, _>>()
            .map_err(|error| message(&error))?;
        let cells: Vec<ValueRef<'_>> = cells.into_iter().zip(&types).map(|(cell, kind)| as_text(cell, kind)).collect();
        // An expression has the type that it has in the first row.
        if values.is_empty() {
            let untyped = types.iter_mut().zip(&cells).filter(|(kind, _)| kind.is_empty());
            untyped.for_each(|(kind, cell)| *kind = type_of(*cell).to_owned());
        }
        let json = |(cell, kind): (ValueRef<'_>, &String)| match converted(sqlite, cell, kind) {
            Some(converted) => Ok(converted),
            None => json_of(cell, blob_array),
        };
        values.push(cells.into_iter().zip(&types).map(json).collect::<Result<Vec<_>, _>>()?);
    }
    let mut result = json!({ "columns": names, "types": types });
    if !values.is_empty() {
        result["values"] = values.into();
    }
    Ok(result)
}

/// A value of a column that is declared as exactly one of these types is a time, or true or false.
fn converted(sqlite: &Connection, value: ValueRef<'_>, kind: &str) -> Option<Value> {
    let time = |sql: &str, value: SqliteValue| {
        let time: Option<String> = sqlite.query_row(sql, [value], |row| row.get(0)).ok()?;
        // What is no time is the zero of the server's language.
        Some(time.unwrap_or_else(|| "0001-01-01T00:00:00Z".into()).into())
    };
    match (kind, value) {
        ("boolean", ValueRef::Integer(value)) => Some((value > 0).into()),
        ("date" | "datetime" | "timestamp", ValueRef::Integer(value)) => {
            let seconds = if value.abs() > 1_000_000_000_000 { value / 1_000 } else { value };
            time("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', ?, 'unixepoch')", seconds.into())
        }
        ("date" | "datetime" | "timestamp", ValueRef::Text(text)) => {
            let text = String::from_utf8_lossy(text).into_owned();
            time("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', ?)", text.into())
        }
        _ => None,
    }
}

/// A BLOB in a column for texts, or without a type, comes as a text.
fn as_text<'a>(value: ValueRef<'a>, kind: &str) -> ValueRef<'a> {
    const BEGIN: [&str; 6] = ["varchar", "varying character", "nchar", "native character", "nvarchar", "clob"];
    let is_text = ["", "text", "json"].contains(&kind) || BEGIN.iter().any(|begin| kind.starts_with(begin));
    match value {
        ValueRef::Blob(bytes) if is_text => ValueRef::Text(bytes),
        other => other,
    }
}

fn type_of(value: ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Null => "",
        ValueRef::Integer(_) => "integer",
        ValueRef::Real(_) => "real",
        ValueRef::Text(_) => "text",
        ValueRef::Blob(_) => "blob",
    }
}

fn json_of(value: ValueRef<'_>, blob_array: bool) -> Result<Value, String> {
    match value {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(value) => Ok(value.into()),
        // A whole number comes without its point, in its shortest digits and zeros behind them; minus zero keeps its sign.
        ValueRef::Real(value)
            if value.fract() == 0.0 && value.abs() < 1e21 && value.to_bits() != (-0.0_f64).to_bits() =>
        {
            let digits = format!("{value}");
            digits.parse::<i64>().map_or_else(|_| Ok(value.into()), |whole| Ok(whole.into()))
        }
        ValueRef::Real(value) if value.is_finite() => Ok(value.into()),
        ValueRef::Real(_) => Err(INFINITE.into()),
        ValueRef::Text(text) => Ok(text_of(text).into()),
        ValueRef::Blob(bytes) if blob_array => Ok(bytes.to_vec().into()),
        ValueRef::Blob(_) => Err("base64 is not made here: ask for blob_array".into()),
    }
}

/// Stands for a byte that is no UTF-8.
const LOST: char = '\u{fdef}';

fn text_of(bytes: &[u8]) -> String {
    let mut text = String::new();
    for part in bytes.utf8_chunks() {
        text.push_str(part.valid());
        text.extend(part.invalid().iter().map(|_| LOST));
    }
    text
}

/// The JSON of an answer. What is no UTF-8 is written as an escape, which nothing else is.
pub(crate) fn json_text(value: &Value) -> String {
    value.to_string().replace(LOST, "\\ufffd")
}

/// SQLite's message alone.
fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}
