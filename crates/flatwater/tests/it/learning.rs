//! What a worker learns from a statement after its second use must not be seen by callers.

use flatwater::{Database, Options, params};

use crate::support::TestFile;

async fn three_updates_and_their_count(db: &Database) {
    db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)").await.unwrap();
    db.transaction(async |tx| {
        for _ in 0..4 {
            assert_eq!(tx.execute("UPDATE t SET a = a + 1", ()).await?.changes, 3);
            assert_eq!(tx.query_value::<i64>("SELECT changes()", ()).await?, Some(3));
        }
        // What is refused does nothing.
        for _ in 0..4 {
            tx.execute("INSERT INTO t VALUES (9) RETURNING a", ()).await.unwrap_err();
            tx.query("INSERT INTO t VALUES (9)", ()).await.unwrap_err();
            assert_eq!(tx.query_value::<i64>("SELECT changes()", ()).await?, Some(3));
        }
        Ok::<_, flatwater::Error>(())
    })
    .await
    .unwrap();
}

#[test]
fn a_transaction_can_always_ask_for_its_changes() {
    let file = TestFile::new();
    smol::block_on(async { three_updates_and_their_count(&file.open().await).await });
}

#[test]
fn a_database_in_memory_can_always_be_asked_for_its_changes() {
    smol::block_on(async {
        let db = Options::new(":memory:").open().await.unwrap();
        three_updates_and_their_count(&db).await;
        for _ in 0..4 {
            db.execute("UPDATE t SET a = a + 1", ()).await.unwrap();
            assert_eq!(db.query_value::<i64>("SELECT changes()", ()).await.unwrap(), Some(3));
        }
    });
}

#[test]
fn a_batch_can_always_ask_for_its_changes() {
    let file = TestFile::new();
    smol::block_on(async {
        let db = file.open().await;
        db.execute_script("CREATE TABLE t (a); CREATE TABLE log (n); INSERT INTO t VALUES (1), (2)").await.unwrap();
        for _ in 0..4 {
            let statements = [("UPDATE t SET a = a + 1", params![]), ("INSERT INTO log VALUES (changes())", params![])];
            db.batch(statements).await.unwrap();
        }
        assert_eq!(db.query_value::<i64>("SELECT min(n) FROM log", ()).await.unwrap(), Some(2));
    });
}
