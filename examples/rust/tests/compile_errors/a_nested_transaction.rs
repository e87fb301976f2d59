async fn nested(db: flatwater::Database) -> flatwater::Result<()> {
    let tx = db.begin().await?;
    let savepoint = tx.begin().await?;
    savepoint.commit().await?;
    tx.commit().await
}

fn main() {}
