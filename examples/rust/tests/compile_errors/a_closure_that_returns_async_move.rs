async fn rename(db: flatwater::Database, id: i64) -> flatwater::Result<()> {
    db.transaction(move |tx| async move {
        tx.execute("UPDATE users SET name = ? WHERE id = ?", ("Ada", id)).await?;
        Ok(())
    })
    .await
}

fn main() {}
