//! A result that is read row by row in bounded memory, while writes go on, and a snapshot.

use flatwater::{Database, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory for the database");
    let db = Database::open(directory.path().join("events.db")).await?;
    db.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT NOT NULL)", ()).await?;
    let kinds = (0..10_000).map(|n| (if n % 3 == 0 { "click" } else { "view" },));
    db.execute_many("INSERT INTO events (kind) VALUES (?)", kinds).await?;

    // The stream sees the events of its beginning, while they are deleted.
    let (mut clicks, mut views) = (0, 0);
    let mut events = db.stream_as::<(i64, String)>("SELECT id, kind FROM events ORDER BY id", ());
    while let Some(event) = events.next().await {
        let (id, kind) = event?;
        if kind == "click" {
            clicks += 1
        } else {
            views += 1
        }
        if id % 1000 == 0 {
            db.execute("DELETE FROM events WHERE id <= ?", (id,)).await?;
        }
    }
    println!("{clicks} clicks, {views} views");

    // All reads of a snapshot see the same point in time.
    db.execute("INSERT INTO events (kind) VALUES ('last')", ()).await?;
    let snapshot = db.snapshot().await?;
    db.execute("DELETE FROM events", ()).await?;
    let before: i64 = snapshot.query_value("SELECT count(*) FROM events", ()).await?;
    let after: i64 = db.query_value("SELECT count(*) FROM events", ()).await?;
    println!("{before} in the snapshot, {after} now");
    drop(snapshot);
    db.close().await
}
