//! What an answer means for its request: whether it was executed, and what to do.
//!
//! Owns: the table of what is known. Pure. Invariant: "it was not executed" is said only for what is in the list of what never
//! executes anything; whatever is not listed is unknown, also a text of a later version of the server. Leaves out: asking again.
//!
//! | what came back | executed | then |
//! |---|---|---|
//! | our socket did not reach the node | no | another node |
//! | a redirect | no | the node that it names |
//! | 500 or 503, `leader not found` | no | wait, another node |
//! | 200, an error of the whole request, one of [`NOT_EXECUTED`] | no | wait, another node |
//! | 400, 401, 403, 404; 500 and `SQL rewrite`; a node that is not trusted | no | the caller's error |
//! | 200, an error of the whole request, which is one of SQLite: its COMMIT has failed | undone | the caller's error |
//! | 500, a value that JSON cannot say | yes | the results of a write are asked for |
//! | 200, results | yes, or all of it undone | the results |
//! | everything else | unknown | a read is asked again, and a write that has its guard |

use flatwater::bindings::server::error;
use flatwater::{Error, ErrorCode};

use flatwater::rusqlite::ffi;

use super::answer::Body;
use crate::http::{Sent, untrusted};
use crate::request::Verdict;
use crate::results::Failure;

/// The errors of a whole request that a node returns before it gives the request to the log. Of a node that was asked directly: one
/// that forwarded the request may have tried twice.
const NOT_EXECUTED: &[&str] = &[
    "leadership transfer in progress",
    "not leader",
    "leader not found",
    "store not open",
    "store not ready",
    "timed out enqueuing operation",
];

/// What one node can come to while the others execute the same entry of the log: it says nothing of them.
const OF_ONE_NODE: &[i32] = &[
    ffi::SQLITE_NOMEM,
    ffi::SQLITE_READONLY,
    ffi::SQLITE_INTERRUPT,
    ffi::SQLITE_IOERR,
    ffi::SQLITE_CORRUPT,
    ffi::SQLITE_FULL,
    ffi::SQLITE_CANTOPEN,
    ffi::SQLITE_BUSY,
    ffi::SQLITE_LOCKED,
    ffi::SQLITE_NOTADB,
];

/// Returns true for an error of a write that may have been applied by the other nodes.
pub(crate) fn is_of_one_node(failure: &Failure) -> bool {
    OF_ONE_NODE.contains(&(failure.code & 0xff)) || failure.message.contains("execute timeout")
}

/// A read at a node that is too far behind.
const STALE: &str = "stale read";

pub(crate) fn verdict(sent: Sent) -> Verdict {
    match sent {
        Sent::Unreached(why) => Verdict::NotExecuted(why),
        Sent::Untrusted(why) => Verdict::Refused(untrusted(why)),
        Sent::Unanswered(why) => Verdict::Unknown(why),
        Sent::Answer { status, location, body } => of_answer(status, location.as_deref(), &body),
    }
}

fn of_answer(status: u16, location: Option<&str>, body: &[u8]) -> Verdict {
    match (status, location.and_then(node_of)) {
        (301 | 302 | 307 | 308, Some(node)) => Verdict::Elsewhere(node),
        (200, _) => match Body::parse(body) {
            Some(Body::Results(results)) => Verdict::Results { results, index: None },
            Some(Body::Failed(message)) if NOT_EXECUTED.contains(&&*message) || message == STALE => {
                Verdict::NotExecuted(message)
            }
            Some(Body::Failed(message)) => match Failure::of_message(message) {
                failure if is_undone(&failure) => Verdict::Undone(failure),
                failure => Verdict::Unknown(failure.message),
            },
            None => Verdict::Unknown("the answer is not one of rqlite".into()),
        },
        (400, _) => Verdict::Refused(refused(ErrorCode::Unsupported, body, "the server does not take this request")),
        (401 | 403, _) => Verdict::Refused(refused(
            ErrorCode::Server,
            body,
            "the server does not permit it: look at the user, the password and the user's permissions",
        )),
        (404, _) => Verdict::Refused(error(
            ErrorCode::Server,
            "there is no rqlite at this address".into(),
            "look at what is reached there; a libSQL server has an address with libsql://",
        )),
        (500 | 503, _) if contains(body, "leader not found") => {
            Verdict::NotExecuted("the cluster has no leader".into())
        }
        (500, _) if contains(body, "SQL rewrite:") => {
            Verdict::Refused(refused(ErrorCode::RefusedByServer, body, "the server reads each text before it runs it"))
        }
        (500, _) if contains(body, "unsupported value") => {
            Verdict::Unmade("the result has an infinite number, which the server's JSON cannot say".into())
        }
        (status, _) => Verdict::Unknown(format!("the server answered with status {status}: {}", shown(body))),
    }
}

/// Returns true for an error of SQLite, which is that of a COMMIT, or a refusal of the whole request.
fn is_undone(failure: &Failure) -> bool {
    failure.code != ffi::SQLITE_ERROR || failure.message == "disallowed pragma"
}

fn refused(code: ErrorCode, body: &[u8], hint: &'static str) -> Error {
    error(code, format!("the server refused the request: {}", shown(body)), hint)
}

/// The body of a refusal is a short text of the server, which has no value of a statement in it.
fn shown(body: &[u8]) -> String {
    String::from_utf8_lossy(body).trim().chars().take(200).collect()
}

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|part| part == text.as_bytes())
}

/// The node of an address such as `http://10.0.0.1:4001/db/execute?redirect`.
fn node_of(location: &str) -> Option<String> {
    let (_, rest) = location.split_once("://")?;
    let node = rest.split(['/', '?']).next().filter(|node| !node.is_empty())?;
    // What a proxy adds before the host is not used.
    Some(node.rsplit('@').next().unwrap_or(node).to_owned())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use flatwater::ErrorKind;

    use super::*;

    fn of(status: u16, location: Option<&str>, body: &'static str) -> Verdict {
        verdict(Sent::Answer {
            status,
            location: location.map(str::to_owned),
            body: Bytes::from_static(body.as_bytes()),
        })
    }

    #[test]
    fn what_was_not_executed_is_a_closed_list() {
        let is_not = |verdict| matches!(verdict, Verdict::NotExecuted(_));
        assert!(is_not(verdict(Sent::Unreached(String::new()))));
        assert!(is_not(of(503, None, "leader not found")));
        assert!(is_not(of(500, None, "leader address: leader not found")));
        for message in NOT_EXECUTED {
            let body: &'static str = Box::leak(format!(r#"{{"results":[],"error":"{message}"}}"#).into_boxed_str());
            assert!(is_not(of(200, None, body)), "{message}");
        }
        assert!(is_not(of(200, None, r#"{"results":[],"error":"stale read"}"#)));
    }

    #[test]
    fn what_is_not_listed_is_unknown() {
        let is_unknown = |verdict| matches!(verdict, Verdict::Unknown(_));
        assert!(is_unknown(verdict(Sent::Unanswered(String::new()))));
        for (status, body) in [
            (200, r#"{"results":[],"error":"leadership lost while committing log"}"#),
            (200, r#"{"results":[],"error":"not leader any more, says a later version"}"#),
            (200, r#"{"results":[],"error":"dial tcp 127.0.0.1:4002: connect: connection refused"}"#),
            (200, "<html>"),
            (200, ""),
            (204, ""),
            (301, ""),
            (408, ""),
            (502, "leader not found"),
            (503, "overloaded"),
            (504, ""),
        ] {
            assert!(is_unknown(of(status, None, body)), "{status} {body}");
        }
    }

    #[test]
    fn a_redirect_names_a_node_and_a_refusal_is_final() {
        let to = |location| match of(301, Some(location), "") {
            Verdict::Elsewhere(node) => Some(node),
            _ => None,
        };
        assert_eq!(to("http://10.0.0.1:4001/db/execute?redirect").as_deref(), Some("10.0.0.1:4001"));
        assert_eq!(to("https://a:b@node:5").as_deref(), Some("node:5"));
        assert_eq!(to("/db/execute"), None);
        let kind = |status, body| match of(status, None, body) {
            Verdict::Refused(error) => Some(error.kind()),
            _ => None,
        };
        assert_eq!(kind(400, "no statements"), Some(ErrorKind::Misuse));
        assert_eq!((kind(401, ""), kind(403, "")), (Some(ErrorKind::Open), Some(ErrorKind::Open)));
        assert_eq!(kind(500, "SQL rewrite: near"), Some(ErrorKind::Sql));
        let failed = of(200, None, r#"{"results":[],"error":"FOREIGN KEY constraint failed"}"#);
        assert!(matches!(failed, Verdict::Undone(failure) if failure.message.starts_with("FOREIGN KEY")));
        assert!(matches!(of(500, None, "json: unsupported value: +Inf"), Verdict::Unmade(_)));
    }
}
