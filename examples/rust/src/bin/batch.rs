//! Several writes in one request: many rows of one statement, a list of statements, and a list that fails as a whole.

use flatwater::{Database, Result, params};

#[tokio::main]
async fn main() -> Result<()> {
    let db = Database::open(":memory:").await?;
    db.execute_script(
        "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, stock INTEGER NOT NULL);
         CREATE TABLE orders (id INTEGER PRIMARY KEY, item INTEGER NOT NULL REFERENCES items, count INTEGER NOT NULL);",
    )
    .await?;

    let stock = [("tea", 10), ("coffee", 4), ("milk", 7)];
    let added = db.execute_many("INSERT INTO items (name, stock) VALUES (?, ?)", stock).await?;
    println!("{added} items");

    let results = order(&db, 1, 3).await?;
    let row = results[1].rows.as_ref().and_then(|rows| rows.get(0)).expect("RETURNING answers one row");
    println!("order {:?}, {} left", results[0].last_insert_rowid, row.get::<i64>("stock")?);

    // There is no item 99: the foreign key fails the first statement, and the second one never runs.
    let error = order(&db, 99, 1).await.expect_err("no such item");
    println!("refused: {:?} {:?}", error.kind(), error.sqlite_name());

    let orders: i64 = db.query_value("SELECT count(*) FROM orders", ()).await?;
    println!("{} order", orders);
    db.close().await
}

/// Commits both statements, or neither.
async fn order(db: &Database, item: i64, count: i64) -> Result<Vec<flatwater::values::RunResult>> {
    db.batch([
        ("INSERT INTO orders (item, count) VALUES (?, ?)", params![item, count]),
        ("UPDATE items SET stock = stock - ? WHERE id = ? RETURNING stock", params![count, item]),
    ])
    .await
}
