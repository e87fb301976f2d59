//! An outbox: messages to another system that are sent if, and only if, the transaction that wrote them commits. A live query
//! wakes the sender, whichever process wrote one. A message is deleted after it was sent, so it is sent at least once.

use std::time::Duration;

use flatwater::{Database, Result, Session};
use tokio::time::sleep;

const OUTBOX: &str = "CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, payload TEXT NOT NULL) STRICT";
const FIRST: &str = "SELECT id, payload FROM outbox ORDER BY id LIMIT 1";

#[tokio::main]
async fn main() -> Result<()> {
    let db = Database::open(":memory:").await?;
    db.execute_script(OUTBOX).await?;
    let mut failures = 2;
    let sender = tokio::spawn(drain(db.clone(), move |id, payload| {
        if payload == "b" && failures > 0 {
            failures -= 1;
            return Err("the other side is down");
        }
        println!("sent {id}: {payload}");
        Ok(())
    }));
    db.transaction(async |tx| {
        for payload in ["a", "b", "c"] {
            post(tx, payload).await?;
        }
        Ok(())
    })
    .await?;
    let undone = db.transaction(async |tx| {
        post(tx, "never").await?;
        tx.execute("INSERT INTO nowhere VALUES (1)", ()).await
    });
    assert!(undone.await.is_err());
    let mut left = db.live("SELECT id FROM outbox", ());
    while let Some(rows) = left.next().await {
        if rows?.is_empty() {
            break;
        }
    }
    sender.abort();
    db.close().await
}

/// Writes a message, in the transaction of what it tells of.
async fn post(tx: &Session, payload: &str) -> Result<()> {
    tx.execute("INSERT INTO outbox (payload) VALUES (?)", (payload,)).await?;
    Ok(())
}

/// Sends messages in their order. One that cannot be sent holds up those behind it, and is tried again after a pause that
/// grows. A file has one sender at a time. Abort its task to end it.
async fn drain(db: Database, mut send: impl FnMut(i64, &str) -> Result<(), &'static str>) -> Result<()> {
    let mut news = db.live(FIRST, ());
    // What it returns may be older than what was deleted meanwhile: it wakes, and is not sent.
    while let Some(told) = news.next().await {
        told?;
        while let Some((id, payload)) = db.query_optional_as::<(i64, String)>(FIRST, ()).await? {
            let mut pause = Duration::from_millis(1);
            while send(id, &payload).is_err() {
                sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(60));
            }
            db.execute("DELETE FROM outbox WHERE id = ?", (id,)).await?;
        }
    }
    Ok(())
}
