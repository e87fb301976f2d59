//! The statistics of the query planner: brought up to date at the close and from time to time, unless a program turns that off.

use std::time::Duration;

use flatwater::options::Checkpoint;
use flatwater::{Database, Options};

use crate::support::{TestFile, integer, run, until};

const DAY: Duration = Duration::from_secs(86_400);

async fn filled(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute_script(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE INDEX by_a ON t (a); CREATE TABLE u (a UNIQUE);
         WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 5000) INSERT INTO t SELECT n, n % 7 FROM n;
         INSERT INTO u SELECT id FROM t",
    )
    .await
    .unwrap();
    db
}

/// Returns the number of indexes with statistics.
fn analysed(file: &TestFile) -> i64 {
    let plain = file.plain();
    let has_any = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'";
    if integer(&plain, has_any) == 0 { 0 } else { integer(&plain, "SELECT count(*) FROM sqlite_stat1") }
}

#[test]
fn a_close_brings_the_statistics_up_to_date_unless_the_program_turns_that_off() {
    let file = TestFile::new();
    run(async {
        filled(file.options().optimize_every(None)).await.close().await.unwrap();
        assert_eq!(analysed(&file), 0);
        let wants = || file.options();
        wants().read_only(true).open().await.unwrap().close().await.unwrap();
        wants().checkpoint(Checkpoint::External).open().await.unwrap().close().await.unwrap();
        assert_eq!(analysed(&file), 0);
        let db = wants().open().await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 5000);
        db.close().await.unwrap();
        assert_eq!(analysed(&file), 2);
    });
}

#[test]
fn a_close_waits_for_no_lock_because_of_it() {
    let file = TestFile::new();
    run(async {
        let db = filled(file.options().optimize_every(DAY)).await;
        let other = file.plain();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        // The other connection holds the lock until after the close, so a close that waited would never end.
        db.close().await.unwrap();
        other.execute_batch("COMMIT").unwrap();
        drop(other);
        assert_eq!(analysed(&file), 0);
    });
}

#[test]
fn the_statistics_are_brought_up_to_date_from_time_to_time() {
    let file = TestFile::new();
    run(async {
        let db = filled(file.options().optimize_every(Duration::from_millis(5))).await;
        until(|| analysed(&file) == 2).await;
        // A table that has become much larger is analysed again.
        let rows = |sql| integer(&file.plain(), sql);
        db.execute_many("INSERT INTO t (a) VALUES (?)", (0..60_000).map(|n| (n,))).await.unwrap();
        until(|| rows("SELECT CAST(stat AS INTEGER) > 50000 FROM sqlite_stat1 WHERE idx = 'by_a'") == 1).await;
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 65_000);
        db.close().await.unwrap();
    });
}

#[test]
fn a_transaction_is_not_disturbed_and_a_database_in_memory_has_it_too() {
    run(async {
        let db = filled(Options::new(":memory:").optimize_every(Duration::from_millis(1))).await;
        let has_any = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'";
        while db.query_value::<i64>(has_any, ()).await.unwrap() == 0 {
            tokio::task::yield_now().await;
        }
        let tx = db.begin().await.unwrap();
        let stats =
            || async { tx.query_value::<String>("SELECT group_concat(stat) FROM sqlite_stat1", ()).await.unwrap() };
        tx.execute("DELETE FROM t", ()).await.unwrap();
        let before = stats().await;
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert_eq!(stats().await, before);
        }
        tx.commit().await.unwrap();
        db.close().await.unwrap();
    });
}
