async fn count(db: flatwater::Database) -> flatwater::Result<()> {
    let count = db.query_value("SELECT count(*) FROM users", ()).await?;
    println!("{count}");
    Ok(())
}

fn main() {}
