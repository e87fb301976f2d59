//! Reads: each is a request of its own.
//!
//! Owns: one read, from its caller to its answer. Runs on the thread of the connection to the cluster. Invariant: a read whose caller
//! has left keeps no connection. Leaves out: which calls are reads.

use flatwater::bindings::server::{Answered, Asked, One, What, error, sqlite_error, timeout};
use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorKind, Result, Rows};

use super::answer::{StatementResult, rows};
use super::ask::{Known, Request, To};
use super::messages::code_of;
use super::statement::{Statements, check, check_text};
use crate::options::Level;
use crate::thread::Shared;

/// Serves a read.
pub(crate) async fn read(shared: &Shared, asked: Asked) {
    if !asked.starts() {
        return;
    }
    let rows = tokio::select! {
        rows = rows_of(shared, &asked) => rows,
        () = shared.left(&asked) => return,
    };
    asked.answer(rows.map(Answered::Rows));
}

async fn rows_of(shared: &Shared, asked: &Asked) -> Result<Rows> {
    let What::Query(one) = asked.what() else { return Err(no_result()) };
    check_text(one.sql)?;
    check(&one)?;
    let mut statements = Statements::default();
    statements.add(&one);
    let (level, end) = (shared.levels.get(asked.way()), shared.ends(asked));
    let request = Request {
        path: path(level),
        body: statements.finish(),
        to: if matches!(level, Level::None { .. }) { To::Any } else { To::Leader },
        repeats: true,
        until: asked.deadline().map_or(end, |deadline| deadline.min(end)),
    };
    match shared.cluster.ask(&request).await {
        Known::Results(results) => result(&one, results),
        Known::Refused(error) => Err(error),
        Known::Undone(message) => Err(sqlite_error(code_of(&message), &message)),
        Known::TooLate(why) | Known::Unknown(why) => Err(too_late(&why)),
    }
}

fn result(one: &One<'_>, mut results: Vec<StatementResult>) -> Result<Rows> {
    match results.pop().filter(|_| results.is_empty()) {
        Some(StatementResult::Failed(message)) => Err(sqlite_error(code_of(&message), &message)),
        Some(StatementResult::Rows { columns, values }) => rows(one.sql, columns, values, false).ok_or_else(no_result),
        Some(StatementResult::Done) => Err(returns_no_rows()),
        None => Err(no_result()),
    }
}

/// The path of a read. Only a leader that is wanted is asked to send a follower's clients on.
fn path(level: Level) -> String {
    let level = match level {
        Level::Strong => "redirect&level=strong".to_owned(),
        Level::Linearizable => "redirect&level=linearizable".to_owned(),
        Level::Weak => "redirect&level=weak".to_owned(),
        Level::None { freshness: Some(freshness) } => {
            format!("level=none&freshness={}us&freshness_strict", freshness.as_micros().max(1))
        }
        Level::None { freshness: None } => "level=none".to_owned(),
    };
    format!("/db/query?blob_array&{level}")
}

pub(crate) fn returns_no_rows() -> Error {
    error(ErrorKind::Misuse, "the statement returns no rows".into(), "run it with execute")
}

/// The answer has not the form that rqlite gives.
pub(crate) fn no_result() -> Error {
    error(
        ErrorKind::Io,
        "the server's answer does not fit the request".into(),
        "look at what is reached at its address",
    )
}

fn too_late(why: &str) -> Error {
    timeout(format!("the time of the call was over: {why}"), TimeoutEffect::No)
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
            "/db/query?blob_array&redirect&level=strong",
            "/db/query?blob_array&redirect&level=linearizable",
            "/db/query?blob_array&redirect&level=weak",
            "/db/query?blob_array&level=none",
            "/db/query?blob_array&level=none&freshness=250000us&freshness_strict",
        ];
        assert_eq!(paths.map(path), expected);
    }
}
