//! An answer of a libSQL server, from JSON.
//!
//! Owns: reading it. Pure. Invariant: what is not an answer of such a server is an error, and never a result. Leaves out: what an answer
//! means for its request (`verdict`).

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use flatwater::Value;
use flatwater::rusqlite::ffi;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::messages::code_of;
use crate::results::{Columns, Failure, RowValue, StatementResult};

/// The answer to a pipeline, of which the first request was a batch.
#[derive(Deserialize)]
pub(crate) struct Answer {
    pub(crate) baton: Option<String>,
    pub(crate) base_url: Option<String>,
    results: Vec<StreamResult>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StreamResult {
    Ok { response: Response },
    Error { error: ServerError },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Response {
    Batch {
        result: BatchResult,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct BatchResult {
    step_results: Vec<Option<StepResult>>,
    step_errors: Vec<Option<ServerError>>,
    #[serde(default)]
    replication_index: Option<String>,
}

#[derive(Deserialize)]
struct StepResult {
    cols: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Deserialize)]
struct Column {
    name: Option<Box<str>>,
    #[serde(default)]
    decltype: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Cell {
    Null,
    Integer {
        value: String,
    },
    /// Null for a number that is infinite.
    Float {
        value: Option<f64>,
    },
    Text {
        value: String,
    },
    Blob {
        base64: String,
    },
}

/// What the server says of a failure.
#[derive(Deserialize)]
pub(crate) struct ServerError {
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) code: String,
}

/// What became of a step.
pub(crate) enum Step {
    Ran(StatementResult),
    Failed(ServerError),
    /// Its condition was not true.
    Skipped,
    /// It ran, and has a value that JSON cannot say.
    Unmade,
}

/// What became of a batch.
pub(crate) enum Batch {
    Steps {
        steps: Vec<Step>,
        index: Option<u64>,
    },
    /// It failed as a whole.
    Failed(ServerError),
}

impl Answer {
    /// `None` if it is not an answer of a libSQL server.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// `None` if it is not the answer to a batch.
    pub(crate) fn batch(self) -> Option<Batch> {
        Some(match self.results.into_iter().next()? {
            StreamResult::Error { error } => Batch::Failed(error),
            StreamResult::Ok { response: Response::Batch { result } } => {
                if result.step_results.len() != result.step_errors.len() {
                    return None;
                }
                let index = result.replication_index.and_then(|index| index.parse().ok());
                let steps = result.step_results.into_iter().zip(result.step_errors).map(step).collect::<Option<_>>()?;
                Batch::Steps { steps, index }
            }
            StreamResult::Ok { response: Response::Other } => return None,
        })
    }
}

/// `None` if a row does not fit its columns, or a value is none.
fn step((result, error): (Option<StepResult>, Option<ServerError>)) -> Option<Step> {
    let result = match (result, error) {
        (None, None) => return Some(Step::Skipped),
        (_, Some(error)) => return Some(Step::Failed(error)),
        (Some(result), None) => result,
    };
    if result.cols.is_empty() {
        return Some(Step::Ran(StatementResult::Done));
    }
    let is_infinite = |cell: &Cell| matches!(cell, Cell::Float { value: None });
    if result.rows.iter().flatten().any(is_infinite) {
        return Some(Step::Unmade);
    }
    let columns = result.cols.into_iter().map(|column| (column.name.unwrap_or_default(), column.decltype)).collect();
    let row = |row: Vec<Cell>| row.into_iter().map(value).collect::<Option<_>>();
    let values = result.rows.into_iter().map(row).collect::<Option<_>>()?;
    Some(Step::Ran(StatementResult::Rows { columns, values }))
}

fn value(cell: Cell) -> Option<RowValue> {
    Some(RowValue::Whole(match cell {
        Cell::Null => Value::Null,
        Cell::Integer { value } => Value::Integer(value.parse().ok()?),
        Cell::Float { value } => Value::Real(value?),
        Cell::Text { value } => Value::Text(value),
        // With or without its padding.
        Cell::Blob { base64 } => {
            Value::Blob(STANDARD_NO_PAD.decode(&base64).or_else(|_| STANDARD.decode(&base64)).ok()?)
        }
    }))
}

/// The first line of a cursor.
#[derive(Deserialize)]
pub(crate) struct CursorHead {
    pub(crate) baton: Option<String>,
}

/// A further line of a cursor.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CursorLine {
    StepBegin {
        cols: Vec<Column>,
    },
    Row {
        row: Vec<Cell>,
    },
    StepError {
        error: ServerError,
    },
    Error {
        error: ServerError,
    },
    #[serde(other)]
    Other,
}

/// What a line of a cursor says.
pub(crate) enum Entry {
    Columns(Columns),
    Row(Vec<RowValue>),
    Failed(ServerError),
    Other,
}

impl Entry {
    /// `None` if it is no line of a cursor, or has a value that is none.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        Some(match serde_json::from_slice(line).ok()? {
            CursorLine::StepBegin { cols } => Self::Columns(
                cols.into_iter().map(|column| (column.name.unwrap_or_default(), column.decltype)).collect(),
            ),
            CursorLine::Row { row } => Self::Row(row.into_iter().map(value).collect::<Option<_>>()?),
            CursorLine::StepError { error } | CursorLine::Error { error } => Self::Failed(error),
            CursorLine::Other => Self::Other,
        })
    }
}

/// The names of codes that a message of SQLite may not tell.
const CODES: &[(&str, i32)] = &[
    ("SQLITE_CONSTRAINT", ffi::SQLITE_CONSTRAINT),
    ("SQLITE_BUSY", ffi::SQLITE_BUSY),
    ("SQLITE_LOCKED", ffi::SQLITE_LOCKED),
    ("SQLITE_FULL", ffi::SQLITE_FULL),
    ("SQLITE_IOERR", ffi::SQLITE_IOERR),
    ("SQLITE_CORRUPT", ffi::SQLITE_CORRUPT),
    ("SQLITE_NOTADB", ffi::SQLITE_NOTADB),
    ("SQLITE_READONLY", ffi::SQLITE_READONLY),
    ("SQLITE_NOMEM", ffi::SQLITE_NOMEM),
    ("SQLITE_TOOBIG", ffi::SQLITE_TOOBIG),
    ("SQLITE_MISMATCH", ffi::SQLITE_MISMATCH),
    ("SQLITE_INTERRUPT", ffi::SQLITE_INTERRUPT),
    ("SQLITE_AUTH", ffi::SQLITE_AUTH),
    ("RESPONSE_TOO_LARGE", ffi::SQLITE_TOOBIG),
];

impl From<ServerError> for Failure {
    /// The server writes `SQLite error: ` before SQLite's own message, or `SQL input error: ` with the place behind it. A text that its own
    /// parser does not take is told in the parser's words.
    fn from(error: ServerError) -> Self {
        let whole = &*error.message;
        let (message, offset) = match whole.strip_prefix("SQL input error: ").and_then(with_place) {
            Some((message, offset)) => (message, Some(offset)),
            None => (whole.strip_prefix("SQLite error: ").unwrap_or(whole), None),
        };
        let named = CODES.iter().find(|(name, _)| *name == error.code).map_or(ffi::SQLITE_ERROR, |(_, code)| *code);
        let told = code_of(message);
        Self { code: if told == ffi::SQLITE_ERROR { named } else { told }, message: message.to_owned(), offset }
    }
}

/// Takes apart a message such as `no such column: a (at offset 7)`.
fn with_place(text: &str) -> Option<(&str, usize)> {
    let (message, rest) = text.rsplit_once(" (at offset ")?;
    Some((message, rest.strip_suffix(')')?.parse().ok()?))
}

/// Returns the message of an answer that is one error. It has one of two names.
pub(crate) fn error_of(body: &[u8]) -> Option<String> {
    let Json::Object(mut error) = serde_json::from_slice(body).ok()? else { return None };
    match error.remove("message").or_else(|| error.remove("error"))? {
        Json::String(message) => Some(message),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use flatwater::ValueRef;

    use super::*;
    use crate::results::rows;

    fn batch(body: &str) -> Option<Batch> {
        Answer::parse(body.as_bytes())?.batch()
    }

    fn steps(results: &str, errors: &str) -> Option<Vec<Step>> {
        let body = format!(
            r#"{{"baton":null,"base_url":null,"results":[{{"type":"ok","response":{{"type":"batch","result":
            {{"step_results":{results},"step_errors":{errors},"replication_index":"4"}}}}}},
            {{"type":"ok","response":{{"type":"close"}}}}]}}"#
        );
        match batch(&body)? {
            Batch::Steps { steps, index } => {
                assert_eq!(index, Some(4));
                Some(steps)
            }
            Batch::Failed(_) => None,
        }
    }

    #[test]
    fn values_keep_their_types_and_columns_their_names() {
        let result = r#"[{"cols":[{"name":"a","decltype":"INTEGER"},{"name":"a","decltype":null},{"name":"r"},{"name":"b"}],
            "rows":[[{"type":"integer","value":"9223372036854775807"},{"type":"null"},{"type":"float","value":1},
                     {"type":"blob","base64":"AP8"}],
                    [{"type":"text","value":"x"},{"type":"null"},{"type":"float","value":0.1},
                     {"type":"blob","base64":"AP8="}]],
            "affected_row_count":0,"last_insert_rowid":null}]"#;
        let Some(Step::Ran(StatementResult::Rows { columns, values })) = steps(result, "[null]").unwrap().pop() else {
            panic!("no rows")
        };
        let rows = rows("SELECT", columns, &values, false).unwrap();
        assert_eq!(rows.columns().collect::<Vec<_>>(), ["a", "a", "r", "b"]);
        let [first, second] = [0, 1].map(|row| rows.get(row).unwrap());
        let expected = [ValueRef::Integer(i64::MAX), ValueRef::Null, ValueRef::Real(1.0), ValueRef::Blob(&[0, 255])];
        assert_eq!(first.values().collect::<Vec<_>>(), expected);
        let expected = [ValueRef::Text(b"x"), ValueRef::Null, ValueRef::Real(0.1), ValueRef::Blob(&[0, 255])];
        assert_eq!(second.values().collect::<Vec<_>>(), expected);
        assert_eq!(rows.column(0).unwrap().decl_type(), Some("INTEGER"));
    }

    #[test]
    fn a_step_ran_failed_was_skipped_or_cannot_be_said() {
        let done = r#"{"cols":[],"rows":[],"affected_row_count":1,"last_insert_rowid":"3"}"#;
        let infinite = r#"{"cols":[{"name":"a"}],"rows":[[{"type":"float","value":null}]]}"#;
        let error = r#"{"message":"SQLite error: UNIQUE constraint failed: t.b","code":"SQLITE_CONSTRAINT"}"#;
        let all = steps(&format!("[{done},null,null,{infinite}]"), &format!("[null,{error},null,null]")).unwrap();
        assert!(matches!((&all[0], &all[2]), (Step::Ran(StatementResult::Done), Step::Skipped)));
        assert!(matches!(&all[3], Step::Unmade));
        let Step::Failed(error) = all.into_iter().nth(1).unwrap() else { panic!("no error") };
        let failure = Failure::from(error);
        assert_eq!(failure.message, "UNIQUE constraint failed: t.b");
        assert_eq!(failure.code, ffi::SQLITE_CONSTRAINT_UNIQUE);
        let input =
            ServerError { message: "SQL input error: no such column: a (at offset 7)".into(), code: String::new() };
        let input = Failure::from(input);
        assert_eq!((&*input.message, input.offset), ("no such column: a", Some(7)));
        let raised = ServerError { message: "SQLite error: no".into(), code: "SQLITE_CONSTRAINT".into() };
        assert_eq!(Failure::from(raised).code, ffi::SQLITE_CONSTRAINT);
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for body in ["", "null", "[]", "{}", "hello", r#"{"results":[]}"#, r#"{"results":[{"type":"ok"}]}"#] {
            assert!(batch(body).is_none(), "{body}");
        }
        for value in [
            r#"{"type":"integer","value":"x"}"#,
            r#"{"type":"integer","value":1}"#,
            r#"{"type":"date","value":"x"}"#,
            r#"{"type":"blob","base64":"!"}"#,
            "1",
        ] {
            let result = format!(r#"[{{"cols":[{{"name":"a"}}],"rows":[[{value}]]}}]"#);
            assert!(steps(&result, "[null]").is_none(), "{value}");
        }
        assert!(steps("[null]", "[]").is_none());
    }
}
