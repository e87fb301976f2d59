//! chat_bound_values: one read whose plan SQLite makes by its values, which change from call to call.
//!
//! 10,000 messages in 100 conversations; the newest messages of a conversation, of which the number 1 alternates with others, and the
//! LIMIT is 10 or 20. SQLite prepares such a statement again when a value changes to or from 0 or 1, and at each new LIMIT. The first
//! 500 calls are not timed. The expected answer of every call is known before the first.

use std::sync::Arc;

use anyhow::{Result, ensure};

use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::record::{Sum, sum_of};

const CREATE: [&str; 2] = [
    "CREATE TABLE messages (id INTEGER PRIMARY KEY, conversation INTEGER NOT NULL, body TEXT NOT NULL)",
    "CREATE INDEX messages_conversation ON messages (conversation, id)",
];
const INSERT: &str = "INSERT INTO messages VALUES (?, ?, ?)";
const SELECT: &str = "SELECT id, body FROM messages WHERE conversation = ? ORDER BY id DESC LIMIT ?";
const MESSAGES: i64 = 10_000;
const CONVERSATIONS: i64 = 100;

type Message = (i64, String);

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "the newest 10 or 20 messages of conversation 1, and of another one, in turn";
    vec![Lane::new("reads", "chat_bound_values", about, "queries", run::<P>).reads_only()]
}

fn message(id: i64) -> (i64, i64, String) {
    (id, id % CONVERSATIONS, format!("the message with the number {id}"))
}

/// The values of a call: 1, 2, 1, 3 and so on; and 10, 10, 20, 20.
fn values(at: usize) -> (i64, i64) {
    let number = at as i64;
    let conversation = if at.is_multiple_of(2) { 1 } else { 2 + number / 2 % (CONVERSATIONS - 2) };
    (conversation, if number / 2 % 2 == 0 { 10 } else { 20 })
}

fn expected(conversation: i64, limit: i64) -> Sum {
    let newest = (1..=MESSAGES).rev().map(message).filter(|message| message.1 == conversation);
    let rows: Vec<Message> = newest.take(limit.unsigned_abs() as usize).map(|(id, _, body)| (id, body)).collect();
    sum_of(&rows)
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let peer = trial.open::<P>().await?;
    for sql in CREATE {
        peer.execute(sql, &[]).await?;
    }
    let row = |(id, conversation, body): (i64, i64, String)| vec![id.into(), conversation.into(), body.into()];
    peer.many(INSERT, &Arc::new((1..=MESSAGES).map(message).map(row).collect())).await?;
    let sums: Vec<[Sum; 2]> = (0..CONVERSATIONS).map(|number| [10, 20].map(|limit| expected(number, limit))).collect();
    let (warm, count) = (trial.size(500, 50), trial.size(20_000, 500));
    let mut timing = Timing::begin()?;
    for at in 0..warm + count {
        if at == warm {
            timing = Timing::begin()?;
        }
        let (conversation, limit) = values(at);
        let sum = timing.latencies.query::<P, Message>(&peer, SELECT, &[conversation.into(), limit.into()]).await?;
        let right = sums[usize::try_from(conversation)?][usize::from(limit == 20)];
        ensure!(sum == right, "the last {limit} messages of {conversation} are not the expected ones");
    }
    let measured = timing.end(count as u64)?;
    peer.close().await?;
    Ok(measured)
}
