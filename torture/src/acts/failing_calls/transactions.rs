//! A transaction of a load: rows, a savepoint that is rolled back, a read of its own rows, a count, and the end.

use flatwater::{Database, Error, Result};

/// Adds a row of a write.
pub(super) const INSERT: &str = "INSERT INTO t VALUES (?, ?, zeroblob(?))";

/// Returns true if the transaction was committed, false if it was rolled back as intended.
pub(super) async fn run(db: &Database, (number, bytes): (i64, i64), rows: u64, rolls_back: bool) -> Result<bool> {
    let mut tx = db.begin().await?;
    let rows = i64::try_from(rows).unwrap_or(1);
    for part in 0..rows {
        tx.execute(INSERT, (number, part, bytes)).await?;
    }
    let inner = tx.begin().await?;
    inner.execute(INSERT, (number, rows, bytes)).await?;
    inner.rollback().await?;
    let seen: Option<i64> = tx.query_optional_value("SELECT count(*) FROM t WHERE op = ?", (number,)).await?;
    // The panic is a finding. No other check would find such a result.
    assert_eq!(seen, Some(rows), "a transaction does not see its own rows");
    tx.execute("UPDATE counter SET n = n + 1 WHERE id = 1", ()).await?;
    if rolls_back {
        // The transaction is not committed, whatever the result.
        let _: Result<(), Error> = tx.rollback().await;
        return Ok(false);
    }
    tx.commit().await?;
    Ok(true)
}
