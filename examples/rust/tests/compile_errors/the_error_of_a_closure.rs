async fn count(db: flatwater::Database) -> flatwater::Result<i64> {
    let count: i64 = db
        .read_with(|connection| Ok(connection.query_row("SELECT count(*) FROM users", [], |row| row.get(0))?))
        .await?;
    Ok(count)
}

fn main() {}
