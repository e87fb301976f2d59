//! chat: the mixed traffic of a chat service, one call after another.
//!
//! 500 users, 100 conversations of skewed popularity, 10,000 messages; 5 % new messages, 5 % updates of a conversation,
//! 45 % the last 20 messages with their senders, 45 % a user by id. The first 500 calls are not timed. The sample is one
//! call of any kind; `send_*`, `update_*`, `last_*` and `user_*` are those of each. The expected answer of every call is
//! known before the first.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::chat_plan::{CHAT, CREATE, Call, INSERT, KINDS, Kind, LAST, Last, Plan, UPDATE, USER, User};
use crate::data;
use crate::lane::{Lane, Trial};
use crate::measure::{Latencies, Measured, Timing, timed};
use crate::peer::{Peer, Table};
use crate::record::{Record, Sum};
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
        let (seen, latency) = ask(&peer, call).await?;
        ensure!(seen == call.expected, "the answer to {:?} {:?} is not the expected one", call.kind, call.params);
        kinds[call.kind as usize].record(latency);
    }
    let measured = end(timing, &kinds, count)?;
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

/// Makes the call. Returns what was seen of its rows, or how many rows it changed, and how long that took.
pub(super) async fn ask<P: Peer>(peer: &P, Call { kind, params, .. }: &Call) -> Result<(Sum, Duration)> {
    match kind {
        Kind::Send => timed(write(peer, INSERT, params)).await,
        Kind::Update => timed(write(peer, UPDATE, params)).await,
        Kind::Last => timed(read::<P, Last>(peer, LAST, params)).await,
        Kind::User => timed(read::<P, User>(peer, USER, params)).await,
    }
}

async fn write<P: Peer>(peer: &P, sql: &'static str, params: &[Value<'static>]) -> Result<Sum> {
    Ok(Sum { rows: peer.execute(sql, params).await?, cells: 0 })
}

async fn read<P: Peer, R: Record>(peer: &P, sql: &'static str, params: &[Value<'static>]) -> Result<Sum> {
    Ok(peer.query::<R>(sql, params).await?.touch())
}

/// Ends the timed part, with the latencies of all kinds and of each.
pub(super) fn end(mut timing: Timing, kinds: &[Latencies; 4], count: usize) -> Result<Measured> {
    kinds.iter().for_each(|kind| timing.latencies.merge(kind));
    let mut measured = timing.end(count as u64)?;
    for (name, latencies) in KINDS.into_iter().zip(kinds) {
        measured.extra_latencies(name, latencies);
    }
    Ok(measured)
}
