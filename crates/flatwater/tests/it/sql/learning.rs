//! What a worker learns about a statement after its second use must not have effects that callers can see.

use flatwater::{Database, ErrorKind, Options, named, params};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, unhurried};

in_both_places!(a_write_that_is_looked_at_sees_the_changes_of_the_one_before_it);

async fn three_updates_and_their_count(db: &Database) {
    db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)").await.unwrap();
    db.transaction(async |tx| {
        for _ in 0..4 {
            assert_eq!(tx.execute("UPDATE t SET a = a + 1", ()).await?.changes, 3);
            assert_eq!(tx.query_optional_value::<i64>("SELECT changes()", ()).await?, Some(3));
        }
        // What is refused does nothing.
        for _ in 0..4 {
            tx.execute("INSERT INTO t VALUES (9) RETURNING a", ()).await.unwrap_err();
            tx.query("INSERT INTO t VALUES (9)", ()).await.unwrap_err();
            tx.execute("INSERT INTO t VALUES (?)", ()).await.unwrap_err();
            tx.execute("INSERT INTO t VALUES (:a)", named! { "b": 1 }).await.unwrap_err();
            assert_eq!(tx.query_optional_value::<i64>("SELECT changes()", ()).await?, Some(3));
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
fn a_transaction_in_memory_can_always_ask_for_its_changes() {
    smol::block_on(async {
        three_updates_and_their_count(&Options::new(":memory:").open().await.unwrap()).await;
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
        assert_eq!(db.query_optional_value::<i64>("SELECT min(n) FROM log", ()).await.unwrap(), Some(2));
    });
}

/// Writes that call `changes()` indirectly: their text does not contain the call.
const ASKS: &[(&str, &str)] = &[
    (
        "a trigger",
        "CREATE TABLE asks (a); CREATE TRIGGER asking AFTER INSERT ON asks BEGIN INSERT INTO log VALUES (changes()); END",
    ),
    ("a default", "CREATE TABLE asks (a, n DEFAULT (changes()))"),
    ("a quoted default", "CREATE TABLE asks (a, n DEFAULT (\"Changes\"()))"),
    ("a check", "CREATE TABLE asks (a, CHECK (changes() = 3 OR total_changes() = 0))"),
    (
        "a default in a table of a trigger",
        "CREATE TABLE asks (a); CREATE TABLE logs (a, n DEFAULT (changes()), CHECK (n = 3));
         CREATE TRIGGER asking AFTER INSERT ON asks BEGIN INSERT INTO logs (a) VALUES (1); END",
    ),
    (
        "a view",
        "CREATE TABLE asked (n); CREATE VIEW asks (a) AS SELECT changes();
         CREATE TRIGGER asking INSTEAD OF INSERT ON asks BEGIN INSERT INTO log SELECT a FROM asks; END",
    ),
];

async fn a_write_that_is_looked_at_sees_the_changes_of_the_one_before_it(place: &Place) {
    for (what, schema) in ASKS {
        let place = place.another();
        let db = place.open().await;
        db.execute_script("CREATE TABLE t (a); CREATE TABLE log (n); INSERT INTO t VALUES (1), (2), (3)")
            .await
            .unwrap();
        db.execute_script(schema).await.unwrap();
        let (update, asks) = ("UPDATE t SET a = a + 1", "INSERT INTO asks (a) VALUES (1)");
        // Before 3.54 SQLite, and so SQLCipher, does not tell of the functions of a default: then it runs as any other.
        let is_refused = what.ends_with("default") && rusqlite::version_number() >= 3_054_000;
        for _ in 0..6 {
            assert_eq!(db.execute(update, ()).await.unwrap().changes, 3);
            match db.execute(asks, ()).await {
                Err(error) if is_refused => assert_eq!(error.kind(), ErrorKind::Misuse, "{what}: {error}"),
                asked => assert!(asked.is_ok() && !is_refused, "{what}: {asked:?}"),
            }
        }
        let tx = db.begin().await.unwrap();
        // Another spelling is another statement, which is known to nobody.
        let (update, asks) = (format!("{update} "), format!("{asks} "));
        for _ in 0..6 {
            assert_eq!(tx.execute(&update, ()).await.unwrap().changes, 3);
            tx.execute(&asks, ()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        tx.commit().await.unwrap();
        let columns = "SELECT count(*) FROM pragma_table_info('asks') WHERE name = 'n'";
        let has_default = db.query_optional_value::<i64>(columns, ()).await.unwrap() == Some(1);
        let seen = if has_default { "SELECT n FROM asks" } else { "SELECT n FROM log" };
        let seen: Vec<(i64,)> = db.query_as(seen, ()).await.unwrap();
        assert!(seen.iter().all(|(n,)| *n == 3), "{what}: {seen:?}");
        let all = if is_refused { 6 } else { 12 };
        assert!(seen.len() == all || what.contains("check") || what.contains("table of"), "{what}: {seen:?}");
        db.close().await.unwrap();
    }
}

/// Checked in the transaction that adds the trigger, and in a later one whose statement was prepared before.
#[test]
fn a_trigger_that_is_new_sees_the_changes_of_the_write_before_it() {
    let file = TestFile::new();
    smol::block_on(async {
        let db = file.open().await;
        db.execute_script("CREATE TABLE t (a); CREATE TABLE log (n); INSERT INTO t VALUES (1), (2), (3)")
            .await
            .unwrap();
        let trigger = "AFTER INSERT ON asks BEGIN INSERT INTO log VALUES (changes()); END";
        for (number, create) in ["CREATE TRIGGER", "CREATE TEMP TRIGGER"].into_iter().enumerate() {
            db.execute_script("DROP TABLE IF EXISTS asks; CREATE TABLE asks (a)").await.unwrap();
            let asks = format!("INSERT INTO asks VALUES ({number})");
            db.execute(&asks, ()).await.unwrap();
            let tx = db.begin().await.unwrap();
            tx.execute(format!("{create} asking {trigger}"), ()).await.unwrap();
            for _ in 0..4 {
                assert_eq!(tx.execute("UPDATE t SET a = a + 1", ()).await.unwrap().changes, 3);
                tx.execute(&asks, ()).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
        db.execute_script("DROP TABLE asks; CREATE TABLE asks (a)").await.unwrap();
        let asks = "INSERT INTO asks VALUES (9)";
        db.execute(asks, ()).await.unwrap();
        file.plain().execute_batch(&format!("CREATE TRIGGER asking {trigger}")).unwrap();
        let tx = db.begin().await.unwrap();
        for _ in 0..4 {
            assert_eq!(tx.execute("UPDATE t SET a = a + 1", ()).await.unwrap().changes, 3);
            tx.execute(asks, ()).await.unwrap();
        }
        tx.commit().await.unwrap();
        let seen: Vec<(i64,)> = db.query_as("SELECT n FROM log", ()).await.unwrap();
        assert_eq!(seen, [(3,); 12]);
        db.close().await.unwrap();
    });
}

/// Foreign key actions on other rows may call it too.
#[test]
fn a_default_that_a_foreign_key_sets_sees_the_changes_of_the_write_before_it() {
    let file = TestFile::new();
    smol::block_on(async {
        let db = file.open().await;
        db.execute_script(
            "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3);
             CREATE TABLE parent (id INTEGER PRIMARY KEY); INSERT INTO parent VALUES (3), (10), (11), (12), (13);
             CREATE TABLE child (p DEFAULT (changes()) REFERENCES parent (id) ON DELETE SET DEFAULT);
             INSERT INTO child VALUES (10), (11), (12), (13)",
        )
        .await
        .unwrap();
        let tx = db.begin().await.unwrap();
        for id in 10..14 {
            assert_eq!(tx.execute("UPDATE t SET a = a + 1", ()).await.unwrap().changes, 3);
            assert_eq!(tx.execute("DELETE FROM parent WHERE id = ?", (id,)).await.unwrap().changes, 1);
        }
        tx.commit().await.unwrap();
        assert_eq!(db.query_as::<(i64,)>("SELECT p FROM child", ()).await.unwrap(), [(3,); 4]);
        db.close().await.unwrap();
    });
}

#[test]
fn a_write_to_what_is_only_named_like_that_is_learnt_in_a_transaction() {
    let file = TestFile::new();
    smol::block_on(async {
        let db = unhurried(file.options()).open().await.unwrap();
        db.execute("CREATE TABLE changes (id INTEGER PRIMARY KEY, changes CHECK (changes > 0))", ()).await.unwrap();
        let insert = "INSERT INTO changes (changes) VALUES (?)";
        db.execute(insert, (9,)).await.unwrap();
        let tx = db.begin().await.unwrap();
        // One stays if the writer's thread waits for it again.
        while db.stats().inline.writes == 0 {
            tx.execute(insert, (9,)).await.unwrap();
        }
        tx.commit().await.unwrap();
        db.close().await.unwrap();
    });
}
