async fn find(db: flatwater::Database, ids: Vec<i64>) -> flatwater::Result<()> {
    db.query("SELECT name FROM users WHERE id IN (?)", (ids,)).await?;
    Ok(())
}

fn main() {}
