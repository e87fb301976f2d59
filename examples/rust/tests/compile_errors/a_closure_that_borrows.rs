async fn longest(db: flatwater::Database, least: i64) -> flatwater::Result<i64> {
    db.read_with(|connection| {
        let sql = "SELECT max(length(name)) FROM users WHERE id > ?";
        Ok::<i64, flatwater::Error>(connection.query_row(sql, [&least], |row| row.get(0))?)
    })
    .await
}

fn main() {}
