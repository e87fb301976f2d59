async fn rename(db: flatwater::Database, id: &str) -> Result<(), Box<dyn std::error::Error>> {
    db.transaction(async |tx| {
        let id: i64 = id.parse()?;
        tx.execute("UPDATE users SET name = ? WHERE id = ?", ("Ada", id)).await?;
        Ok(())
    })
    .await?;
    Ok(())
}

fn main() {}
