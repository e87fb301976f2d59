//! The fields that a scenario and the verbs of its steps have.
//!
//! Owns: the types that they are read as. Pure. Invariant: a field that is not known is an error. Leaves out: which verb
//! has which (`step`), and values (`value`).
//!
//! Options have their names of Rust, durations in milliseconds; `deserialize` is the name of what `serialize` made,
//! or a value. In paths `{path}` is the path of the place, `:memory:` in memory, and `{directory}` an empty
//! directory.
//!
//! Of an error, `kind` must be given. `code` is the name of SQLite's extended code, or that of Flatwater, which is in
//! lower case; of a `constraint` what is not given is not there; `hint_contains` counts neither underscores nor case, because names have the language's form; `hint` is
//! `false` if there is none; `at` is the text at the error's offset in the SQL; `retryable` says whether the same
//! call may succeed later, `applied` whether the work was done (`no`, `yes`, `unknown`); `hides` is a text that the
//! error contains nowhere. A value that a language itself refuses, such as a text with a lone surrogate in Python,
//! has its own error, which counts as `misuse`.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;

use crate::value::Value;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Options {
    pub(crate) foreign_keys: Option<bool>,
    pub(crate) double_quoted_strings: Option<bool>,
    pub(crate) read_only: Option<bool>,
    pub(crate) create: Option<bool>,
    pub(crate) readers: Option<usize>,
    pub(crate) busy_timeout_ms: Option<u64>,
    pub(crate) on_open: Vec<String>,
    pub(crate) attach: BTreeMap<String, String>,
    pub(crate) migrations: Option<Vec<(String, String)>>,
    pub(crate) untrusted: Option<bool>,
    pub(crate) observe: Option<bool>,
    pub(crate) auto_vacuum: Option<AutoVacuum>,
    pub(crate) deserialize: Option<Bytes>,
    pub(crate) types: Option<Types>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AutoVacuum {
    Full,
    Incremental,
}

/// What the values of columns mean, where a language has that: `"standard"`, or words for columns by name.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Types {
    Standard,
    #[serde(untagged)]
    Words(#[allow(dead_code, reason = "Rust has no such option")] BTreeMap<String, String>),
}

/// The bytes that a database is opened with: the name of what a step serialized, or a value.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    Named(String),
    Value(Value),
}

/// What runs: SQL, a prepared statement, or parts of an `Sql`.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Text {
    Sql(String),
    Prepared { prepared: String },
    Built { built: Vec<Part> },
}

/// A part of an `Sql`.
#[derive(Debug, Deserialize)]
#[serde(try_from = "(String, Json)")]
pub(crate) enum Part {
    Push(String),
    Bind(Value),
    BindList(Vec<Value>),
    PushIdentifier(String),
}

/// The parameters of one run.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Params {
    Positional(Vec<Value>),
    Named(BTreeMap<String, Value>),
}

impl Default for Params {
    fn default() -> Self {
        Self::Positional(Vec::new())
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunResult {
    pub(crate) changes: Option<u64>,
    #[serde(default, deserialize_with = "given")]
    pub(crate) last_insert_rowid: Option<Option<i64>>,
    #[serde(default, deserialize_with = "given")]
    pub(crate) rows: Option<Option<Vec<Vec<Value>>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct JsonOptions {
    pub(crate) arrays: bool,
    pub(crate) big_integers_as_strings: bool,
    pub(crate) embed: Vec<String>,
}

/// The constraint that an error is of.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Constraint {
    pub(crate) kind: String,
    pub(crate) table: Option<String>,
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    pub(crate) name: Option<String>,
}

/// How a call fails.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Failure {
    pub(crate) kind: String,
    pub(crate) code: Option<String>,
    pub(crate) constraint: Option<Constraint>,
    pub(crate) message_contains: Option<String>,
    pub(crate) hint_contains: Option<String>,
    pub(crate) hint: Option<bool>,
    pub(crate) sql_contains: Option<String>,
    pub(crate) at: Option<String>,
    pub(crate) retryable: Option<bool>,
    pub(crate) applied: Option<String>,
    pub(crate) hides: Option<String>,
}

/// Reads a field that is there, also if it is `null`.
pub(crate) fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(field: D) -> Result<Option<T>, D::Error> {
    T::deserialize(field).map(Some)
}

impl TryFrom<(String, Json)> for Part {
    type Error = String;

    fn try_from((part, of): (String, Json)) -> Result<Self, String> {
        let read = match &*part {
            "push" => serde_json::from_value(of).map(Self::Push),
            "bind" => serde_json::from_value(of).map(Self::Bind),
            "bind_list" => serde_json::from_value(of).map(Self::BindList),
            "push_identifier" => serde_json::from_value(of).map(Self::PushIdentifier),
            _ => return Err(format!("{part:?} is no part of an Sql")),
        };
        read.map_err(|error| error.to_string())
    }
}
