//! Looking whether something was committed, for live queries.
//!
//! Owns: asking the server for its counter. Runs on the thread of the connection to the server. Invariant: a commit that was acknowledged before
//! a look is told at the latest after it. Leaves out: what was seen before (`seen`), the queries that run then, which read the newest state.

use flatwater::bindings::server::Changes;
use serde::Deserialize;

use crate::dialect::Dialect;
use crate::http::Sent;
use crate::options::Level;
use crate::request::{How, Verdict};
use crate::seen::Counter;
use crate::shared::Shared;

/// Looks, unless a look is under way.
pub(crate) async fn look(shared: &Shared, changes: Changes) {
    if !shared.seen.begin() {
        return;
    }
    let counter = match shared.cluster.dialect {
        Dialect::Rqlite => of_rqlite(shared).await,
        Dialect::Libsql => of_libsql(shared).await,
    };
    if shared.seen.end(counter) {
        changes.tell();
    }
}

/// What a node of rqlite says of itself.
#[derive(Deserialize)]
struct Store {
    db_applied_index: Option<u64>,
    /// False if it knows of no leader, as one that is cut off from the others: its number stands still.
    ready: Option<bool>,
}

/// The number of the newest entry of the log that has changed the database of the leader, or of the node that is taken for it: that has it a
/// little later.
async fn of_rqlite(shared: &Shared) -> Counter {
    let cluster = &shared.cluster;
    let node = cluster.leader();
    match cluster.http.get(&node, "/status?key=store", cluster.attempt).await {
        Sent::Answer { status: 200, body, .. } => match serde_json::from_slice(&body) {
            Ok(Store { ready: Some(false), .. }) => {
                cluster.failed(&node);
                Counter::Unknown
            }
            Ok(Store { db_applied_index: Some(counter), .. }) => Counter::At(counter),
            _ => Counter::Untold,
        },
        // Another permission is needed for it.
        Sent::Answer { .. } => Counter::Untold,
        Sent::Unreached(_) | Sent::Untrusted(_) | Sent::Unanswered(_) => {
            cluster.failed(&node);
            Counter::Unknown
        }
    }
}

/// The number of the newest frame of the primary's log, which comes with each answer.
async fn of_libsql(shared: &Shared) -> Counter {
    let cluster = &shared.cluster;
    let (node, before, how) = (cluster.leader(), cluster.newest(), How::Read(Level::Strong));
    let mut question = cluster.dialect.read(None);
    question.own("SELECT 1", &[]);
    let sent = cluster.http.post(&node, &cluster.dialect.path(how), question.finish(), cluster.attempt).await;
    match cluster.dialect.verdict(how, sent) {
        Verdict::Results { index, .. } => {
            cluster.saw(&node, before, index);
            index.map_or(Counter::Untold, Counter::At)
        }
        _ => Counter::Unknown,
    }
}
