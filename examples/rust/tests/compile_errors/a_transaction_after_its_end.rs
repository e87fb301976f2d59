async fn late(db: flatwater::Database) -> flatwater::Result<()> {
    let tx = db.begin().await?;
    tx.commit().await?;
    tx.execute("DELETE FROM users", ()).await?;
    Ok(())
}

fn main() {}
