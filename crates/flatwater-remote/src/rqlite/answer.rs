//! An answer of a node, from JSON.
//!
//! Owns: reading the results of statements, and the values in them. Pure. Invariants: a number has the type that the server says; two
//! columns with one name stay two; what is not an answer of rqlite is an error, and never a result. Leaves out: what an answer
//! means for its request (`verdict`).

use std::borrow::Cow;

use flatwater::Value;
use serde_json::{Map, Value as Json};

use crate::results::{Columns, Failure, RowValue, StatementResult};

/// What is in an answer.
pub(crate) enum Body {
    Results(Vec<StatementResult>),
    /// The request failed as a whole.
    Failed(String),
}

impl Body {
    /// `None` if it is not an answer of rqlite.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let (body, torn) = mark(body)?;
        let Json::Object(mut body) = serde_json::from_slice(&body).ok()? else { return None };
        if let Some(Json::String(message)) = body.remove("error") {
            return Some(Self::Failed(message));
        }
        let Json::Array(results) = body.remove("results")? else { return None };
        results.into_iter().map(|result| statement_result(result, torn)).collect::<Option<_>>().map(Self::Results)
    }
}

/// What a server writes for a byte that is no UTF-8. A character U+FFFD of the value itself it writes as it is.
const LOST: &[u8] = b"\\ufffd";

/// Replaces what stands for lost bytes by a character that is nowhere else in the answer, and says which.
fn mark(body: &[u8]) -> Option<(Cow<'_, [u8]>, Option<char>)> {
    if !body.windows(LOST.len()).any(|part| part == LOST) {
        return Some((body.into(), None));
    }
    let text = std::str::from_utf8(body).ok()?;
    let mark = ('\u{fdd0}'..='\u{fdef}').find(|mark| !text.contains(*mark))?;
    let (mut marked, mut rest) = (Vec::with_capacity(body.len()), body);
    while let [first, behind @ ..] = rest {
        if rest.starts_with(LOST) {
            marked.extend_from_slice(mark.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[LOST.len()..];
            continue;
        }
        // What is behind a backslash is no beginning of an escape.
        let length = if *first == b'\\' && !behind.is_empty() { 2 } else { 1 };
        marked.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
    Some((marked.into(), Some(mark)))
}

fn statement_result(result: Json, torn: Option<char>) -> Option<StatementResult> {
    let Json::Object(mut result) = result else { return None };
    if let Some(Json::String(message)) = result.remove("error") {
        return Some(StatementResult::Failed(Failure::of_message(message)));
    }
    let Some(names) = texts(&mut result, "columns")? else { return Some(StatementResult::Done) };
    let types = texts(&mut result, "types")?.unwrap_or_default();
    let mut types = types.into_iter().map(|text| Some(text).filter(|text| !text.is_empty()));
    let columns: Columns = names.into_iter().map(|name| (name, types.next().flatten())).collect();
    let is_real: Vec<bool> = columns.iter().map(|(_, declared)| declared.as_deref().is_some_and(is_real)).collect();
    // Without a row the key is absent.
    let values = match result.remove("values") {
        Some(Json::Array(rows)) => rows.into_iter().map(|one| row(one, &is_real, torn)).collect::<Option<_>>()?,
        None | Some(Json::Null) => Vec::new(),
        Some(_) => return None,
    };
    Some(StatementResult::Rows { columns, values })
}

/// `None` if it is not a list of texts; `Some(None)` if there is none.
fn texts(result: &mut Map<String, Json>, key: &str) -> Option<Option<Vec<Box<str>>>> {
    let list = match result.remove(key) {
        Some(Json::Array(list)) => list,
        None | Some(Json::Null) => return Some(None),
        Some(_) => return None,
    };
    let text = |value| if let Json::String(text) = value { Some(text.into_boxed_str()) } else { None };
    list.into_iter().map(text).collect::<Option<_>>().map(Some)
}

/// A whole number of a column for REALs comes without its point.
fn row(row: Json, is_real: &[bool], torn: Option<char>) -> Option<Vec<RowValue>> {
    let Json::Array(row) = row else { return None };
    let cell = |(at, json)| match (json, torn) {
        (Json::String(text), Some(mark)) if text.contains(mark) => {
            let parts: Vec<&[u8]> = text.split(mark).map(str::as_bytes).collect();
            Some(RowValue::Torn(parts.join(&0xff)))
        }
        (json, _) => value(json, is_real.get(at) == Some(&true)).map(RowValue::Whole),
    };
    row.into_iter().enumerate().map(cell).collect()
}

fn value(json: Json, is_real: bool) -> Option<Value> {
    Some(match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Integer(i64::from(value)),
        Json::Number(number) => match number.as_i64() {
            Some(value) if !is_real => Value::Integer(value),
            _ => Value::Real(number.as_f64()?),
        },
        Json::String(text) => Value::Text(text),
        // A BLOB, as numbers.
        Json::Array(list) => {
            let byte = |byte: Json| u8::try_from(byte.as_u64()?).ok();
            Value::Blob(list.into_iter().map(byte).collect::<Option<_>>()?)
        }
        Json::Object(_) => return None,
    })
}

/// The types of columns whose values SQLite stores as REALs (<https://sqlite.org/datatype3.html#determination_of_column_affinity>).
fn is_real(declared: &str) -> bool {
    let declared = declared.to_ascii_uppercase();
    !declared.contains("INT") && ["REAL", "FLOA", "DOUB"].iter().any(|part| declared.contains(part))
}

#[cfg(test)]
mod tests {
    use flatwater::ValueRef;

    use super::*;
    use crate::results::rows;

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
        let rows = rows("SELECT", columns, &values, false).unwrap();
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
    fn a_text_whose_bytes_are_lost_is_told_from_others() {
        let body = r#"{"results":[{"columns":["a","b","c","d"],"types":["","","",""],
            "values":[["a\ufffdb","a\\ufffdb","\\\ufffd","FINE \u0041"]]}]}"#
            .replace("FINE", "\u{fdd0}\u{fffd}");
        let Some(StatementResult::Rows { columns, values }) = results(&body).pop() else { panic!("no rows") };
        let rows = rows("SELECT", columns, &values, false).unwrap();
        let row = rows.get(0).unwrap();
        let whole = ["a\\ufffdb", "\u{fdd0}\u{fffd} A"].map(|text| ValueRef::Text(text.as_bytes()));
        let expected = [ValueRef::Text(b"a\xffb"), whole[0], ValueRef::Text(b"\\\xff"), whole[1]];
        assert_eq!(row.values().collect::<Vec<_>>(), expected);
        assert!(row.get::<String>(0).unwrap_err().to_string().to_lowercase().contains("utf-8"));
    }

    #[test]
    fn a_result_without_rows_has_columns_and_one_of_a_write_has_none() {
        let all = results(r#"{"results":[{"columns":["a"],"types":["text"]},{"rows_affected":1},{},{"error":"no"}]}"#);
        assert!(
            matches!(&all[0], StatementResult::Rows { columns, values } if columns.len() == 1 && values.is_empty())
        );
        assert!(matches!((&all[1], &all[2]), (StatementResult::Done, StatementResult::Done)));
        assert!(matches!(&all[3], StatementResult::Failed(failure) if failure.message == "no"));
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
        for values in ["[1]", "[[{}]]", "[[[256]]]", "[[[\"x\"]]]"] {
            let body = format!(r#"{{"results":[{{"columns":["a"],"types":["text"],"values":{values}}}]}}"#);
            assert!(Body::parse(body.as_bytes()).is_none(), "{values}");
        }
        let values = [vec![RowValue::Whole(Value::Integer(1)), RowValue::Whole(Value::Integer(2))]];
        assert!(rows("", vec![("a".into(), None)], &values, false).is_none());
    }
}
