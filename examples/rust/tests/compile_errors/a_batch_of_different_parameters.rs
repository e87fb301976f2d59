async fn order(db: flatwater::Database) -> flatwater::Result<()> {
    db.batch([
        ("INSERT INTO orders (item) VALUES (?)", ("tea",)),
        ("UPDATE items SET stock = stock - ? WHERE name = ?", (1, "tea")),
    ])
    .await?;
    Ok(())
}

fn main() {}
