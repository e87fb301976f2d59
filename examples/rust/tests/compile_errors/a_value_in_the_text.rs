async fn find(db: flatwater::Database, name: &str, column: &str) -> flatwater::Result<()> {
    let sql = flatwater::Sql::new("SELECT id FROM users WHERE ")
        .push(&format!("name = '{name}'"))
        .push(&format!(" ORDER BY {column}"));
    db.query(sql, ()).await?;
    Ok(())
}

fn main() {}
