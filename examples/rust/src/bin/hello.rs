//! The program of the README: open, create, insert, read, close.

use flatwater::Database;

#[tokio::main]
async fn main() -> flatwater::Result<()> {
    let db = Database::open("app.db").await?;
    db.execute("CREATE TABLE IF NOT EXISTS users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)", ()).await?;
    let ada = db.execute("INSERT INTO users (name) VALUES (?)", ("Ada",)).await?;
    let id = ada.last_insert_rowid;
    let name: String = db.query_value("SELECT name FROM users WHERE id = ?", (id,)).await?;
    println!("hello, {name}");
    db.close().await
}
