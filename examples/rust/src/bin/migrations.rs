//! Migrations: applied once, whoever opens the database, and a rebuilt table keeps the rows that refer to it.

use flatwater::{Migrations, Options, Result};

const INIT: &str = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE notes (author INTEGER NOT NULL REFERENCES users ON DELETE CASCADE, body TEXT NOT NULL);
    INSERT INTO users VALUES (1, 'Ada');
    INSERT INTO notes VALUES (1, 'hello')";

const NAMES: &str = "CREATE TABLE new_users (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
    INSERT INTO new_users SELECT id, name FROM users;
    DROP TABLE users;
    ALTER TABLE new_users RENAME TO users";

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("app.db");

    let db = Options::new(&path).migrations([("001_init", INIT)]).open().await?;
    println!("applied: {:?}", db.migrate([("001_init", INIT), ("002_names", NAMES)]).await?);
    let notes: i64 = db.query_value("SELECT count(*) FROM notes JOIN users ON users.id = author", ()).await?;
    println!("{} note", notes);
    db.close().await?;

    // The older program, during a rolling deployment.
    let older = Migrations::new([("001_init", INIT)]);
    let refused = Options::new(&path).migrations(&older).open().await.expect_err("the database is newer");
    println!("{}", refused.message());
    let db = Options::new(&path).migrations(older.ignore_missing(true)).open().await?;
    println!("open");

    let fails = [("001_init", INIT), ("002_names", NAMES), ("003_typo", "-- one word too many\nCREATE TABEL t (a)")];
    println!("{}", db.migrate(fails).await.expect_err("a typing error").message());
    db.close().await
}
