//! An answer of a node, from JSON.
//!
//! Owns: reading the results of statements, and the values in them. Pure. Invariants: a number has the type that the server says; two
//! columns with one name stay two; what is not an answer of rqlite is an error, and never a result. Leaves out: what an answer
//! means for its request (`verdict`).

use flatwater::bindings::server::RowsRead;
use flatwater::{Rows, ValueRef};
use serde_json::{Map, Value};

/// The result of one statement.
pub(crate) enum StatementResult {
    /// SQLite's message.
    Failed(String),
    Rows {
        columns: Vec<(Box<str>, Option<Box<str>>)>,
        values: Vec<Value>,
    },
    /// A statement without rows. What it changed is asked with another statement.
    Done,
}

/// What is in an answer.
pub(crate) enum Body {
    Results(Vec<StatementResult>),
    /// The request failed as a whole.
    Failed(String),
}

impl Body {
    /// `None` if it is not an answer of rqlite.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let Value::Object(mut body) = serde_json::from_slice(body).ok()? else { return None };
        if let Some(Value::String(message)) = body.remove("error") {
            return Some(Self::Failed(message));
        }
        let Value::Array(results) = body.remove("results")? else { return None };
        results.into_iter().map(statement_result).collect::<Option<_>>().map(Self::Results)
    }
}

fn statement_result(result: Value) -> Option<StatementResult> {
    let Value::Object(mut result) = result else { return None };
    if let Some(Value::String(message)) = result.remove("error") {
        return Some(StatementResult::Failed(message));
    }
    let Some(names) = texts(&mut result, "columns")? else { return Some(StatementResult::Done) };
    let types = texts(&mut result, "types")?.unwrap_or_default();
    let mut types = types.into_iter().map(|text| Some(text).filter(|text| !text.is_empty()));
    let columns = names.into_iter().map(|name| (name, types.next().flatten())).collect();
    // Without a row the key is absent.
    let values = match result.remove("values") {
        Some(Value::Array(values)) => values,
        None | Some(Value::Null) => Vec::new(),
        Some(_) => return None,
    };
    Some(StatementResult::Rows { columns, values })
}

/// `None` if it is not a list of texts; `Some(None)` if there is none.
fn texts(result: &mut Map<String, Value>, key: &str) -> Option<Option<Vec<Box<str>>>> {
    let list = match result.remove(key) {
        Some(Value::Array(list)) => list,
        None | Some(Value::Null) => return Some(None),
        Some(_) => return None,
    };
    let text = |value| if let Value::String(text) = value { Some(text.into_boxed_str()) } else { None };
    list.into_iter().map(text).collect::<Option<_>>().map(Some)
}

/// Returns the rows of a result, or `None` if they do not fit its columns.
pub(crate) fn rows(
    sql: &str,
    columns: Vec<(Box<str>, Option<Box<str>>)>,
    values: Vec<Value>,
    is_of_write: bool,
) -> Option<Rows> {
    let is_real: Vec<bool> = columns.iter().map(|(_, declared)| declared.as_deref().is_some_and(is_real)).collect();
    let mut rows = RowsRead::new(sql, columns, is_of_write);
    let mut bytes = Vec::new();
    for row in values {
        let Value::Array(row) = row else { return None };
        if row.len() != is_real.len() {
            return None;
        }
        for (value, is_real) in row.into_iter().zip(&is_real) {
            push(&mut rows, &value, *is_real, &mut bytes)?;
        }
    }
    rows.finish()
}

/// A whole number of a column for REALs comes without its point.
fn push(rows: &mut RowsRead, value: &Value, is_real: bool, bytes: &mut Vec<u8>) -> Option<()> {
    match value {
        Value::Null => rows.push(ValueRef::Null),
        Value::Bool(value) => rows.push(ValueRef::Integer(i64::from(*value))),
        Value::Number(number) => match number.as_i64() {
            Some(value) if !is_real => rows.push(ValueRef::Integer(value)),
            _ => rows.push(ValueRef::Real(number.as_f64()?)),
        },
        Value::String(text) => rows.push(ValueRef::Text(text.as_bytes())),
        // A BLOB, as numbers.
        Value::Array(list) => {
            bytes.clear();
            for byte in list {
                bytes.push(u8::try_from(byte.as_u64()?).ok()?);
            }
            rows.push(ValueRef::Blob(bytes));
        }
        Value::Object(_) => return None,
    }
    Some(())
}

/// The types of columns whose values SQLite stores as REALs (<https://sqlite.org/datatype3.html#determination_of_column_affinity>).
fn is_real(declared: &str) -> bool {
    let declared = declared.to_ascii_uppercase();
    !declared.contains("INT") && ["REAL", "FLOA", "DOUB"].iter().any(|part| declared.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(body: &str) -> Vec<StatementResult> {
        match Body::parse(body.as_bytes()) {
            Some(Body::Results(results)) => results,
            Some(Body::Failed(message)) => panic!("{message}"),
            None => panic!("not an answer: {body}"),
        }
    }

    #[test]
    fn values_keep_their_types_and_columns_their_names() {
        let body = r#"{"results":[{"columns":["a","a","r","b","t"],"types":["integer","integer","real","blob",""],
            "values":[[9223372036854775807,-1,1,[0,255],"x"],[null,true,1.5,[],null]]}]}"#;
        let Some(StatementResult::Rows { columns, values }) = results(body).pop() else { panic!("no rows") };
        let rows = rows("SELECT", columns, values, false).unwrap();
        assert_eq!(rows.columns().collect::<Vec<_>>(), ["a", "a", "r", "b", "t"]);
        let [first, second] = [0, 1].map(|row| rows.get(row).unwrap());
        let first: Vec<_> = first.values().collect();
        let expected = [
            ValueRef::Integer(i64::MAX),
            ValueRef::Integer(-1),
            ValueRef::Real(1.0),
            ValueRef::Blob(&[0, 255]),
            ValueRef::Text(b"x"),
        ];
        assert_eq!(first, expected);
        let second: Vec<_> = second.values().collect();
        assert_eq!(second[1..4], [ValueRef::Integer(1), ValueRef::Real(1.5), ValueRef::Blob(&[])]);
        assert_eq!(rows.column(0).unwrap().decl_type(), Some("integer"));
    }

    #[test]
    fn a_result_without_rows_has_columns_and_one_of_a_write_has_none() {
        let all = results(r#"{"results":[{"columns":["a"],"types":["text"]},{"rows_affected":1},{},{"error":"no"}]}"#);
        assert!(
            matches!(&all[0], StatementResult::Rows { columns, values } if columns.len() == 1 && values.is_empty())
        );
        assert!(matches!((&all[1], &all[2]), (StatementResult::Done, StatementResult::Done)));
        assert!(matches!(&all[3], StatementResult::Failed(message) if message == "no"));
        let body = br#"{"results":[],"error":"leadership lost while committing log"}"#;
        assert!(matches!(Body::parse(body), Some(Body::Failed(message)) if message.starts_with("leadership lost")));
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for body in [
            "",
            "null",
            "[]",
            "{}",
            "leader not found",
            r#"{"results":1}"#,
            r#"{"results":[1]}"#,
            r#"{"results":[{"columns":1}]}"#,
        ] {
            assert!(Body::parse(body.as_bytes()).is_none(), "{body}");
        }
        let columns = || vec![("a".into(), None)];
        for values in ["[[1,2]]", "[1]", "[[{}]]", "[[[256]]]", "[[[\"x\"]]]"] {
            assert!(rows("", columns(), serde_json::from_str(values).unwrap(), false).is_none(), "{values}");
        }
    }
}
