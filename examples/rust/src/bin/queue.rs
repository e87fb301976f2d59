//! A queue of jobs in a table: claimed by one worker each, tried again later if they fail, and kept as dead at last. A live
//! query wakes a worker when a job comes, whichever process added it, and a timer when one is due.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flatwater::{Database, Live, Result, Session};
use tokio::time::timeout;

const JOBS: &str = "
    CREATE TABLE jobs (
        id INTEGER PRIMARY KEY,
        payload TEXT NOT NULL,
        due REAL NOT NULL DEFAULT (unixepoch('subsec')), -- When it may be claimed, in seconds.
        tries INTEGER NOT NULL DEFAULT 0,
        error TEXT,                                      -- Why the last try failed.
        is_dead INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX jobs_due ON jobs (due) WHERE NOT is_dead";
const NEXT: &str = "SELECT min(due) FROM jobs WHERE NOT is_dead";
// A job that its worker does not end in 30 seconds is claimed again.
const CLAIM: &str = "
    UPDATE jobs SET tries = tries + 1, due = unixepoch('subsec') + 30
    WHERE id = (SELECT id FROM jobs WHERE NOT is_dead AND due <= unixepoch('subsec') ORDER BY due, id LIMIT 1)
    RETURNING id, payload, tries";
// Who has claimed it since has another number of tries.
const DONE: &str = "DELETE FROM jobs WHERE id = ? AND tries = ?";
const FAILED: &str = "
    UPDATE jobs SET error = ?, due = unixepoch('subsec') + ?, is_dead = tries >= 3 WHERE id = ? AND tries = ?";

#[tokio::main]
async fn main() -> Result<()> {
    let db = Database::open(":memory:").await?;
    db.execute_script(JOBS).await?;
    let worker = tokio::spawn(work(db.clone(), |payload, tries| match payload {
        "bad" => Err("it is bad"),
        "late" if tries < 2 => Err("not yet"),
        _ => Ok(()),
    }));
    for payload in ["good", "bad", "late"] {
        add(&db, payload).await?;
    }
    let mut left = db.live("SELECT id FROM jobs WHERE NOT is_dead", ());
    while let Some(rows) = left.next().await {
        if rows?.is_empty() {
            break;
        }
    }
    worker.abort();
    let dead: (String, i64, String) = db.query_one_as("SELECT payload, tries, error FROM jobs", ()).await?;
    println!("dead: {dead:?}");
    db.close().await
}

/// Adds a job, in a transaction or on the database.
async fn add(on: &Session, payload: &str) -> Result<()> {
    on.execute("INSERT INTO jobs (payload) VALUES (?)", (payload,)).await?;
    Ok(())
}

/// Does what is due, and sleeps until something else is. Abort its task to end it.
async fn work(db: Database, handle: impl Fn(&str, i64) -> Result<(), &'static str>) -> Result<()> {
    let mut news = db.live(NEXT, ());
    loop {
        while one(&db, &handle).await? {}
        let due: Option<f64> = db.query_value(NEXT, ()).await?;
        if !wait(&mut news, due).await? {
            return Ok(());
        }
    }
}

/// Waits until the time has come or the jobs have changed. Returns false if the database was closed.
async fn wait(news: &mut Live, due: Option<f64>) -> Result<bool> {
    let told = match due {
        Some(due) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            match timeout(Duration::from_secs_f64((due - now).max(0.001)), news.next()).await {
                Ok(told) => told,
                Err(_) => return Ok(true),
            }
        }
        None => news.next().await,
    };
    told.transpose().map(|told| told.is_some())
}

/// Does one job that is due. Returns false if there is none.
async fn one(db: &Database, handle: impl Fn(&str, i64) -> Result<(), &'static str>) -> Result<bool> {
    let Some((id, payload, tries)) = db.query_optional_as::<(i64, String, i64)>(CLAIM, ()).await? else {
        return Ok(false);
    };
    match handle(&payload, tries) {
        Ok(()) => db.execute(DONE, (id, tries)).await?,
        // The pause grows with the tries.
        Err(error) => db.execute(FAILED, (error, 0.001 * f64::powi(2.0, tries as i32), id, tries)).await?,
    };
    Ok(true)
}
