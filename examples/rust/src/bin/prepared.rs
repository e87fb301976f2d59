//! A hot loop: prepared statements that are looked up once, and the number of their calls that ran inline on this
//! thread.

use flatwater::{Database, Prepared, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let db = Database::open(directory.path().join("prepared.db")).await?;
    db.execute("CREATE TABLE points (id INTEGER PRIMARY KEY, name TEXT NOT NULL, points INTEGER NOT NULL)", ()).await?;

    let insert = db.prepare("INSERT INTO points (name, points) VALUES (?, ?)").await?;
    for number in 1..=1000 {
        insert.execute((format!("player {number}"), number)).await?;
    }

    // A clone is cheap, so each task can have its own.
    let lookup = db.prepare("SELECT points FROM points WHERE id = ?").await?;
    let tasks = [1, 251, 501, 751].map(|from| tokio::spawn(sum(lookup.clone(), from)));
    let mut total = 0;
    for task in tasks {
        total += task.await.expect("no task panics")?;
    }
    println!("{total} points");

    // Which calls are short enough, and how often a connection is free, differs from run to run.
    let inline = db.stats().inline;
    eprintln!("{} reads and {} writes ran on the thread that polled them", inline.reads, inline.writes);
    db.close().await
}

async fn sum(lookup: Prepared, from: i64) -> Result<i64> {
    let mut sum = 0;
    for id in from..from + 250 {
        sum += lookup.query_optional_value::<i64>((id,)).await?.unwrap_or(0);
    }
    Ok(sum)
}
