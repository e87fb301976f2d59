//! The steps of a scenario: a verb with its fields, and the fields that any verb may have.
//!
//! Owns: the types that steps are read as. Pure. Invariant: a verb or a field that is not known, and a step without exactly
//! one verb, is an error. Leaves out: running steps.
//!
//! A handle that a step makes has the name that is the verb's value. What the fields and verbs mean where their types
//! do not say it:
//!
//! - `in`: the handle on which the call is made: a database, a transaction, a snapshot. Default `db`.
//! - `timeout_ms`: the deadline of the call. It and `json_options` are those of a database: transactions, snapshots
//!   and prepared statements have none of their own. A scenario of what a deadline leaves alone sets an hour.
//! - `start`: a name. The call is begun and not awaited: it has its place in the queue when the step ends, and calls
//!   that were started take their turns in that order. `await` waits for its end, and compares what the step that
//!   started it expects. A handle that the call makes exists from then on. Every call that is started is awaited or
//!   dropped.
//! - `error`: the call must fail; without it, it must succeed.
//! - `execute`, `query` and its forms take a text: SQL, `{"prepared": name}`, or `{"built": [...]}`: parts for `Sql`,
//!   each one of `["push", SQL]`, `["bind", value]`, `["bind_list", [values]]`, `["push_identifier", name]`.
//! - `query_one` and `query_value` need a row. `query_json` gives the exact document.
//! - `next` fetches as many rows as it expects; with `end`, there is no further one.
//! - `transaction` runs its steps as the body of the language's own form of a transaction, under the name `as`. In a
//!   transaction it is a nested one, and the outer one cannot be used meanwhile. If the steps come to their end, the
//!   body returns.
//! - `raise` ends the body around it with an error of the program's own. Its `transaction` then has `raised` with the
//!   same text, in place of `error`.
//! - `savepoint`, `release` and `rollback_to` are made in the transaction that `in` names. `connection` makes a connection
//!   of the caller's own, with the foreign keys of the database unless it says otherwise; `close` closes it.
//! - `migrate` applies `[name, SQL]` pairs, and expects the names that it applied.
//! - `open_blob` expects the length of the value; `incremental_vacuum` how many pages it gave back.
//! - `drop` lets go of a handle, as the end of its scope does: a started call is cancelled, a transaction rolled
//!   back, a stream, a snapshot and a database are closed. In a language without such ends it is the call that does
//!   it.
//! - `write_file` makes the place a file with these bytes. Only before the first `open`.

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::fields::{Failure, JsonOptions, Options, Params, RunResult, Text, given};
use crate::value::Value;

/// One call, with what is expected of it.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Map<String, Json>")]
pub(crate) struct Step {
    pub(crate) common: Common,
    pub(crate) verb: Verb,
}

/// What a step of any verb may have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Common {
    #[serde(rename = "in")]
    pub(crate) on: Option<String>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) start: Option<String>,
    pub(crate) error: Option<Failure>,
}

/// The verbs with their fields. What the verb is applied to is `of`.
#[derive(Debug, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Verb {
    Open {
        of: String,
        path: Option<String>,
        #[serde(default)]
        options: Options,
    },
    Close {
        of: String,
    },
    Execute {
        of: Text,
        #[serde(default)]
        params: Params,
        changes: Option<u64>,
        #[serde(default, deserialize_with = "given")]
        last_insert_rowid: Option<Option<i64>>,
    },
    Run {
        of: Text,
        #[serde(default)]
        params: Params,
        columns: Option<Vec<String>>,
        result: Option<RunResult>,
    },
    ExecuteMany {
        of: String,
        rows: Vec<Params>,
        changes: Option<u64>,
    },
    QueryMany {
        of: String,
        /// Of parameters.
        rows: Vec<Params>,
        returned: Option<Vec<Vec<Value>>>,
    },
    Batch {
        of: Vec<(String, Params)>,
        results: Option<Vec<RunResult>>,
    },
    ExecuteScript {
        of: String,
    },
    Query {
        of: Text,
        #[serde(default)]
        params: Params,
        columns: Option<Vec<String>>,
        rows: Option<Vec<Vec<Value>>>,
    },
    QueryOne {
        of: Text,
        #[serde(default)]
        params: Params,
        #[serde(default, deserialize_with = "given")]
        row: Option<Option<Vec<Value>>>,
    },
    QueryValue {
        of: Text,
        #[serde(default)]
        params: Params,
        #[serde(default, deserialize_with = "given")]
        value: Option<Value>,
    },
    /// The same, and there may be no row.
    QueryOptional {
        of: Text,
        #[serde(default)]
        params: Params,
        #[serde(default, deserialize_with = "given")]
        row: Option<Option<Vec<Value>>>,
    },
    QueryOptionalValue {
        of: Text,
        #[serde(default)]
        params: Params,
        #[serde(default, deserialize_with = "given")]
        value: Option<Value>,
    },
    QueryValues {
        of: Text,
        #[serde(default)]
        params: Params,
        values: Option<Vec<Value>>,
    },
    QueryJson {
        of: Text,
        #[serde(default)]
        params: Params,
        json_options: Option<JsonOptions>,
        json: Option<String>,
    },
    Stream {
        of: String,
        sql: String,
        #[serde(default)]
        params: Params,
    },
    Next {
        of: String,
        #[serde(default)]
        rows: Vec<Vec<Value>>,
        #[serde(default)]
        end: bool,
    },
    Snapshot {
        of: String,
    },
    Prepare {
        of: String,
        sql: String,
    },
    Begin {
        of: String,
    },
    Commit {
        of: String,
    },
    Rollback {
        of: String,
    },
    /// Opens a savepoint of this name.
    Savepoint {
        of: String,
    },
    Release {
        of: String,
    },
    RollbackTo {
        of: String,
    },
    /// A connection of the caller's own.
    Connection {
        of: String,
        foreign_keys: Option<bool>,
    },
    Transaction {
        of: Vec<Step>,
        r#as: String,
        raised: Option<String>,
    },
    Raise {
        of: String,
    },
    Migrate {
        of: Vec<(String, String)>,
        #[serde(default)]
        ignore_missing: bool,
        applied: Option<Vec<String>>,
    },
    Backup {
        of: String,
    },
    Vacuum {
        of: (),
    },
    VacuumInto {
        of: String,
    },
    IncrementalVacuum {
        of: u32,
        pages: Option<u64>,
    },
    Serialize {
        of: String,
    },
    OpenBlob {
        of: String,
        table: String,
        column: String,
        rowid: i64,
        bytes: Option<usize>,
    },
    ReadBlob {
        of: String,
        position: usize,
        bytes: usize,
        value: Option<Value>,
    },
    WriteBlob {
        of: String,
        position: usize,
        value: Value,
    },
    /// A function or a collation of the driver's, under its own name or another.
    Create {
        of: String,
        r#as: Option<String>,
    },
    Remove {
        of: String,
        r#as: Option<String>,
    },
    Await {
        of: String,
    },
    Drop {
        of: String,
    },
    WriteFile {
        of: Value,
    },
}

const COMMON: [&str; 4] = ["in", "timeout_ms", "start", "error"];

/// Returns which of the common fields a verb may have, or `None` for what is no verb.
fn common_of(verb: &str) -> Option<&'static [&'static str]> {
    Some(match verb {
        "raise" | "await" | "drop" | "write_file" => &[],
        "next" | "read_blob" | "write_blob" => &["error"],
        "transaction" => &["in", "timeout_ms", "error"],
        "create" | "remove" | "savepoint" | "release" | "rollback_to" => &["in", "error"],
        "connection" => &["in"],
        "open" | "close" | "commit" | "rollback" => &["start", "error"],
        "execute"
        | "run"
        | "execute_many"
        | "query_many"
        | "batch"
        | "execute_script"
        | "query"
        | "query_one"
        | "query_value"
        | "query_optional"
        | "query_optional_value"
        | "query_values"
        | "query_json"
        | "stream"
        | "snapshot"
        | "prepare"
        | "begin"
        | "migrate"
        | "backup"
        | "vacuum"
        | "vacuum_into"
        | "incremental_vacuum"
        | "serialize"
        | "open_blob" => &COMMON,
        _ => return None,
    })
}

impl TryFrom<Map<String, Json>> for Step {
    type Error = String;

    fn try_from(step: Map<String, Json>) -> Result<Self, String> {
        let shown = Json::Object(step.clone());
        let (common, mut rest): (Map<_, _>, Map<_, _>) =
            step.into_iter().partition(|(field, _)| COMMON.contains(&&**field));
        let verbs: Vec<_> = rest.keys().filter(|field| common_of(field).is_some()).cloned().collect();
        let [verb] = &*verbs else { return Err(format!("a step has one verb: {shown}")) };
        if let Some(field) = common.keys().find(|field| !common_of(verb).unwrap_or_default().contains(&&***field)) {
            return Err(format!("{verb} has no field {field}: {shown}"));
        }
        if let Some(field) = ["of", "verb"].into_iter().find(|field| rest.contains_key(*field)) {
            return Err(format!("{verb} has no field {field}: {shown}"));
        }
        let of = rest.remove(verb).unwrap_or_default();
        rest.insert("of".to_owned(), of);
        rest.insert("verb".to_owned(), Json::String(verb.clone()));
        let wrong = |error: serde_json::Error| format!("{error}: {shown}");
        Ok(Self {
            common: serde_json::from_value(Json::Object(common)).map_err(wrong)?,
            verb: serde_json::from_value(Json::Object(rest)).map_err(wrong)?,
        })
    }
}

impl Common {
    /// Returns true if the call is made on the default handle, without a deadline.
    pub(crate) fn is_plain(&self) -> bool {
        self.on.is_none() && self.timeout_ms.is_none()
    }
}

impl Verb {
    pub(crate) fn json_options(&self) -> Option<&JsonOptions> {
        match self {
            Self::QueryJson { json_options, .. } => json_options.as_ref(),
            _ => None,
        }
    }

    /// The text of a verb that runs one.
    pub(crate) fn text(&self) -> Option<&Text> {
        match self {
            Self::Execute { of, .. }
            | Self::Run { of, .. }
            | Self::Query { of, .. }
            | Self::QueryOne { of, .. }
            | Self::QueryValue { of, .. }
            | Self::QueryOptional { of, .. }
            | Self::QueryOptionalValue { of, .. }
            | Self::QueryValues { of, .. }
            | Self::QueryJson { of, .. } => Some(of),
            _ => None,
        }
    }
}

/// Returns the kinds of error that the steps expect.
pub(crate) fn kinds(steps: &[Step]) -> Vec<&str> {
    let mut all = Vec::new();
    for step in steps {
        all.extend(step.common.error.as_ref().map(|error| &*error.kind));
        if let Verb::Transaction { of, .. } = &step.verb {
            all.extend(kinds(of));
        }
    }
    all
}
