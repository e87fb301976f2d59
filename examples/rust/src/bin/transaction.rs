//! A transaction that reads, decides and writes, with an error type of the program, and a savepoint inside it.

use flatwater::{Database, Transaction};

/// The errors of a transfer. `transaction` only requires `From<flatwater::Error>`.
#[derive(Debug)]
enum TransferError {
    TooLittle { missing: i64 },
    Database(flatwater::Error),
}

impl From<flatwater::Error> for TransferError {
    fn from(error: flatwater::Error) -> Self {
        Self::Database(error)
    }
}

#[tokio::main]
async fn main() -> flatwater::Result<()> {
    let db = Database::open(":memory:").await?;
    db.execute_script(
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL);
         CREATE TABLE log (text TEXT NOT NULL UNIQUE);
         INSERT INTO accounts VALUES (1, 1000), (2, 0);",
    )
    .await?;
    for cents in [300, 300, 700] {
        match transfer(&db, 1, 2, cents).await {
            Ok(left) => println!("moved {cents}, {left} left"),
            Err(TransferError::TooLittle { missing }) => println!("refused: {missing} missing"),
            Err(TransferError::Database(error)) => return Err(error),
        }
    }
    let all: Vec<(i64, i64)> = db.query_as("SELECT id, cents FROM accounts ORDER BY id", ()).await?;
    let notes: i64 = db.query_value("SELECT count(*) FROM log", ()).await?;
    println!("{all:?}, {} note", notes);
    db.close().await
}

/// Moves money, or changes nothing: an error of either kind rolls the transaction back.
async fn transfer(db: &Database, from: i64, to: i64, cents: i64) -> Result<i64, TransferError> {
    db.try_transaction(async |tx| {
        let balance: i64 = tx.query_value("SELECT cents FROM accounts WHERE id = ?", (from,)).await?;
        if balance < cents {
            return Err(TransferError::TooLittle { missing: cents - balance });
        }
        tx.execute("UPDATE accounts SET cents = cents - ? WHERE id = ?", (cents, from)).await?;
        tx.execute("UPDATE accounts SET cents = cents + ? WHERE id = ?", (cents, to)).await?;
        // The note fails the second time, because it must be unique. Only its savepoint is rolled back; the transfer
        // continues.
        let _ = tx.transaction(async |nested| note(nested, cents).await).await;
        Ok(balance - cents)
    })
    .await
}

async fn note(tx: &Transaction<'_>, cents: i64) -> flatwater::Result<()> {
    tx.execute("INSERT INTO log VALUES (?)", (format!("moved {cents}"),)).await?;
    Ok(())
}
