//! chat: the mixed traffic of a chat service, one call after another.
//!
//! 500 users, 100 conversations of skewed popularity, 10,000 messages; 5 % new messages, 5 % updates of a conversation,
//! 45 % the last 20 messages with their senders, 45 % a user by id. The first 500 calls are not timed. The sample is one
//! call of any kind; `send_*`, `update_*`, `last_*` and `user_*` are those of each. The expected answer of every call is
//! known before the first.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::chat_plan::{CHAT, CREATE, INSERT, KINDS, Kind, LAST, Last, Plan, UPDATE, USER, User};
use crate::data;
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing};
use crate::peer::Peer;
use crate::value::Value;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "a chat service's mix: 10 % writes, 45 % last messages, 45 % users by id";
    vec![Lane::new("scenarios", "chat", about, "calls", run::<P>).release()]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let (warm, count) = (trial.size(500, 50), trial.size(10_000, 500));
    let peer = trial.open::<P>().await?;
    let plan = Plan::new(CHAT, trial.size(10_000, 1_000), warm + count)?;
    fill(&peer, &plan).await?;
    let mut kinds: [Latencies; 4] = Default::default();
    let mut timing = Timing::begin()?;
    for (at, call) in plan.calls.iter().enumerate() {
        if at == warm {
            timing = Timing::begin()?;
            kinds = Default::default();
        }
        let latencies = &mut kinds[call.kind as usize];
        match call.kind {
            Kind::Send => write(&peer, latencies, INSERT, &call.params).await?,
            Kind::Update => write(&peer, latencies, UPDATE, &call.params).await?,
            Kind::Last => {
                let sum = latencies.query::<P, Last>(&peer, LAST, &call.params).await?;
                ensure!(sum == call.expected, "the last messages of {:?} are not the expected ones", call.params);
            }
            Kind::User => {
                let sum = latencies.query::<P, User>(&peer, USER, &call.params).await?;
                ensure!(sum == call.expected, "the user {:?} is not the expected one", call.params);
            }
        }
    }
    kinds.iter().for_each(|kind| timing.latencies.merge(kind));
    let mut measured = timing.end(count as u64)?;
    for (name, latencies) in KINDS.into_iter().zip(&kinds) {
        measured.extra_latencies(name, latencies);
    }
    expect_messages(&peer, &plan).await?;
    data::expect_rows(&peer, "SELECT id, last_at FROM conversations ORDER BY id", &plan.conversations).await?;
    peer.close().await?;
    Ok(measured)
}

/// Makes the tables, and fills them.
pub(super) async fn fill<P: Peer>(peer: &P, plan: &Plan) -> Result<()> {
    for sql in CREATE {
        peer.execute(sql, &[]).await?;
    }
    for (sql, rows) in plan.seed() {
        peer.many(sql, &Arc::new(rows)).await?;
    }
    Ok(())
}

/// Every message that was sent is there.
pub(super) async fn expect_messages<P: Peer>(peer: &P, plan: &Plan) -> Result<()> {
    let sql = "SELECT id, conversation, sender, body, sent_at FROM messages ORDER BY id";
    data::expect_rows(peer, sql, &plan.messages).await
}

async fn write<P: Peer>(
    peer: &P,
    latencies: &mut Latencies,
    sql: &'static str,
    params: &[Value<'static>],
) -> Result<()> {
    let changed = latencies.time(peer.execute(sql, params)).await?;
    ensure!(changed == 1, "{sql} changed {changed} rows");
    Ok(())
}
