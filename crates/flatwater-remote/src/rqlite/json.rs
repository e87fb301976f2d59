//! The statements of a request, as JSON, and its path.
//!
//! Owns: writing them. Pure. Invariant: integers have all their 64 bits, and REALs a point, so that none becomes the other. Leaves
//! out: which statements, and whether they can be sent (`check`).

use std::io::Write as _;

use flatwater::ValueRef;
use flatwater::bindings::server::One;

use crate::options::Level;
use crate::request::How;

/// The statements of one request.
pub(crate) struct Statements {
    json: Vec<u8>,
    number: usize,
}

impl Default for Statements {
    fn default() -> Self {
        Self { json: vec![b'['], number: 0 }
    }
}

impl Statements {
    /// Adds a statement of ours, whose values are integers.
    pub(crate) fn own(&mut self, sql: &str, values: &[i64]) {
        self.begin(sql);
        for value in values {
            let _ = write!(self.json, ",{value}");
        }
        self.json.push(b']');
    }

    /// Adds a caller's statement, which was checked.
    pub(crate) fn add(&mut self, one: &One<'_>) {
        self.begin(one.sql);
        let mut has_names = false;
        for (name, value) in one.values() {
            self.json.push(b',');
            if let Some(name) = name {
                self.json.push(if has_names { b' ' } else { b'{' });
                has_names = true;
                self.text(name.trim_start_matches([':', '@', '$']));
                self.json.push(b':');
            }
            self.value(value);
        }
        self.json.extend_from_slice(if has_names { b"}]" } else { b"]" });
    }

    fn begin(&mut self, sql: &str) {
        if self.number > 0 {
            self.json.push(b',');
        }
        self.number += 1;
        self.json.push(b'[');
        self.text(sql);
    }

    fn value(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.json.extend_from_slice(b"null"),
            ValueRef::Integer(value) => {
                let _ = write!(self.json, "{value}");
            }
            // Its shortest form always has a point or an exponent.
            ValueRef::Real(value) => {
                let _ = serde_json::to_writer(&mut self.json, &value);
            }
            ValueRef::Text(text) => self.text(&String::from_utf8_lossy(text)),
            ValueRef::Blob(bytes) => {
                let _ = serde_json::to_writer(&mut self.json, bytes);
            }
        }
    }

    fn text(&mut self, text: &str) {
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut self.json, text);
    }

    /// Returns the body of the request.
    pub(crate) fn finish(mut self) -> bytes::Bytes {
        self.json.push(b']');
        self.json.into()
    }
}

/// Not `/db/request`: there a statement that cannot be prepared does not undo the others, in versions up to 10.2.7. The texts run as they are:
/// the server would print those that ask for the time or for a random value anew, without parts that its parser does not keep.
const WRITE: &str = "/db/execute?transaction&blob_array&redirect&norwtime&norwrandom";

/// Returns the path of a request. Only a leader that is wanted is asked to send a follower's clients on.
pub(crate) fn path(how: How) -> String {
    let level = match how {
        How::Write => return WRITE.to_owned(),
        How::Snapshot => "transaction&redirect&level=linearizable".to_owned(),
        How::Read(Level::Strong) => "redirect&level=strong".to_owned(),
        How::Read(Level::Linearizable) => "redirect&level=linearizable".to_owned(),
        How::Read(Level::Weak) => "redirect&level=weak".to_owned(),
        How::Read(Level::None { freshness: Some(freshness) }) => {
            format!("level=none&freshness={}us&freshness_strict", freshness.as_micros().max(1))
        }
        How::Read(Level::None { freshness: None }) => "level=none".to_owned(),
    };
    format!("/db/query?blob_array&noparse&{level}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_level_has_its_path() {
        let paths = [
            Level::Strong,
            Level::Linearizable,
            Level::Weak,
            Level::None { freshness: None },
            Level::None { freshness: Some(Duration::from_millis(250)) },
        ];
        let expected = [
            "/db/query?blob_array&noparse&redirect&level=strong",
            "/db/query?blob_array&noparse&redirect&level=linearizable",
            "/db/query?blob_array&noparse&redirect&level=weak",
            "/db/query?blob_array&noparse&level=none",
            "/db/query?blob_array&noparse&level=none&freshness=250000us&freshness_strict",
        ];
        assert_eq!(paths.map(|level| path(How::Read(level))), expected);
    }
}
