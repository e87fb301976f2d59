//! The statements of a request, as the steps of a batch.
//!
//! Owns: writing them, and what stands around them. Pure. Invariants: a step runs only if the one before it succeeded; what was begun in
//! a request ends in it; integers have all their 64 bits. Leaves out: which statements, and whether they can be sent (`check`).

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use flatwater::ValueRef;
use flatwater::bindings::server::One;

pub(crate) const PATH: &str = "/v3/pipeline";
pub(crate) const CURSOR_PATH: &str = "/v3/cursor";

/// What stands around the statements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Around {
    Nothing,
    /// One transaction.
    Transaction,
    /// One transaction that reads.
    Snapshot,
    /// The beginning of a transaction that stays open.
    Begin,
    /// Steps of an open transaction. Without an open one nothing runs.
    Open,
    /// A savepoint of an open transaction, behind so many steps.
    Savepoint {
        behind: usize,
    },
}

/// The savepoint of a call. Those of the caller have another name, so one that an error has left open stands in no way.
const SAVEPOINT: &str = "SAVEPOINT _flatwater";
const RELEASE: &str = "RELEASE _flatwater";
const ROLLBACK_TO: &str = "ROLLBACK TO _flatwater";

impl Around {
    /// How many steps come before the first statement.
    pub(crate) fn before(self) -> usize {
        match self {
            Self::Nothing | Self::Open => 0,
            Self::Transaction | Self::Snapshot | Self::Begin => 1,
            Self::Savepoint { behind } => behind + 1,
        }
    }

    /// How many come after the last one.
    pub(crate) fn after(self) -> usize {
        match self {
            Self::Nothing | Self::Open => 0,
            Self::Begin => 1,
            Self::Transaction | Self::Snapshot => 2,
            Self::Savepoint { .. } => 3,
        }
    }
}

/// A batch of steps.
pub(crate) struct Steps {
    json: Vec<u8>,
    number: usize,
    around: Around,
    /// The state of the database that is wanted at least.
    index: Option<u64>,
}

impl Steps {
    pub(crate) fn transaction() -> Self {
        Self::new(Around::Transaction, None)
    }

    pub(crate) fn read(index: Option<u64>) -> Self {
        Self::new(Around::Nothing, index)
    }

    pub(crate) fn new(around: Around, index: Option<u64>) -> Self {
        let mut steps = Self { json: Vec::new(), number: 0, around, index };
        match around {
            Around::Transaction | Around::Begin => steps.own("BEGIN IMMEDIATE", &[]),
            Around::Snapshot => steps.own("BEGIN", &[]),
            Around::Nothing | Around::Open | Around::Savepoint { .. } => {}
        }
        steps
    }

    /// The steps of a call in a transaction, which come behind these.
    pub(crate) fn savepoint(before: &[&str]) -> Self {
        let mut steps = Self::open(before, Around::Savepoint { behind: before.len() });
        steps.own(SAVEPOINT, &[]);
        steps
    }

    /// The steps by which a transaction is committed, behind these.
    pub(crate) fn commit(before: &[&str]) -> Self {
        Self::open(before, Around::Open)
    }

    fn open(before: &[&str], around: Around) -> Self {
        let mut steps = Self::new(around, None);
        before.iter().for_each(|sql| steps.own(sql, &[]));
        steps
    }

    pub(crate) fn around(&self) -> Around {
        self.around
    }

    /// Adds a statement of ours, whose values are integers.
    pub(crate) fn own(&mut self, sql: &str, values: &[i64]) {
        self.begin(sql);
        self.json.extend_from_slice(br#","args":["#);
        for (at, value) in values.iter().enumerate() {
            self.comma(at);
            self.value(ValueRef::Integer(*value));
        }
        self.json.extend_from_slice(b"]}}");
    }

    /// Adds a caller's statement, which was checked.
    pub(crate) fn add(&mut self, one: &One<'_>) {
        self.begin(one.sql);
        let has_names = one.values().next().is_some_and(|(name, _)| name.is_some());
        self.json.extend_from_slice(if has_names { br#","named_args":["# } else { br#","args":["# });
        for (at, (name, value)) in one.values().enumerate() {
            self.comma(at);
            if let Some(name) = name {
                self.json.extend_from_slice(br#"{"name":"#);
                self.text(name);
                self.json.extend_from_slice(br#","value":"#);
            }
            self.value(value);
            if name.is_some() {
                self.json.push(b'}');
            }
        }
        self.json.extend_from_slice(b"]}}");
    }

    /// Returns the body of the request, which goes on with the connection of a baton, and closes the connection if it `closes`.
    pub(crate) fn finish(mut self, baton: Option<&str>, closes: bool) -> Bytes {
        let last = self.number.saturating_sub(1);
        match self.around {
            Around::Nothing => {}
            Around::Open => self.own("COMMIT", &[]),
            Around::Begin => self.unless(last, "ROLLBACK"),
            Around::Transaction | Around::Snapshot => {
                self.own("COMMIT", &[]);
                self.unless(last + 1, "ROLLBACK");
            }
            Around::Savepoint { behind } => {
                self.own(RELEASE, &[]);
                self.unless_but(last + 1, behind, ROLLBACK_TO);
                self.own(RELEASE, &[]);
            }
        }
        let mut body = br#"{"baton":"#.to_vec();
        let _ = serde_json::to_writer(&mut body, &baton);
        body.extend_from_slice(br#","requests":["#);
        if self.number > 0 {
            body.extend_from_slice(br#"{"type":"batch","#);
            self.write_batch(&mut body);
        }
        if closes {
            body.extend_from_slice(if self.number > 0 { br#",{"type":"close"}"# } else { br#"{"type":"close"}"# });
        }
        body.extend_from_slice(b"]}");
        body.into()
    }

    /// Returns the body of a request whose rows are read as they come.
    pub(crate) fn finish_cursor(mut self) -> Bytes {
        let mut body = br#"{"baton":null,"#.to_vec();
        self.write_batch(&mut body);
        body.into()
    }

    /// Writes the steps as the last key of an object, and its end.
    fn write_batch(&mut self, body: &mut Vec<u8>) {
        body.extend_from_slice(br#""batch":{"steps":["#);
        body.append(&mut self.json);
        body.push(b']');
        if let Some(index) = self.index {
            let _ = write!(body, r#","replication_index":"{index}""#);
        }
        body.extend_from_slice(b"}}");
    }

    /// Adds a step that runs if that of this number did not succeed.
    fn unless(&mut self, step: usize, sql: &str) {
        let failed = format!(r#"{{"type":"not","cond":{{"type":"ok","step":{step}}}}}"#);
        self.step(&failed, sql);
        self.json.extend_from_slice(b"}}");
    }

    /// The same, if another one did.
    fn unless_but(&mut self, step: usize, but: usize, sql: &str) {
        let failed = format!(r#"{{"type":"not","cond":{{"type":"ok","step":{step}}}}}"#);
        let both = format!(r#"{{"type":"and","conds":[{failed},{{"type":"ok","step":{but}}}]}}"#);
        self.step(&both, sql);
        self.json.extend_from_slice(b"}}");
    }

    fn begin(&mut self, sql: &str) {
        match self.number.checked_sub(1) {
            Some(before) => self.step(&format!(r#"{{"type":"ok","step":{before}}}"#), sql),
            None if matches!(self.around, Around::Open | Around::Savepoint { .. }) => {
                self.step(r#"{"type":"not","cond":{"type":"is_autocommit"}}"#, sql);
            }
            None => self.step("null", sql),
        }
    }

    fn step(&mut self, condition: &str, sql: &str) {
        self.comma(self.number);
        self.number += 1;
        let _ = write!(self.json, r#"{{"condition":{condition},"stmt":{{"sql":"#);
        self.text(sql);
    }

    fn comma(&mut self, at: usize) {
        if at > 0 {
            self.json.push(b',');
        }
    }

    fn value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.json.extend_from_slice(br#"{"type":"null"}"#),
            ValueRef::Integer(value) => {
                let _ = write!(self.json, r#"{{"type":"integer","value":"{value}"}}"#);
            }
            ValueRef::Real(value) => {
                self.json.extend_from_slice(br#"{"type":"float","value":"#);
                let _ = serde_json::to_writer(&mut self.json, &value);
                self.json.push(b'}');
            }
            ValueRef::Text(text) => {
                self.json.extend_from_slice(br#"{"type":"text","value":"#);
                self.text(&String::from_utf8_lossy(text));
                self.json.push(b'}');
            }
            ValueRef::Blob(bytes) => {
                let _ = write!(self.json, r#"{{"type":"blob","base64":"{}"}}"#, STANDARD_NO_PAD.encode(bytes));
            }
        }
    }

    fn text(&mut self, text: &str) {
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut self.json, text);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn steps(steps: Steps, baton: Option<&str>, closes: bool) -> Value {
        serde_json::from_slice(&steps.finish(baton, closes)).unwrap()
    }

    fn texts(body: &Value) -> Vec<&str> {
        let steps = body["requests"][0]["batch"]["steps"].as_array().unwrap();
        steps.iter().map(|step| step["stmt"]["sql"].as_str().unwrap()).collect()
    }

    #[test]
    fn each_step_runs_if_the_one_before_did_and_what_was_begun_is_ended() {
        let mut all = Steps::transaction();
        all.own("INSERT INTO t VALUES (?)", &[i64::MIN]);
        let body = steps(all, None, true);
        assert_eq!(texts(&body), ["BEGIN IMMEDIATE", "INSERT INTO t VALUES (?)", "COMMIT", "ROLLBACK"]);
        let of = |step: usize| &body["requests"][0]["batch"]["steps"][step]["condition"];
        assert_eq!(*of(0), Value::Null);
        assert_eq!((of(1), of(2)), (&json!({"type": "ok", "step": 0}), &json!({"type": "ok", "step": 1})));
        assert_eq!(*of(3), json!({"type": "not", "cond": {"type": "ok", "step": 2}}));
        let value = &body["requests"][0]["batch"]["steps"][1]["stmt"]["args"][0];
        assert_eq!(*value, json!({"type": "integer", "value": "-9223372036854775808"}));
        assert_eq!(body["requests"][1], json!({"type": "close"}));
    }

    #[test]
    fn a_savepoint_needs_an_open_transaction_and_is_undone_if_a_step_fails() {
        let mut all = Steps::savepoint(&["SAVEPOINT nested"]);
        let around = all.around();
        all.own("DELETE FROM t", &[]);
        let body = steps(all, Some("b"), false);
        assert_eq!(texts(&body)[..5], ["SAVEPOINT nested", SAVEPOINT, "DELETE FROM t", RELEASE, ROLLBACK_TO]);
        assert_eq!(texts(&body).len(), around.before() + 1 + around.after());
        let of = |step: usize| &body["requests"][0]["batch"]["steps"][step]["condition"];
        assert_eq!(*of(0), json!({"type": "not", "cond": {"type": "is_autocommit"}}));
        let undone = json!({"type": "and", "conds": [
            {"type": "not", "cond": {"type": "ok", "step": 3}}, {"type": "ok", "step": 1}]});
        assert_eq!(*of(4), undone);
        assert_eq!((&body["baton"], body["requests"].as_array().unwrap().len()), (&json!("b"), 1));
    }

    #[test]
    fn a_read_says_what_it_must_see_and_nothing_but_a_close_is_a_request_too() {
        let mut read = Steps::read(Some(7));
        read.own("SELECT 1", &[]);
        let body = steps(read, None, true);
        assert_eq!((texts(&body), &body["requests"][0]["batch"]["replication_index"]), (vec!["SELECT 1"], &json!("7")));
        let close = steps(Steps::read(None), Some("b"), true);
        assert_eq!(close, json!({"baton": "b", "requests": [{"type": "close"}]}));
    }
}
