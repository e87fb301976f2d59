//! Reads: each is a request of its own.
//!
//! Owns: one read, from its caller to its answer. Runs on the thread of the connection to the cluster. Invariant: a read whose caller
//! has left keeps no connection. Leaves out: which calls are reads.

use flatwater::bindings::server::{
    Answered, Asked, One, What, error, needs_database, of_statement, returns_no_rows, timeout,
};
use flatwater::calls::TimeoutEffect;
use flatwater::{Error, ErrorCode, Result, Rows};

use crate::check::{check, check_text};
use crate::dialect::Dialect;
use crate::options::Level;
use crate::request::{How, Known, Request};
use crate::results::{StatementResult, rows};
use crate::shared::Shared;

/// Serves a read.
pub(crate) async fn read(shared: &Shared, asked: Asked) {
    if !asked.starts() {
        return;
    }
    let answered = tokio::select! {
        answered = answered(shared, &asked) => answered,
        () = shared.left(&asked) => return,
    };
    asked.answer(answered);
}

async fn answered(shared: &Shared, asked: &Asked) -> Result<Answered> {
    match asked.what() {
        What::Live(parts) => snapshot(shared, asked, &parts).await.map(Answered::Live),
        _ => rows_of(shared, asked).await.map(Answered::Rows),
    }
}

/// Reads the newest state.
async fn snapshot(shared: &Shared, asked: &Asked, parts: &[One<'_>]) -> Result<Vec<Rows>> {
    let dialect = shared.cluster.dialect;
    let mut statements = dialect.snapshot();
    for one in parts {
        check_text(one.sql, dialect)
            .and_then(|()| check(one, dialect))
            .map_err(|error| of_statement(error, one.sql))?;
        statements.add(one);
    }
    let request = Request { how: How::Snapshot, body: statements.finish(), repeats: true, until: shared.ends(asked) };
    let results = known(shared.cluster.ask(&request).await)?;
    let all = parts
        .iter()
        .zip(results)
        .map(|(one, part)| result(one, vec![part]).map_err(|error| of_statement(error, one.sql)));
    let all: Vec<Rows> = all.collect::<Result<_>>()?;
    if all.len() == parts.len() { Ok(all) } else { Err(no_result()) }
}

async fn rows_of(shared: &Shared, asked: &Asked) -> Result<Rows> {
    let one = query_of(asked, shared.cluster.dialect)?;
    let (level, end) = (shared.levels.get(asked.way()), shared.ends(asked));
    if shared.cluster.dialect == Dialect::Libsql && matches!(level, Level::None { freshness: Some(_) }) {
        let hint = "read with Level::None { freshness: None }: a replica waits until it has what this client has seen";
        return Err(error(ErrorCode::InvalidOption, "a libSQL server has no freshness".into(), hint));
    }
    // Who leads is the newest.
    let at_least = matches!(level, Level::None { .. }).then(|| shared.cluster.newest()).flatten();
    let mut statements = shared.cluster.dialect.read(at_least);
    statements.add(&one);
    let request = Request { how: How::Read(level), body: statements.finish(), repeats: true, until: end };
    result(&one, known(shared.cluster.ask(&request).await)?)
}

fn known(known: Known) -> Result<Vec<StatementResult>> {
    match known {
        Known::Results(results) => Ok(results),
        Known::Refused(error) => Err(error),
        Known::Undone(failure) | Known::Doubtful(failure) => Err(failure.error()),
        Known::TooLate(why) | Known::Unknown(why) => Err(too_late(&why)),
    }
}

/// Returns the query of a read, which can be sent.
pub(crate) fn query_of(asked: &Asked, dialect: Dialect) -> Result<One<'_>> {
    let one = match asked.what() {
        What::Query(one) => one,
        What::Other(name) => return Err(needs_database(name)),
        _ => return Err(no_result()),
    };
    check_text(one.sql, dialect)?;
    check(&one, dialect)?;
    Ok(one)
}

pub(crate) fn result(one: &One<'_>, mut results: Vec<StatementResult>) -> Result<Rows> {
    match results.pop().filter(|_| results.is_empty()) {
        Some(StatementResult::Failed(failure)) => Err(failure.error()),
        Some(StatementResult::Rows { columns, values }) => rows(one.sql, columns, &values, false).ok_or_else(no_result),
        Some(StatementResult::Done) => Err(returns_no_rows()),
        None => Err(no_result()),
    }
}

/// The answer has not the form that the server gives.
pub(crate) fn no_result() -> Error {
    error(
        ErrorCode::AnswerLost,
        "the server's answer does not fit the request".into(),
        "look at what is reached at its address",
    )
}

pub(crate) fn too_late(why: &str) -> Error {
    timeout(format!("the time of the call was over: {why}"), TimeoutEffect::No)
}
