//! A cache of values by key, each for a time, that all processes of a file share: for what is slow to make, and may be made
//! again. What has expired is never returned, and is deleted by a sweep, in parts that keep no writer waiting.

use std::time::Duration;

use flatwater::{Database, Result};

const CACHE: &str = "
    CREATE TABLE cache (key TEXT PRIMARY KEY, value BLOB NOT NULL, expires REAL NOT NULL) STRICT, WITHOUT ROWID;
    CREATE INDEX cache_expires ON cache (expires)";
const GET: &str = "SELECT value FROM cache WHERE key = ? AND expires > unixepoch('subsec')";
const SET: &str = "
    INSERT INTO cache VALUES (?, ?, unixepoch('subsec') + ?)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires";
const SWEEP: &str = "
    DELETE FROM cache WHERE key IN (SELECT key FROM cache WHERE expires <= unixepoch('subsec') ORDER BY expires LIMIT ?)";

/// The values of a database.
#[derive(Clone)]
struct Cache(Database);

impl Cache {
    /// Returns the value, if it is there and has not expired.
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.0.query_optional_value(GET, (key,)).await
    }

    /// Stores a value for a time.
    async fn set(&self, key: &str, value: &[u8], time: Duration) -> Result<()> {
        self.0.execute(SET, (key, value, time.as_secs_f64())).await?;
        Ok(())
    }

    /// Returns the value, which is made and stored if it is not there.
    async fn get_or_make(&self, key: &str, time: Duration, make: impl AsyncFnOnce() -> Vec<u8>) -> Result<Vec<u8>> {
        if let Some(value) = self.get(key).await? {
            return Ok(value);
        }
        let value = make().await;
        self.set(key, &value, time).await?;
        Ok(value)
    }

    /// Deletes what has expired, so many at a time, and returns their number.
    async fn sweep(&self, at_once: u64) -> Result<u64> {
        let mut swept = 0;
        loop {
            let changes = self.0.execute(SWEEP, (at_once as i64,)).await?.changes;
            swept += changes;
            if changes < at_once {
                return Ok(swept);
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let db = Database::open(":memory:").await?;
    db.execute_script(CACHE).await?;
    let cache = Cache(db.clone());
    for _ in 0..2 {
        let make = async || {
            println!("made");
            b"tea".to_vec()
        };
        let value = cache.get_or_make("drink", Duration::from_secs(60), make).await?;
        println!("{}", String::from_utf8_lossy(&value));
    }
    for n in 0..5 {
        cache.set(&format!("old {n}"), b"", Duration::ZERO).await?;
    }
    println!("{:?}, {} swept", cache.get("old 1").await?, cache.sweep(2).await?);
    db.close().await
}
