async fn rename(db: flatwater::Database) -> flatwater::Result<()> {
    db.transaction(async |tx| {
        tx.execute("UPDATE users SET name = ?", ("Ada",)).await?;
        Ok(())
    })
    .await?;
    println!("renamed");
    Ok(())
}

fn main() {}
