//! What an answer means for its request: whether it was executed, and what to do.
//!
//! Owns: the table of what is known. Pure. Invariant: "it was not executed" is said only for what is in the list of what never stays;
//! whatever is not listed is unknown, also a text of a later version of the server. Leaves out: asking again.
//!
//! | what came back | executed | then |
//! |---|---|---|
//! | our socket did not reach the server | no | wait, ask again |
//! | BEGIN has failed, or the server has ended the transaction in its middle because it took too long | no | wait, ask again |
//! | 200, a step of a statement has failed | all of it undone | the caller's error |
//! | 200, COMMIT has failed | undone | the caller's error |
//! | 200, the batch cannot be read | no | the caller's error |
//! | 429: the server has no connection left | no | wait, ask again |
//! | 500; 200, and an answer that is too large, or an error of a primary behind a replica | not known, and it would fail again | a write is asked for and ended; the caller's error |
//! | a redirect, 400, 401, 403, 404, a server that is not trusted | no | the caller's error |
//! | 200, a value that JSON cannot say | yes | the results of a write are asked for |
//! | 200, all steps have run | yes | the results |
//! | everything else | unknown | a read is asked again, and a write that has its guard |
//!
//! A replica runs a write at its primary, and may fail by itself meanwhile: an answer that is too large for it says nothing of the primary.

use flatwater::bindings::server::error;
use flatwater::{Error, ErrorCode};

use super::answer::{Answer, Batch, ServerError, Step, error_of};
use super::json::Around;
use crate::http::{Sent, untrusted};
use crate::request::{How, Verdict};
use crate::results::{Failure, StatementResult};

/// The errors by which the server says that it has ended a transaction, or has not begun it.
const ENDED: &[&str] = &["TRANSACTION_TIMEOUT"];

/// The errors of a batch of which no step has run.
const NOT_RUN: &[&str] = &["SQL_PARSE_ERROR", "SQL_NO_STATEMENT", "SQL_MANY_STATEMENTS"];

/// The error of a step that a replica had its primary run.
const OF_PRIMARY: &str = "PROXY_ERROR";

pub(crate) fn verdict(how: How, sent: Sent) -> Verdict {
    let around = match how {
        How::Write => Around::Transaction,
        How::Snapshot => Around::Snapshot,
        How::Read(_) => Around::Nothing,
    };
    match sent {
        Sent::Unreached(why) => Verdict::NotExecuted(why),
        Sent::Untrusted(why) => Verdict::Refused(untrusted(why)),
        Sent::Unanswered(why) => Verdict::Unknown(why),
        Sent::Answer { status: 200, body, .. } => match Answer::parse(&body).and_then(Answer::batch) {
            Some(Batch::Steps { steps, index }) => of_steps(steps, around, index),
            Some(Batch::Failed(error)) => of_whole(error),
            None => Verdict::Unknown("the answer is not one of a libSQL server".into()),
        },
        Sent::Answer { status: 429, body, .. } => Verdict::NotExecuted(shown(&body)),
        Sent::Answer { status: 500, body, .. } => Verdict::Doubtful(Failure::of_message(shown(&body))),
        Sent::Answer { status, location, body } => match refusal(status, location.as_deref(), &body) {
            Some(refusal) => Verdict::Refused(refusal),
            None => Verdict::Unknown(format!("the server answered with status {status}: {}", shown(&body))),
        },
    }
}

/// Returns what the steps of a batch came to.
pub(crate) fn of_steps(steps: Vec<Step>, around: Around, index: Option<u64>) -> Verdict {
    let nonsense = || Verdict::Unknown("the server's answer does not fit the request".into());
    let mut results = Vec::new();
    let Some(last) = steps.len().checked_sub(around.after()) else { return nonsense() };
    let (mut has_failed, mut is_unmade, mut is_kept) = (false, false, false);
    for (at, step) in steps.into_iter().enumerate() {
        let is_own = at < around.before() || at >= last;
        match step {
            // What stands behind the COMMIT changes nothing any more.
            _ if is_kept => {}
            Step::Failed(error) if ENDED.contains(&&*error.code) => return Verdict::NotExecuted(error.message),
            Step::Failed(error) if error.code == OF_PRIMARY => {
                let message = format!("{}; the address must name the primary first", error.message);
                return Verdict::Doubtful(Failure::of_message(message));
            }
            // What is undone after a failure may have nothing to undo.
            Step::Failed(_) if has_failed => {}
            Step::Failed(error) if at < around.before() => return Verdict::NotExecuted(error.message),
            Step::Failed(error) if is_own => return Verdict::Undone(error.into()),
            Step::Failed(error) => {
                has_failed = true;
                results.push(StatementResult::Failed(error.into()));
            }
            Step::Skipped if has_failed => {}
            // There is nothing to undo.
            Step::Skipped if around == Around::Begin && at >= last => {}
            Step::Skipped => return nonsense(),
            Step::Ran(_) if is_own => is_kept = at == last && !has_failed,
            Step::Ran(_) | Step::Unmade if has_failed => return nonsense(),
            Step::Ran(result) => results.push(result),
            Step::Unmade => {
                is_unmade = true;
                results.push(StatementResult::Done);
            }
        }
    }
    if is_unmade && !has_failed {
        return Verdict::Unmade("the result has an infinite number, which the server's JSON cannot say".into());
    }
    Verdict::Results { results, index }
}

/// An error in the place of all steps.
pub(crate) fn of_whole(error: ServerError) -> Verdict {
    match &*error.code {
        code if ENDED.contains(&code) => Verdict::NotExecuted(error.message),
        code if NOT_RUN.contains(&code) => Verdict::Undone(Failure::from(error)),
        "RESPONSE_TOO_LARGE" => Verdict::Doubtful(Failure::from(error)),
        _ => Verdict::Unknown(error.message),
    }
}

/// The error of an answer by which the server refuses a request.
pub(crate) fn refusal(status: u16, location: Option<&str>, body: &[u8]) -> Option<Error> {
    let refused = |code, hint| error(code, format!("the server refused the request: {}", shown(body)), hint);
    Some(match (status, location) {
        (301 | 302 | 307 | 308, Some(location)) => error(
            ErrorCode::Server,
            format!("the server sends its clients to {}", without_user(location)),
            "use that address, if it is one of yours",
        ),
        (400, _) => refused(ErrorCode::Unsupported, "the server does not take this request"),
        (401 | 403, _) => refused(ErrorCode::Server, "the server does not permit it: look at the token and its rights"),
        (404, _) => error(
            ErrorCode::Server,
            "the server has no such database, or is no libSQL server".into(),
            "look at what is reached at its address; it must speak Hrana 3 over HTTP",
        ),
        _ => return None,
    })
}

/// The body of a refusal is a short text of the server, which has no value of a statement in it.
pub(crate) fn shown(body: &[u8]) -> String {
    let text = error_of(body).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    text.trim().chars().take(200).collect()
}

pub(crate) fn without_user(location: &str) -> &str {
    location.rsplit('@').next().unwrap_or(location)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use flatwater::ErrorKind;

    use super::*;

    fn failed(code: &str) -> Step {
        Step::Failed(ServerError { message: "SQLite error: no".into(), code: code.into() })
    }

    fn ran() -> Step {
        Step::Ran(StatementResult::Done)
    }

    /// BEGIN, the statements, COMMIT, ROLLBACK.
    fn of(steps: Vec<Step>) -> Verdict {
        of_steps(steps, Around::Transaction, None)
    }

    #[test]
    fn what_has_not_stayed_is_a_closed_list() {
        let is_not = |verdict| matches!(verdict, Verdict::NotExecuted(_));
        assert!(is_not(verdict(How::Write, Sent::Unreached(String::new()))));
        assert!(is_not(of(vec![failed("SQLITE_BUSY"), Step::Skipped, Step::Skipped, failed("SQLITE_UNKNOWN")])));
        assert!(is_not(of(vec![ran(), failed("TRANSACTION_TIMEOUT"), Step::Skipped, Step::Skipped])));
        assert!(is_not(of(vec![ran(), ran(), failed("TRANSACTION_TIMEOUT"), Step::Skipped])));
        assert!(is_not(verdict(How::Write, Sent::Answer { status: 429, location: None, body: Bytes::new() })));
        for code in ENDED {
            assert!(is_not(of_whole(ServerError { message: String::new(), code: (*code).into() })));
        }
        for code in NOT_RUN {
            let error = ServerError { message: String::new(), code: (*code).into() };
            assert!(matches!(of_whole(error), Verdict::Undone(_)), "{code}");
        }
    }

    #[test]
    fn what_would_fail_again_is_doubtful() {
        let is_doubtful = |verdict| matches!(verdict, Verdict::Doubtful(_));
        assert!(is_doubtful(of(vec![ran(), failed(OF_PRIMARY), Step::Skipped, Step::Skipped])));
        assert!(is_doubtful(of_whole(ServerError { message: String::new(), code: "RESPONSE_TOO_LARGE".into() })));
        let body = Bytes::from_static(br#"{"error":"invalid utf-8 sequence"}"#);
        let Verdict::Doubtful(failure) = verdict(How::Write, Sent::Answer { status: 500, location: None, body }) else {
            panic!("not doubtful")
        };
        assert_eq!(failure.message, "invalid utf-8 sequence");
    }

    #[test]
    fn what_is_not_listed_is_unknown() {
        let is_unknown = |verdict| matches!(verdict, Verdict::Unknown(_));
        assert!(is_unknown(verdict(How::Write, Sent::Unanswered(String::new()))));
        for code in ["BLOCKED", "UKNOWN", "", "LATER"] {
            assert!(is_unknown(of_whole(ServerError { message: String::new(), code: code.into() })), "{code}");
        }
        for (status, body) in [(200, ""), (200, "{}"), (204, ""), (408, ""), (502, ""), (503, "x")] {
            let body = Bytes::from_static(body.as_bytes());
            assert!(is_unknown(verdict(How::Write, Sent::Answer { status, location: None, body })), "{status}");
        }
        assert!(is_unknown(of(vec![ran(), Step::Skipped, Step::Skipped, Step::Skipped])));
        assert!(is_unknown(of(vec![ran()])));
        let ended_late = of(vec![ran(), ran(), ran(), failed("TRANSACTION_TIMEOUT")]);
        assert!(matches!(ended_late, Verdict::Results { .. }), "the COMMIT ran");
        assert!(is_unknown(of(vec![ran(), failed("SQLITE_CONSTRAINT"), ran(), Step::Skipped, Step::Skipped])));
    }

    #[test]
    fn a_statement_or_the_commit_fails_and_all_is_undone() {
        let Verdict::Results { results, .. } =
            of(vec![ran(), ran(), failed("SQLITE_CONSTRAINT"), Step::Skipped, Step::Skipped, ran()])
        else {
            panic!("no results")
        };
        assert!(matches!(&*results, [StatementResult::Done, StatementResult::Failed(_)]));
        assert!(matches!(of(vec![ran(), ran(), failed("SQLITE_CONSTRAINT"), ran()]), Verdict::Undone(_)));
        assert!(matches!(of(vec![ran(), Step::Unmade, ran(), Step::Skipped]), Verdict::Unmade(_)));
        let begun = of_steps(vec![ran(), ran(), Step::Skipped], Around::Begin, None);
        assert!(matches!(begun, Verdict::Results { results, .. } if results.len() == 1));
        let undone = vec![ran(), ran(), failed("SQLITE_CONSTRAINT"), Step::Skipped, ran(), ran()];
        let undone = of_steps(undone, Around::Savepoint { behind: 0 }, None);
        assert!(matches!(undone, Verdict::Results { results, .. } if results.len() == 2));
        let all = of(vec![ran(), ran(), ran(), Step::Skipped]);
        assert!(matches!(all, Verdict::Results { results, .. } if results.len() == 1));
    }

    #[test]
    fn a_refusal_is_final_and_has_no_secret() {
        let kind = |status| refusal(status, Some("https://a:secret@other/"), b"").map(|error| error.kind());
        assert_eq!(
            (kind(301), kind(401), kind(404)),
            (Some(ErrorKind::Open), Some(ErrorKind::Open), Some(ErrorKind::Open))
        );
        assert_eq!((kind(400), kind(500)), (Some(ErrorKind::Misuse), None));
        let redirect = refusal(307, Some("https://a:secret@other/"), b"").unwrap();
        assert!(redirect.message().contains("other") && !redirect.to_string().contains("secret"));
    }
}
