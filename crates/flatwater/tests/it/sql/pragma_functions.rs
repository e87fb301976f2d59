//! PRAGMAs that are read as tables: `SELECT * FROM pragma_table_info('t')` (<https://sqlite.org/pragma.html#pragfunc>).
//! They use the same route as the PRAGMA itself.

use flatwater::{Database, Error, ErrorKind, Params, rusqlite};

use crate::place::{Place, in_both_places};
use crate::support::empty_table;

in_both_places!(
    a_pragma_that_is_read_as_a_table_is_answered_by_whoever_may_run_it,
    a_table_that_optimizes_is_the_writers,
);

async fn table(place: &Place) -> Database {
    let db = empty_table(place.options()).await;
    db.execute("CREATE INDEX by_a ON t (a)", ()).await.unwrap();
    db
}

/// Every PRAGMA that can be read as a table, with its arguments. SQLite has no such table for the others.
async fn a_pragma_that_is_read_as_a_table_is_answered_by_whoever_may_run_it(place: &Place) {
    let db = table(place).await;
    let names: Vec<(String,)> = db.query_as("SELECT name FROM pragma_pragma_list", ()).await.unwrap();
    let before = settings(&db, &names).await;
    let mut answered = 0;
    for (name,) in &names {
        for arguments in ["", "('t')", "(1)", "(0)", "(-1)", "('main')", "(1, 'main')"] {
            let sql = format!("SELECT * FROM pragma_{name}{arguments}");
            match db.query(&sql, ()).await {
                Ok(_) => answered += 1,
                Err(error) => {
                    let text = error.message();
                    let none = ["no such table", "too many arguments", "unknown database"];
                    assert!(none.iter().any(|none| text.contains(none)), "{sql}: {error}");
                    continue;
                }
            }
            let tx = db.begin().await.unwrap();
            tx.query(&sql, ()).await.unwrap_or_else(|error| panic!("in a transaction: {sql}: {error}"));
            tx.rollback().await.unwrap();
        }
    }
    assert!(answered > 100, "{answered}");
    assert_eq!(settings(&db, &names).await, before);
}

/// Returns the results of each PRAGMA without arguments, in a write closure and in a read closure.
async fn settings(db: &Database, names: &[(String,)]) -> Vec<Vec<String>> {
    let moves = ["data_version", "optimize", "incremental_vacuum", "wal_checkpoint", "module_list", "page_count"];
    let names: Vec<String> = names.iter().map(|(name,)| name.clone()).filter(|n| !moves.contains(&&**n)).collect();
    let ask = |c: &rusqlite::Connection, names: &[String]| {
        let ask = |name: &String| {
            let mut statement = c.prepare(&format!("SELECT * FROM pragma_{name}")).ok()?;
            statement.query_row([], |row| row.get::<_, rusqlite::types::Value>(0)).ok()
        };
        names.iter().map(|name| format!("{name}: {:?}", ask(name))).collect::<Vec<_>>()
    };
    let copy = names.clone();
    let written = db.write_with(move |tx| Ok::<_, Error>(ask(tx, &copy))).await.unwrap();
    vec![written, db.read_with(move |c| Ok::<_, Error>(ask(c, &names))).await.unwrap()]
}

/// Like `PRAGMA optimize`: only the writer runs it, alone, and it is refused where writes are refused.
async fn a_table_that_optimizes_is_the_writers(place: &Place) {
    let db = table(place).await;
    db.execute("CREATE TABLE said (text)", ()).await.unwrap();
    db.execute_many("INSERT INTO t VALUES (?)", (0..500).map(|n| (n,))).await.unwrap();
    db.execute("CREATE VIEW optimizing AS SELECT * FROM pragma_optimize(-1)", ()).await.unwrap();
    let texts = ["SELECT * FROM pragma_optimize(-1)", "SELECT * FROM Pragma_Optimize(?)", "SELECT * FROM optimizing"];
    for sql in texts {
        let params: &[i64] = if sql.contains('?') { &[-1] } else { &[] };
        for _ in 0..4 {
            let would: Vec<(String,)> = db.query_as(sql, Params::positional(params.to_vec())).await.unwrap();
            assert!(would.iter().any(|(text,)| text.contains("ANALYZE")), "{sql}: {would:?}");
        }
    }
    let sql = "INSERT INTO said SELECT * FROM pragma_optimize(-1)";
    let blocker = db.begin().await.unwrap();
    let mut calls: Vec<_> = (0..8).map(|_| db.execute(sql, ())).collect();
    for call in &mut calls {
        assert!(futures_util::poll!(call).is_pending());
    }
    blocker.rollback().await.unwrap();
    for call in calls {
        assert!(call.await.unwrap().changes > 0);
    }
    assert_eq!(db.stats().groups, 0);
    db.query("SELECT * FROM pragma_optimize(0x10002)", ()).await.unwrap();
    let analyzed = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'";
    assert_eq!(db.query_optional_value::<i64>(analyzed, ()).await.unwrap(), Some(1));
    if let Some(file) = place.file() {
        db.close().await.unwrap();
        let db = file.options().read_only(true).open().await.unwrap();
        for sql in ["PRAGMA optimize(-1)", texts[0], texts[2]] {
            let error = db.query(sql, ()).await.unwrap_err();
            assert!(error.kind() == ErrorKind::Misuse && error.message().contains("read-only"), "{sql}: {error}");
        }
        assert_eq!(db.query("SELECT * FROM pragma_table_info('t')", ()).await.unwrap().len(), 1);
    }
}
