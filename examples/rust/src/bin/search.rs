//! A search with optional filters: the text grows with the filters, and every value is bound.

use flatwater::{Database, Result, Sql};

#[derive(Default)]
struct Filter<'a> {
    state: Option<&'a str>,
    title_has: Option<&'a str>,
    ids: &'a [i64],
    newest_first: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let db = Database::open(":memory:").await?;
    db.execute("CREATE TABLE tasks (id INTEGER PRIMARY KEY, title TEXT NOT NULL, state TEXT NOT NULL)", ()).await?;
    let tasks = [("buy tea", "open"), ("pay rent", "done"), ("drink tea", "open"), ("it's late", "open")];
    db.execute_many("INSERT INTO tasks (title, state) VALUES (?, ?)", tasks).await?;

    search(&db, Filter { state: Some("open"), newest_first: true, ..Filter::default() }).await?;
    search(&db, Filter { title_has: Some("tea"), ids: &[1, 2], ..Filter::default() }).await?;
    search(&db, Filter { title_has: Some("it's' OR 1 --"), ..Filter::default() }).await?;
    db.close().await
}

/// Prints how many tasks pass the filter, and the first three of them.
async fn search(db: &Database, filter: Filter<'_>) -> Result<()> {
    let mut filters = Sql::new(" WHERE 1");
    if let Some(state) = filter.state {
        filters = filters.push(" AND state = ").bind(state);
    }
    if let Some(part) = filter.title_has {
        filters = filters.push(" AND instr(title, ").bind(part).push(") > 0");
    }
    if !filter.ids.is_empty() {
        filters = filters.push(" AND id IN ").bind_list(filter.ids);
    }
    let count = Sql::new("SELECT count(*) FROM tasks").push_sql(&filters);
    let page = Sql::new("SELECT title FROM tasks")
        .push_sql(&filters)
        .push(if filter.newest_first { " ORDER BY id DESC" } else { " ORDER BY id" })
        .push(" LIMIT ")
        .bind(3);

    let count: i64 = db.query_value(count, ()).await?;
    let titles: Vec<(String,)> = db.query_as(page, ()).await?;
    let titles: Vec<_> = titles.into_iter().map(|(title,)| title).collect();
    println!("{}: {:?}", count, titles);
    Ok(())
}
