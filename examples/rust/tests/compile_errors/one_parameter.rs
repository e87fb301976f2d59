async fn find(db: flatwater::Database, id: i64) -> flatwater::Result<()> {
    db.query("SELECT name FROM users WHERE id = ?", (id)).await?;
    Ok(())
}

fn main() {}
