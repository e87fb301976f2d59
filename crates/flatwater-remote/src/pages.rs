//! Results that are fetched in parts, where the server has cursors.
//!
//! Owns: one such result, from its query to its last part. Runs as a task on the thread of the connection to the server. Invariants: a result that
//! cannot be read in parts is read whole, as any other; one that nobody fetches is let go of. Leaves out: the cursor (`libsql::cursor`).

use std::time::Duration;

use flatwater::bindings::server::{Asked, Rest, error};
use flatwater::{ErrorCode, Result, Rows};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::dialect::Dialect;
use crate::forms::Statements;
use crate::libsql::cursor::{Broken, Cursor};
use crate::libsql::json::Steps;
use crate::options::Level;
use crate::reads::{no_result, query_of, read, too_late};
use crate::results::rows;
use crate::shared::Shared;

/// A result that is not fetched from for so long is let go of.
const IDLE: Duration = Duration::from_secs(30);

/// Serves a query whose rows are wanted in parts.
pub(crate) async fn serve(shared: &Shared, asked: Asked) {
    if shared.cluster.dialect != Dialect::Libsql || !asked.starts() {
        return read(shared, asked).await;
    }
    let place = tokio::time::timeout_at(shared.ends(&asked).into(), shared.cursors.acquire());
    let place = tokio::select! {
        place = place => place,
        () = shared.left(&asked) => return,
    };
    let Ok(_place) = place else {
        return asked
            .answer(Err(too_late("other results of this client were before it, which are not read to their end")));
    };
    let begun = tokio::select! {
        begun = begin(shared, &asked) => begun,
        () = shared.left(&asked) => None,
    };
    match begun {
        Some((first, cursor, sql)) => go_on(shared, asked, first, cursor, &sql).await,
        // It may be told what is wrong.
        None => read(shared, asked).await,
    }
}

/// Reads the first part. `None` if that is not there: then nothing of the result was used.
async fn begin(shared: &Shared, asked: &Asked) -> Option<(Rows, Cursor, String)> {
    let one = query_of(asked, Dialect::Libsql).ok()?;
    let cluster = &shared.cluster;
    let is_near = matches!(shared.levels.get(asked.way()), Level::None { .. });
    let node = if is_near { cluster.any() } else { cluster.leader() };
    let mut statements = Statements::Libsql(Steps::read(is_near.then(|| cluster.newest()).flatten()));
    statements.add(&one);
    let Statements::Libsql(query) = statements else { return None };
    let mut cursor = Cursor::open(&cluster.http, node, query, cluster.attempt).await?;
    match cursor.part(cluster.attempt).await {
        Ok(part) => {
            let first = rows(one.sql, cursor.columns.clone(), &part, false)?;
            Some((first, cursor, one.sql.to_owned()))
        }
        Err(_) => {
            cursor.close(&cluster.http, cluster.attempt).await;
            None
        }
    }
}

/// Answers the parts, until there is none, or nobody wants them.
async fn go_on(shared: &Shared, asked: Asked, first: Rows, mut cursor: Cursor, sql: &str) {
    let cluster = &shared.cluster;
    if cursor.is_over {
        asked.answer(Ok(flatwater::bindings::server::Answered::Rows(first)));
    } else {
        let (tell, mut wanted) = mpsc::unbounded_channel();
        asked.answer_first(first, move |rest| tell.send(rest).is_ok());
        parts(shared, &mut wanted, &mut cursor, sql).await;
        wanted.close();
        while let Some(rest) = wanted.recv().await {
            if let Rest::Next(asked) = rest {
                asked.answer_next(Err(error(
                    ErrorCode::AnswerLost,
                    "the rest of the result is not there any more".into(),
                    "run the query again",
                )));
            }
        }
    }
    cursor.close(&cluster.http, cluster.attempt).await;
}

async fn parts(shared: &Shared, wanted: &mut UnboundedReceiver<Rest>, cursor: &mut Cursor, sql: &str) {
    while let Ok(Some(Rest::Next(asked))) = tokio::time::timeout(IDLE, wanted.recv()).await {
        let part = next(shared, cursor, sql).await;
        let is_over = !matches!(part, Ok((_, true)));
        if asked.starts() {
            asked.answer_next(part);
        }
        if is_over {
            return;
        }
    }
}

async fn next(shared: &Shared, cursor: &mut Cursor, sql: &str) -> Result<(Rows, bool)> {
    match cursor.part(shared.cluster.attempt).await {
        Ok(part) => {
            let part = rows(sql, cursor.columns.clone(), &part, false).ok_or_else(no_result)?;
            Ok((part, !cursor.is_over))
        }
        Err(Broken::Failed(failure)) => Err(failure.error()),
        Err(Broken::Lost(why)) => Err(error(ErrorCode::AnswerLost, why, "run the query again")),
    }
}
