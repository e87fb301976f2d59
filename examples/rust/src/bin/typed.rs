//! Rows as structs: columns by name, a LEFT JOIN, an enum, JSON, and what an error says.

use flatwater::values::Json;
use flatwater::{Database, FromRow, FromSql, Result, ToSql};

#[derive(Debug, Clone, Copy, FromSql, ToSql)]
#[flatwater(rename_all = "lowercase")]
enum State {
    Open,
    Done,
}

#[derive(FromRow)]
struct Task {
    title: String,
    state: State,
    #[flatwater(json)]
    tags: Vec<String>,
    #[flatwater(flatten)]
    owner: Option<Owner>,
}

#[derive(FromRow)]
struct Owner {
    #[flatwater(rename = "owner_id")]
    id: i64,
    name: String,
}

const TASKS: &str = "SELECT title, state, tags, owners.id AS owner_id, name
                     FROM tasks LEFT JOIN owners ON owners.id = tasks.owner";

#[tokio::main]
async fn main() -> Result<()> {
    let db = Database::open(":memory:").await?;
    db.execute_script(
        "CREATE TABLE owners (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
         CREATE TABLE tasks (id INTEGER PRIMARY KEY, title TEXT, state TEXT, tags TEXT, owner REFERENCES owners);
         INSERT INTO owners (name) VALUES ('Ada')",
    )
    .await?;
    let insert = "INSERT INTO tasks (title, state, tags, owner) VALUES (?, ?, ?, ?)";
    db.execute(insert, ("write", State::Open, Json(["docs", "urgent"]), Some(1))).await?;
    db.execute(insert, ("test", State::Done, Json([""; 0]), None::<i64>)).await?;

    let tasks: Vec<Task> = db.query_as(format!("{TASKS} ORDER BY tasks.id"), ()).await?;
    for task in &tasks {
        let owner = task.owner.as_ref().map_or("nobody".to_owned(), |owner| format!("{} ({})", owner.name, owner.id));
        println!("{} {:?} {:?} {owner}", task.title, task.state, task.tags);
    }

    let titles: Vec<String> = db.query_values("SELECT title FROM tasks ORDER BY title", ()).await?;
    let open: Option<Task> = db.query_optional_as(format!("{TASKS} WHERE state = ?"), (State::Open,)).await?;
    println!("{titles:?}, open: {}", open.is_some());

    db.execute("UPDATE tasks SET state = 'lost' WHERE id = 2", ()).await?;
    match db.query_values::<State>("SELECT state FROM tasks ORDER BY id", ()).await {
        Ok(_) => println!("every state is known"),
        Err(error) => println!("row {:?}: {}", error.row(), error.message()),
    }
    db.close().await
}
