async fn add(db: flatwater::Database) -> flatwater::Result<()> {
    db.execute("INSERT INTO users (name) VALUES (?)", ("Ada",))?;
    Ok(())
}

fn main() {}
