//! Closures on each connection that is opened: where they run, what they may do, and what is made of what they leave.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use flatwater::{Database, Error, ErrorKind, Options};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::functions::{Aggregate, Context, FunctionFlags};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, empty_table, integer, run};

in_both_places!(
    each_call_has_what_on_connect_registered,
    a_connection_that_is_opened_again_has_it_too,
    an_open_whose_closure_fails_names_it,
    what_a_closure_set_is_set_back,
    what_no_text_may_do_no_closure_may_do,
    a_closure_cannot_call_the_database,
    closures_run_in_their_order_and_before_the_sql,
);

const PURE: FunctionFlags =
    FunctionFlags::SQLITE_UTF8.union(FunctionFlags::SQLITE_DETERMINISTIC).union(FunctionFlags::SQLITE_INNOCUOUS);

/// Multiplies.
struct Product;

impl Aggregate<i64, i64> for Product {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<i64> {
        Ok(1)
    }

    fn step(&self, context: &mut Context<'_>, product: &mut i64) -> rusqlite::Result<()> {
        *product *= context.get::<i64>(0)?;
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, product: Option<i64>) -> rusqlite::Result<i64> {
        Ok(product.unwrap_or(1))
    }
}

fn register(connection: &Connection) -> rusqlite::Result<()> {
    connection.create_scalar_function("half", 1, PURE, |context| Ok(context.get::<i64>(0)? / 2))?;
    connection.create_aggregate_function("product", 1, PURE, Product)?;
    connection.create_collation("by_length", |one, other| one.len().cmp(&other.len()))
}

/// Returns what a query with all of them returns.
fn uses(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT half(product(a)) FROM t WHERE 'ab' = 'xy' COLLATE by_length", [], |row| row.get(0))
}

const USES: &str = "SELECT half(product(a)) FROM t WHERE 'ab' = 'xy' COLLATE by_length";

async fn each_call_has_what_on_connect_registered(place: &Place) {
    let db = empty_table(place.options().on_connect(register)).await;
    db.execute("INSERT INTO t VALUES (half(8)), (half(6))", ()).await.unwrap();
    let wanted: i64 = 6;
    let reads: Vec<_> = (0..20).map(|_| db.query_value::<i64>(USES, ())).collect();
    for read in futures_util::future::join_all(reads).await {
        assert_eq!(read.unwrap(), wanted);
    }
    assert_eq!(db.read_with(|c| Ok::<_, Error>(uses(c).unwrap())).await.unwrap(), wanted);
    assert_eq!(db.write_with(|tx| Ok::<_, Error>(uses(tx).unwrap())).await.unwrap(), wanted);
    assert_eq!(db.with_connection(|c| Ok::<_, Error>(uses(c).unwrap())).await.unwrap(), wanted);
    let mut tx = db.begin().await.unwrap();
    assert_eq!(tx.query_value::<i64>(USES, ()).await.unwrap(), wanted);
    let nested = tx.begin().await.unwrap();
    assert_eq!(nested.query_value::<i64>(USES, ()).await.unwrap(), wanted);
    nested.commit().await.unwrap();
    tx.commit().await.unwrap();
    let snapshot = db.snapshot().await.unwrap();
    assert_eq!(snapshot.query_value::<i64>(USES, ()).await.unwrap(), wanted);
    drop(snapshot);
    let mut live = db.live(USES, ());
    assert_eq!(live.next().await.unwrap().unwrap().read::<(i64,)>().unwrap(), [(wanted,)]);
}

async fn a_connection_that_is_opened_again_has_it_too(place: &Place) {
    let db = empty_table(place.options().on_connect(register)).await;
    let forgets = |c: &mut Connection| {
        c.remove_function("half", 1).unwrap();
        Ok::<_, Error>(())
    };
    db.with_connection(forgets).await.unwrap();
    db.execute("INSERT INTO t VALUES (half(8))", ()).await.unwrap();
    assert_eq!(db.query_value::<i64>("SELECT half(a) FROM t", ()).await.unwrap(), 2);
}

async fn an_open_whose_closure_fails_names_it(place: &Place) {
    let fails = |c: &Connection| c.execute_batch("SELECT no_such_thing");
    let error = place.options().on_connect(fails).open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Sql);
    assert!(error.message().starts_with("`on_connect` failed: no such column: no_such_thing"), "{error}");
    assert_eq!(error.operation(), Some("open"));
    let error = place.options().on_connect(|_| panic!("planted")).open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert_eq!(error.message(), "`on_connect` failed: the closure panicked: planted");
    let leaves = |c: &Connection| {
        let mut statement = c.prepare("SELECT 1 UNION ALL SELECT 2")?;
        let mut rows = statement.query([])?;
        rows.next()?;
        std::mem::forget(rows);
        std::mem::forget(statement);
        Ok(())
    };
    let error = Options::new(":memory:").on_connect(leaves).open().await.unwrap_err();
    assert!(error.message().contains("in the middle of its rows"), "{error}");
}

async fn what_a_closure_set_is_set_back(place: &Place) {
    let sets = |c: &Connection| {
        c.busy_timeout(std::time::Duration::ZERO)?;
        c.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false)?;
        Ok(())
    };
    let db = place.options().on_connect(sets).open().await.unwrap();
    let schema = "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p)";
    db.execute_script(schema).await.unwrap();
    let orphan = db.execute("INSERT INTO c VALUES (1)", ()).await.unwrap_err();
    assert_eq!(orphan.kind(), ErrorKind::Constraint);
    let Some(file) = place.file() else { return };
    let other = file.plain();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = tokio::spawn(async move { db.execute("INSERT INTO p VALUES (1)", ()).await });
    // Whether it has tried for the lock by then or not, it waits for it.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    other.execute_batch("COMMIT").unwrap();
    write.await.unwrap().unwrap();
}

async fn what_no_text_may_do_no_closure_may_do(place: &Place) {
    let refused = [
        ("BEGIN", "BEGIN"),
        ("SAVEPOINT a", "SAVEPOINT"),
        ("ATTACH ':memory:' AS other", "ATTACH"),
        ("CREATE TEMP TABLE mine (a)", "TEMP"),
        ("PRAGMA foreign_keys = OFF", "foreign_keys"),
        ("PRAGMA journal_mode = DELETE", "journal_mode"),
        ("PRAGMA busy_timeout = 0", "busy_timeout"),
        ("PRAGMA nonsense", "nonsense"),
    ];
    for (sql, said) in refused {
        let error = place.options().on_connect(|c| c.execute_batch(sql)).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{sql}: {error}");
        assert!(error.message().starts_with("`on_connect` failed: ") && error.message().contains(said), "{error}");
        assert!(error.hint().is_some(), "{sql}");
    }
    let allowed =
        place.options().on_connect(|c| c.execute_batch("PRAGMA recursive_triggers = ON; PRAGMA foreign_keys"));
    let db = allowed.open().await.unwrap();
    assert_eq!(db.query_value::<i64>("PRAGMA recursive_triggers", ()).await.unwrap(), 1);
}

async fn a_closure_cannot_call_the_database(place: &Place) {
    let db: Arc<Mutex<Option<Database>>> = Arc::default();
    let refused: Arc<Mutex<Vec<ErrorKind>>> = Arc::default();
    let (seen, kinds) = (db.clone(), refused.clone());
    let calls = move |_: &Connection| {
        let db = seen.lock().unwrap().clone();
        let called = db.map(|db| db.query("SELECT 1", ()).wait());
        kinds.lock().unwrap().extend(called.into_iter().filter_map(Result::err).map(|error| error.kind()));
        Ok(())
    };
    let opened = place.options().on_connect(calls).open().await.unwrap();
    *db.lock().unwrap() = Some(opened.clone());
    // The connection is opened again; in memory its closures run again.
    opened.with_connection(|_| Ok::<_, Error>(())).await.unwrap();
    opened.execute("CREATE TABLE t (a)", ()).await.unwrap();
    assert_eq!(*refused.lock().unwrap(), [ErrorKind::Misuse]);
    db.lock().unwrap().take();
    opened.close().await.unwrap();
}

async fn closures_run_in_their_order_and_before_the_sql(place: &Place) {
    let one = |c: &Connection| c.create_scalar_function("which", 0, PURE, |_| Ok(1));
    let two = |c: &Connection| {
        assert_eq!(integer(c, "SELECT which()"), 1);
        c.create_scalar_function("which", 0, PURE, |_| Ok(2))
    };
    let options = place.options().on_connect(one).on_connect(two).on_open("SELECT which()");
    let db = options.open().await.unwrap();
    assert_eq!(db.query_value::<i64>("SELECT which()", ()).await.unwrap(), 2);
}

/// Options of which a closure counts the connections.
fn counted(file: &TestFile) -> (Options, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counts = count.clone();
    let options = file.options().on_connect(move |_| {
        counts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    (options, count)
}

#[test]
fn the_writer_and_each_reader_run_it_once_and_nothing_else_does() {
    let file = TestFile::new();
    run(async {
        let (options, count) = counted(&file);
        let db = empty_table(options.readers(1)).await;
        assert_eq!(count.load(Ordering::SeqCst), 2);
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.checkpoint(flatwater::calls::CheckpointMode::Truncate).await.unwrap();
        db.query("SELECT * FROM t", ()).await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 2);
        db.with_connection(|_| Ok::<_, Error>(())).await.unwrap();
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn what_fails_only_on_a_reader_fails_the_open() {
    let file = TestFile::new();
    run(async {
        let writes = |c: &Connection| c.execute_batch("CREATE TABLE IF NOT EXISTS t (a); INSERT INTO t VALUES (1)");
        let error = file.options().on_connect(writes).open().await.unwrap_err();
        assert!(error.message().starts_with("`on_connect` failed: attempt to write a readonly database"), "{error}");
    });
}

#[test]
fn a_connection_that_cannot_be_opened_later_fails_only_its_call() {
    let file = TestFile::new();
    run(async {
        let left = Arc::new(AtomicUsize::new(2));
        let fails = left.clone();
        let options = file.options().readers(1).on_connect(move |_| {
            let enough = fails.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            enough.map(drop).map_err(|_| rusqlite::Error::QueryReturnedNoRows)
        });
        let db = empty_table(options).await;
        // It replaces the connection.
        db.with_connection(|_| Ok::<_, Error>(())).await.unwrap();
        let error = db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap_err();
        assert!(error.message().starts_with("`on_connect` failed: "), "{error}");
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
        left.store(9, Ordering::SeqCst);
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 1);
    });
}

#[test]
fn a_second_open_needs_the_same_closure() {
    let file = TestFile::new();
    run(async {
        let options = file.options().on_connect(register);
        let _db = options.clone().open().await.unwrap();
        options.open().await.unwrap();
        for other in [file.options(), file.options().on_connect(register)] {
            let error = other.open().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse);
            assert!(error.message().contains("`on_connect`"), "{error}");
        }
    });
}

#[test]
fn a_function_or_collation_that_nobody_registered_is_named_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::new(directory.path().join("a.db"));
    run(async {
        let db = options.clone().on_connect(register).open().await.unwrap();
        db.execute_script(
            "CREATE TABLE checked (a CHECK (half(a) > 1)); CREATE TABLE made (a, b AS (half(a)));
             CREATE TABLE sorted (a TEXT COLLATE by_length); CREATE INDEX sorted_a ON sorted (a)",
        )
        .await
        .unwrap();
        db.close().await.unwrap();
        let db = options.open().await.unwrap();
        for (sql, said) in [
            ("SELECT half(8)", "no such function: half"),
            ("INSERT INTO checked VALUES (8)", "unknown function: half()"),
            ("SELECT b FROM made", "unknown function: half()"),
            ("INSERT INTO sorted VALUES ('a')", "no such collation sequence: by_length"),
            ("SELECT 'a' = 'b' COLLATE by_length", "no such collation sequence: by_length"),
        ] {
            let error = match sql.starts_with("SELECT") {
                true => db.query(sql, ()).await.map(drop).unwrap_err(),
                false => db.execute(sql, ()).await.map(drop).unwrap_err(),
            };
            assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, said), "{sql}");
            assert!(error.hint().is_some_and(|hint| hint.contains("`Options::on_connect`")), "{sql}: {error}");
        }
    });
}
