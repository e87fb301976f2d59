//! Flatwater on smol. Flatwater's futures depend on no runtime, and a timeout needs no timer of the runtime.

use std::time::Duration;

use flatwater::Database;

fn main() -> flatwater::Result<()> {
    smol::block_on(async {
        let db = Database::open(":memory:").await?;
        db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)", ()).await?;

        let tasks: Vec<_> = (1..=100)
            .map(|n| {
                let db = db.clone();
                smol::spawn(async move { db.execute("INSERT INTO t VALUES (?)", (n,)).await })
            })
            .collect();
        for task in tasks {
            task.await?;
        }
        let sum: i64 = db.query_value("SELECT sum(n) FROM t", ()).await?;
        println!("sum {}", sum);

        let endless = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";
        let error = db.with_timeout(Duration::from_millis(50)).query(endless, ()).await.expect_err("it has no end");
        println!("{:?}, applied: {:?}", error.kind(), error.applied());
        db.close().await
    })
}
