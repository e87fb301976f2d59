//! Rows as JSON: a list with lists in it, integers that JavaScript can read, and a write that returns its row.

use flatwater::{Database, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let db = Database::open(":memory:").await?;
    db.execute_script(
        "CREATE TABLE articles (id INTEGER PRIMARY KEY, title TEXT NOT NULL, words INTEGER);
         CREATE TABLE tags (article INTEGER NOT NULL REFERENCES articles, name TEXT NOT NULL);
         INSERT INTO articles VALUES (1, 'How to \"make\" tea', 512), (9007199254740993, 'More tea', NULL);
         INSERT INTO tags VALUES (1, 'tea'), (1, 'home');",
    )
    .await?;

    println!("{}", db.query_json("SELECT id, title, words FROM articles", ()).await?);

    let tags = "(SELECT json_group_array(name) FROM tags WHERE article = articles.id) AS tags";
    let articles = db.query_json(format!("SELECT id, {tags} FROM articles"), ());
    println!("{}", articles.big_integers_as_strings().embed("tags").await?);

    println!("{}", db.query_json("UPDATE articles SET words = ? WHERE id = 1 RETURNING id, words", (600,)).await?);
    db.close().await
}
