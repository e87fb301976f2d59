//! A live query: its result as it changes, by this program and by another process.

use std::path::Path;

use flatwater::rusqlite::Connection;
use flatwater::{Database, Live, Result};
use tokio::process::Command;

#[tokio::main]
async fn main() -> Result<()> {
    if let Some(path) = std::env::args_os().nth(1) {
        return another_process(Path::new(&path));
    }
    let directory = tempfile::tempdir().expect("a directory for the database");
    let path = directory.path().join("todos.db");
    let db = Database::open(&path).await?;
    db.execute("CREATE TABLE todos (id INTEGER PRIMARY KEY, title TEXT NOT NULL, done INTEGER DEFAULT 0)", ()).await?;

    let mut open = db.live("SELECT title FROM todos WHERE NOT done ORDER BY id", ());
    print("at first", &mut open).await?;

    let task = tokio::spawn(write(db.clone()));
    print("a task has written", &mut open).await?;
    task.await.expect("the task does not panic")?;

    // This is not among what is open, so the result stays the same, and nothing is delivered.
    db.execute("INSERT INTO todos (title, done) VALUES ('rest', 1)", ()).await?;

    let program = std::env::current_exe().expect("the program has a path");
    let status = Command::new(program).arg(&path).status().await.expect("the program can be started again");
    assert!(status.success(), "the other process failed: {status}");
    print("another process has written", &mut open).await?;

    db.close().await?;
    assert!(open.next().await.is_none());
    println!("closed");
    Ok(())
}

async fn print(when: &str, open: &mut Live) -> Result<()> {
    if let Some(todos) = open.next_as::<(String,)>().await {
        let titles: Vec<String> = todos?.into_iter().map(|(title,)| title).collect();
        println!("{when}: {titles:?}");
    }
    Ok(())
}

async fn write(db: Database) -> Result<()> {
    let titles = ["buy tea", "drink tea"].map(|title| (title,));
    db.execute_many("INSERT INTO todos (title) VALUES (?)", titles).await?;
    Ok(())
}

/// What the child does. It knows nothing of Flatwater: its connection is SQLite's own.
fn another_process(path: &Path) -> Result<()> {
    let plain = Connection::open(path)?;
    plain.execute("UPDATE todos SET done = 1 WHERE title = 'buy tea'", [])?;
    Ok(())
}
