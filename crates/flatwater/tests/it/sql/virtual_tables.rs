//! Virtual tables that are part of SQLite: FTS5, FTS4 and R-Tree. They are read and written like any other table.

use std::time::Duration;

use flatwater::{Database, ErrorKind, Options};
use futures_util::Stream as _;
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, run};

in_both_places!(
    they_are_read_outside_of_a_transaction_and_inside,
    an_insert_tells_its_rowid_wherever_it_runs,
    a_command_to_a_full_text_index_inserts_nothing_and_a_row_0_is_a_row,
    inserts_into_them_share_commits_and_keep_their_own_results,
    a_full_text_index_out_of_step_with_its_content_is_no_damaged_file,
);

async fn a_full_text_index_out_of_step_with_its_content_is_no_damaged_file(place: &Place) {
    if !tables().await.iter().any(|table| table.module == "fts5") {
        return;
    }
    let db = place.open().await;
    let schema = "CREATE TABLE notes (id INTEGER PRIMARY KEY, body TEXT); CREATE TABLE other (a);
        CREATE VIRTUAL TABLE found USING fts5 (body, content='notes', content_rowid='id');
        INSERT INTO notes VALUES (1, 'tea'), (2, 'tea and milk');
        INSERT INTO found (found) VALUES ('rebuild'); DELETE FROM notes WHERE id = 2;
        CREATE TRIGGER gone AFTER DELETE ON notes BEGIN
            INSERT INTO found (found, rowid, body) VALUES ('delete', old.id, old.body); END";
    db.execute_script(schema).await.unwrap();
    let check = |error: flatwater::Error| {
        assert_eq!((error.kind(), error.sqlite_name()), (ErrorKind::Sql, Some("SQLITE_CORRUPT_VTAB")), "{error}");
        assert!(error.message().contains("full-text table found is out of step"), "{error}");
        assert!(!error.to_string().contains("malformed"), "{error}");
        assert!(error.hint().unwrap().contains("INSERT INTO found(found) VALUES ('rebuild')"), "{error}");
    };
    let search = "SELECT body FROM found WHERE found MATCH ?";
    check(db.query(search, ("milk",)).await.unwrap_err());
    check(db.query_optional(search, ("milk",)).await.unwrap_err());
    let mut rows = db.stream(search, ("milk",));
    check(std::future::poll_fn(|context| std::pin::Pin::new(&mut rows).poll_next(context)).await.unwrap().unwrap_err());
    // Writes beside one that fails by it are kept, and all goes on.
    let fails = || db.execute("INSERT INTO other SELECT body FROM found WHERE found MATCH 'milk'", ());
    let insert = || db.execute("INSERT INTO other VALUES (1)", ());
    let (before, failed, after) = futures_util::join!(insert(), fails(), insert());
    check(failed.unwrap_err());
    assert_eq!((before.unwrap().changes, after.unwrap().changes), (1, 1));
    let tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO other VALUES (2)", ()).await.unwrap();
    check(tx.query(search, ("milk",)).await.unwrap_err());
    tx.execute("INSERT INTO found (found) VALUES ('rebuild')", ()).await.unwrap();
    tx.commit().await.unwrap();
    assert!(db.query(search, ("milk",)).await.unwrap().is_empty());
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM other", ()).await, Ok(3));
    db.close().await.unwrap();
}

struct Table {
    module: &'static str,
    create: &'static str,
    /// A statement with a number as parameter, from which it makes the row.
    insert: &'static str,
    /// A statement that fails, because row 1 exists.
    taken: &'static str,
    /// Statements that each return 1 if row 1 is the only one.
    reads: &'static [&'static str],
}

const TABLES: &[Table] = &[
    Table {
        module: "fts5",
        create: "CREATE VIRTUAL TABLE v USING fts5 (x)",
        insert: "INSERT INTO v (x) VALUES ('word' || ?)",
        taken: "INSERT INTO v (rowid, x) VALUES (1, 'other')",
        reads: &[
            "SELECT count(*) FROM v",
            "SELECT count(*) FROM v WHERE v MATCH 'word1'",
            "SELECT rowid FROM v WHERE v MATCH 'word*' ORDER BY rank",
            "SELECT length(highlight(v, 0, '', '')) - 4 FROM v('word1')",
        ],
    },
    Table {
        module: "fts4",
        create: "CREATE VIRTUAL TABLE v USING fts4 (x)",
        insert: "INSERT INTO v (x) VALUES ('word' || ?)",
        taken: "INSERT INTO v (docid, x) VALUES (1, 'other')",
        reads: &["SELECT count(*) FROM v", "SELECT docid FROM v WHERE v MATCH 'word1'"],
    },
    Table {
        module: "rtree",
        create: "CREATE VIRTUAL TABLE v USING rtree (id, low, high)",
        insert: "INSERT INTO v (low, high) VALUES (?1, ?1 + 1)",
        taken: "INSERT INTO v VALUES (1, 0, 0)",
        reads: &["SELECT count(*) FROM v", "SELECT id FROM v WHERE low <= 1 AND high >= 1"],
    },
];

/// Returns the tables whose module is compiled in.
async fn tables() -> Vec<&'static Table> {
    let db = Database::open(":memory:").await.unwrap();
    let modules = db.query_as::<(String,)>("SELECT name FROM pragma_module_list", ()).await.unwrap();
    let tables: Vec<_> = TABLES.iter().filter(|table| modules.iter().any(|(name,)| name == table.module)).collect();
    assert!(tables.iter().any(|table| table.module == "fts5"), "{modules:?}");
    tables
}

async fn with_one_row(options: Options, table: &Table) -> Database {
    let db = options.open().await.unwrap();
    db.execute(table.create, ()).await.unwrap();
    let inserted = db.execute(table.insert, (1,)).await.unwrap();
    assert_eq!((inserted.changes, inserted.last_insert_rowid), (1, Some(1)), "{}", table.module);
    db
}

/// The time limit of a call that would wait for the writer.
const FAILS: Duration = Duration::from_secs(120);

async fn answers(db: &Database, sql: &str) {
    let one = db.with_timeout(FAILS).query_optional_value::<i64>(sql, ()).await;
    assert_eq!(one, Ok(Some(1)), "{sql}");
}

#[test]
fn they_are_read_on_readers_while_a_transaction_is_open() {
    run(async {
        for table in tables().await {
            let file = TestFile::new();
            let db = with_one_row(file.options().readers(1), table).await;
            let tx = db.begin().await.unwrap();
            tx.execute(table.insert, (2,)).await.unwrap();
            for sql in table.reads.iter().chain(table.reads) {
                answers(&db, sql).await;
            }
            tx.rollback().await.unwrap();
            answers(&db, table.reads[0]).await;
        }
    });
}

/// The first statement on a virtual table makes its connection prepare the table's own statements.
#[test]
fn they_are_read_on_readers_also_the_first_time_on_a_connection() {
    run(async {
        for table in tables().await {
            let file = TestFile::new();
            with_one_row(file.options(), table).await.close().await.unwrap();
            for sql in table.reads {
                let db = file.options().readers(2).open().await.unwrap();
                let tx = db.begin().await.unwrap();
                for _ in 0..3 {
                    futures_util::join!(answers(&db, sql), answers(&db, sql));
                }
                tx.rollback().await.unwrap();
                db.close().await.unwrap();
            }
        }
    });
}

#[test]
fn they_are_read_in_a_database_that_is_only_read() {
    run(async {
        for table in tables().await {
            let file = TestFile::new();
            with_one_row(file.options(), table).await.close().await.unwrap();
            for sql in table.reads {
                let db = file.options().read_only(true).open().await.unwrap();
                answers(&db, sql).await;
                answers(&db, sql).await;
                db.execute(table.insert, (2,)).await.unwrap_err();
                answers(&db, sql).await;
                db.close().await.unwrap();
            }
        }
    });
}

async fn they_are_read_outside_of_a_transaction_and_inside(place: &Place) {
    for table in tables().await {
        let place = place.another();
        let db = with_one_row(place.options(), table).await;
        for sql in table.reads {
            answers(&db, sql).await;
        }
        let tx = db.begin().await.unwrap();
        for sql in table.reads {
            assert_eq!(tx.query_optional_value::<i64>(sql, ()).await, Ok(Some(1)), "{sql}");
        }
        tx.execute(table.insert, (2,)).await.unwrap();
        assert_eq!(tx.query_optional_value::<i64>(table.reads[0], ()).await, Ok(Some(2)), "{}", table.module);
        tx.rollback().await.unwrap();
        answers(&db, table.reads[0]).await;
        db.close().await.unwrap();
    }
}

async fn an_insert_tells_its_rowid_wherever_it_runs(place: &Place) {
    for table in tables().await {
        let place = place.another();
        let db = with_one_row(place.options(), table).await;
        db.execute("CREATE TABLE t (a)", ()).await.unwrap();
        assert_eq!(db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap().last_insert_rowid, Some(1));
        let alone = db.ungrouped().execute(table.insert, (2,)).await.unwrap();
        assert_eq!((alone.changes, alone.last_insert_rowid), (1, Some(2)), "{}", table.module);
        let tx = db.begin().await.unwrap();
        assert_eq!(tx.execute(table.insert, (3,)).await.unwrap().last_insert_rowid, Some(3));
        tx.commit().await.unwrap();
        let updated = db.execute("UPDATE t SET a = 2", ()).await.unwrap();
        assert_eq!((updated.changes, updated.last_insert_rowid), (1, None));
        let deleted = db.execute("DELETE FROM v WHERE rowid = 2", ()).await.unwrap();
        assert_eq!((deleted.changes, deleted.last_insert_rowid), (1, None), "{}", table.module);
        let blocking = db.clone();
        let sql = table.insert;
        let inserted = tokio::task::spawn_blocking(move || blocking.execute(sql, (4,)).wait()).await.unwrap().unwrap();
        assert_eq!(inserted.last_insert_rowid, Some(4), "{}", table.module);
        db.close().await.unwrap();
    }
}

async fn a_command_to_a_full_text_index_inserts_nothing_and_a_row_0_is_a_row(place: &Place) {
    const COMMANDS: &[&str] = &["'optimize'", "'rebuild'", "'integrity-check'", "'automerge=8'"];
    for table in tables().await.into_iter().filter(|table| table.module.starts_with("fts")) {
        let place = place.another();
        let db = with_one_row(place.options(), table).await;
        db.execute("CREATE TABLE t (a)", ()).await.unwrap();
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        for command in COMMANDS.iter().filter(|c| table.module != "fts5" || !c.contains('=')) {
            let sql = format!("INSERT INTO v (v) VALUES ({command})");
            for _ in 0..4 {
                let commanded = db.execute(&sql, ()).await.unwrap();
                assert_eq!(commanded.last_insert_rowid, None, "{}: {command}", table.module);
                // The rowid that SQLite remembers is another one again.
                assert!(db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap().last_insert_rowid > Some(1));
            }
        }
        for rowid in [0, -1, 0] {
            let inserted = db.execute("INSERT INTO v (rowid, x) VALUES (?, 'word')", (rowid,)).await.unwrap();
            assert_eq!(inserted.last_insert_rowid, Some(rowid), "{}", table.module);
            db.execute("DELETE FROM v WHERE rowid < 1", ()).await.unwrap();
        }
        db.close().await.unwrap();
    }
}

async fn inserts_into_them_share_commits_and_keep_their_own_results(place: &Place) {
    for table in tables().await {
        let place = place.another();
        let db = with_one_row(place.options(), table).await;
        let mut last = 1;
        // A text is a member once it is known to be short.
        while db.stats().groups == 0 {
            let blocker = db.begin().await.unwrap();
            let mut calls: Vec<_> = (0..20).map(|n| db.execute(table.insert, (n,))).collect();
            for call in &mut calls {
                assert!(futures_util::poll!(call).is_pending());
            }
            let mut taken = db.execute(table.taken, ());
            assert!(futures_util::poll!(&mut taken).is_pending());
            blocker.rollback().await.unwrap();
            for inserted in join_all(calls).await {
                last += 1;
                assert_eq!(inserted.unwrap().last_insert_rowid, Some(last), "{}", table.module);
            }
            assert_eq!(taken.await.unwrap_err().kind(), ErrorKind::Constraint, "{}", table.module);
        }
        assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM v", ()).await.unwrap(), Some(last));
        db.close().await.unwrap();
    }
}
