//! Closures with rusqlite: a loop over rows on the writer, and two reads of the same snapshot on a reader.

use flatwater::{Database, Error};

#[tokio::main]
async fn main() -> flatwater::Result<()> {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let db = Database::open(directory.path().join("closures.db")).await?;
    db.execute("CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT NOT NULL, length INTEGER)", ()).await?;
    db.execute_many("INSERT INTO words (word) VALUES (?)", [["ebb"], ["flood"], ["slack"]]).await?;

    // The closure gets rusqlite's own transaction. Ok commits; an error or a panic rolls back.
    let updated = db
        .write_with(|tx| {
            let mut words = tx.prepare("SELECT id, word FROM words")?;
            let mut update = tx.prepare("UPDATE words SET length = ? WHERE id = ?")?;
            let mut updated = 0;
            let mut rows = words.query([])?;
            while let Some(row) = rows.next()? {
                let (id, word): (i64, String) = (row.get(0)?, row.get(1)?);
                updated += update.execute((word.chars().count(), id))?;
            }
            Ok::<_, Error>(updated)
        })
        .await?;
    println!("{updated} rows updated");

    // All reads of a read closure see the same snapshot, whatever other connections commit meanwhile.
    let (count, longest) = db
        .read_with(|connection| {
            let count: i64 = connection.query_row("SELECT count(*) FROM words", [], |row| row.get(0))?;
            let longest: i64 = connection.query_row("SELECT max(length) FROM words", [], |row| row.get(0))?;
            Ok::<_, Error>((count, longest))
        })
        .await?;
    println!("{count} words, the longest has {longest} letters");

    // A closure must not control transactions: Flatwater does.
    let refused = db.write_with(|tx| tx.execute_batch("COMMIT").map_err(Error::from)).await;
    println!("COMMIT in a closure: {}", if refused.is_err() { "refused" } else { "accepted" });
    db.close().await
}
