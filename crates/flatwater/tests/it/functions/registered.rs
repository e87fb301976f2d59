//! Functions and collations on an open database: when each connection has them, and what becomes of statements that call
//! them.
//!
//! Leaves out: closures that register them when a connection is opened (`on_connect`), functions in the schema
//! (`in_schemas`).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flatwater::events::{ExecutedOn, StatementEvent};
use flatwater::{Database, Error, ErrorKind};
use futures_util::future::join_all;
use rusqlite::functions::{Aggregate, Context, FunctionFlags, WindowAggregate};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, empty_table, grouped, run, unhurried, until, wait_until, waiting};

in_both_places!(
    each_call_that_begins_later_has_a_function,
    a_function_that_is_replaced_is_called_no_more,
    a_function_that_is_removed_is_unknown,
    a_transaction_that_is_open_has_it_from_its_next_statement_on,
    one_with_the_name_of_sqlites_own_is_called_at_once,
    a_closure_that_replaced_a_function_is_undone,
    a_panic_of_a_function_is_the_error_of_its_statement,
    a_panic_of_a_collation_is_the_error_of_its_statement,
    code_of_the_program_that_fails_leaves_no_part_of_a_row,
    the_error_of_a_function_is_the_source_of_that_of_its_statement,
    what_a_function_owns_is_let_go_when_the_database_is_closed,
    a_function_cannot_call_the_database,
    a_deadline_ends_a_statement_between_two_calls,
    what_sqlite_refuses_is_refused_at_once,
    a_function_never_runs_on_its_callers_thread,
    impure_writes_share_no_commit,
    a_live_query_follows_its_functions,
);

pub(crate) const PURE: FunctionFlags = FunctionFlags::SQLITE_DETERMINISTIC.union(FunctionFlags::SQLITE_INNOCUOUS);
const IMPURE: FunctionFlags = FunctionFlags::SQLITE_UTF8;

/// Sums, as an aggregate and in windows.
struct Sum;

impl Aggregate<i64, i64> for Sum {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<i64> {
        Ok(0)
    }

    fn step(&self, context: &mut Context<'_>, sum: &mut i64) -> rusqlite::Result<()> {
        *sum += context.get::<i64>(0)?;
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, sum: Option<i64>) -> rusqlite::Result<i64> {
        Ok(sum.unwrap_or(0))
    }
}

impl WindowAggregate<i64, i64> for Sum {
    fn value(&self, sum: Option<&mut i64>) -> rusqlite::Result<i64> {
        Ok(sum.map_or(0, |sum| *sum))
    }

    fn inverse(&self, context: &mut Context<'_>, sum: &mut i64) -> rusqlite::Result<()> {
        *sum -= context.get::<i64>(0)?;
        Ok(())
    }
}

/// Creates the function `version`, which returns the number.
fn version(db: &Database, number: i64) {
    db.functions().create_scalar_function("version", 0, PURE, move |_| Ok(number)).unwrap();
}

/// Returns what it returns, on every connection that may run a read.
async fn versions(db: &Database) -> BTreeSet<i64> {
    let reads: Vec<_> = (0..20).map(|_| db.query_value::<i64>("SELECT version()", ())).collect();
    let mut seen: BTreeSet<i64> = join_all(reads).await.into_iter().map(Result::unwrap).collect();
    seen.insert(
        db.write_with(|tx| Ok::<_, Error>(tx.query_row("SELECT version()", [], |row| row.get(0))?)).await.unwrap(),
    );
    seen.insert(db.query_value("INSERT INTO t VALUES (version()) RETURNING a", ()).await.unwrap());
    seen
}

/// Opens a database whose connections are open and have been used.
async fn in_use(place: &Place) -> Database {
    let db = empty_table(place.options()).await;
    db.execute("INSERT INTO t VALUES (1), (2), (3)", ()).await.unwrap();
    let reads: Vec<_> = (0..20).map(|_| db.query("SELECT * FROM t ORDER BY a", ())).collect();
    assert!(join_all(reads).await.iter().all(Result::is_ok));
    db
}

async fn each_call_that_begins_later_has_a_function(place: &Place) {
    let db = in_use(place).await;
    version(&db, 1);
    db.functions().create_aggregate_function("total_of", 1, PURE, Sum).unwrap();
    db.functions().create_window_function("sum_of", 1, PURE, Sum).unwrap();
    db.functions().create_collation("by_length", |one, other| one.len().cmp(&other.len())).unwrap();
    assert_eq!(versions(&db).await, BTreeSet::from([1]));
    let sql = "SELECT total_of(a) FROM t WHERE a > 1 AND 'ab' = 'xy' COLLATE by_length";
    assert_eq!(db.query_value::<i64>(sql, ()).await.unwrap(), 5);
    let windows = "SELECT sum_of(a) OVER (ORDER BY rowid ROWS 1 PRECEDING) FROM t LIMIT 3";
    let sums: Vec<(i64,)> = db.query(windows, ()).await.unwrap().read().unwrap();
    assert_eq!(sums, [(1,), (3,), (5,)]);
    if place.has_readers() {
        // Another handle of the file has them too.
        let other = place.open().await;
        assert_eq!(other.query_value::<i64>("SELECT version()", ()).await.unwrap(), 1);
    }
}

async fn a_function_that_is_replaced_is_called_no_more(place: &Place) {
    let db = in_use(place).await;
    for number in 1..20 {
        version(&db, number);
        assert_eq!(versions(&db).await, BTreeSet::from([number]));
    }
    // Another number of arguments is another function.
    db.functions().create_scalar_function("version", -1, PURE, |_| Ok(0)).unwrap();
    assert_eq!(versions(&db).await, BTreeSet::from([19]));
    assert_eq!(db.query_value::<i64>("SELECT version(1)", ()).await.unwrap(), 0);
    db.functions().create_scalar_function("version", 1, PURE, |_| Ok(100)).unwrap();
    assert_eq!(db.query_value::<i64>("SELECT version(1)", ()).await.unwrap(), 100);
}

async fn a_function_that_is_removed_is_unknown(place: &Place) {
    let db = in_use(place).await;
    version(&db, 1);
    db.functions().create_scalar_function("upper", 1, PURE, |_| Ok("mine")).unwrap();
    db.functions().create_collation("by_length", |one, other| one.len().cmp(&other.len())).unwrap();
    assert_eq!(versions(&db).await, BTreeSet::from([1]));
    assert_eq!(db.query_value::<String>("SELECT upper('a' COLLATE by_length)", ()).await.unwrap(), "mine");
    db.functions().remove_function("VERSION", 0).unwrap();
    db.functions().remove_function("upper", 1).unwrap();
    db.functions().remove_collation("By_Length").unwrap();
    for _ in 0..20 {
        for (sql, said) in [
            ("SELECT version()", "no such function: version"),
            ("SELECT 'a' = 'b' COLLATE by_length", "no such collation sequence: by_length"),
        ] {
            let error = db.query(sql, ()).await.unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, said));
            assert!(error.hint().is_some_and(|hint| hint.contains("`db.functions()`")), "{error}");
        }
    }
    let writes = db.execute("INSERT INTO t VALUES (version())", ()).await.unwrap_err();
    assert_eq!(writes.message(), "no such function: version");
    if place.file().is_some() {
        assert_eq!(db.query_value::<String>("SELECT upper('a')", ()).await.unwrap(), "A");
        let upper = "INSERT INTO t VALUES (upper('a')) RETURNING a";
        assert_eq!(db.query_value::<String>(upper, ()).await.unwrap(), "A");
    }
    let again = db.functions().remove_function("version", 0).unwrap_err();
    assert_eq!((again.kind(), again.operation()), (ErrorKind::Misuse, Some("remove_function")));
    version(&db, 2);
    assert_eq!(versions(&db).await, BTreeSet::from([2]));
}

async fn a_transaction_that_is_open_has_it_from_its_next_statement_on(place: &Place) {
    let db = in_use(place).await;
    let mut tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO t VALUES (4)", ()).await.unwrap();
    for number in 1..5 {
        version(&db, number);
        // The second time it might run on this thread, if it were short.
        for _ in 0..3 {
            assert_eq!(tx.query_value::<i64>("SELECT version()", ()).await.unwrap(), number);
        }
    }
    let nested = tx.begin().await.unwrap();
    db.functions().remove_function("version", 0).unwrap();
    assert!(nested.query("SELECT version()", ()).await.unwrap_err().message().contains("version"));
    nested.rollback().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 4);
}

async fn one_with_the_name_of_sqlites_own_is_called_at_once(place: &Place) {
    let db = empty_table(unhurried(place.options())).await;
    db.execute("INSERT INTO t VALUES ('a')", ()).await.unwrap();
    let read = "SELECT upper(a) FROM t WHERE rowid = 1";
    let write = "INSERT INTO t VALUES (upper('a')) RETURNING a";
    let tx = db.begin().await.unwrap();
    let said = async |wanted: &str| {
        for sql in [read, write] {
            assert_eq!(tx.query_value::<String>(sql, ()).await.unwrap(), wanted, "in the transaction: {sql}");
        }
        if place.has_readers() {
            assert_eq!(db.query_value::<String>(read, ()).await.unwrap(), wanted);
        }
    };
    let before = db.stats().inline;
    let has_run_here = || {
        let now = db.stats().inline;
        now.writes > before.writes && now.reads > before.reads
    };
    // Outside of WAL mode no write runs inline.
    for time in 0.. {
        said("A").await;
        if time >= 10 && (!place.has_readers() || has_run_here()) {
            break;
        }
        assert!(time < 10_000, "{before:?} {:?}", db.stats().inline);
    }
    db.functions().create_scalar_function("upper", 1, PURE, |_| Ok("mine")).unwrap();
    said("mine").await;
    tx.rollback().await.unwrap();
    for number in 0..10 {
        db.functions().create_scalar_function("upper", 1, PURE, move |_| Ok(number.to_string())).unwrap();
        assert_eq!(db.query_value::<String>(write, ()).await.unwrap(), number.to_string());
    }
}

async fn a_closure_that_replaced_a_function_is_undone(place: &Place) {
    let db = in_use(place).await;
    version(&db, 1);
    let replaces = |c: &mut rusqlite::Connection| {
        c.create_scalar_function("version", 0, IMPURE, |_| Ok(-1))?;
        Ok::<_, Error>(())
    };
    db.with_connection(replaces).await.unwrap();
    assert_eq!(versions(&db).await, BTreeSet::from([1]));
}

/// Panics for a text and for the third row.
struct PanicsAt3;

impl Aggregate<i64, i64> for PanicsAt3 {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<i64> {
        Ok(0)
    }

    fn step(&self, _: &mut Context<'_>, rows: &mut i64) -> rusqlite::Result<()> {
        *rows += 1;
        assert!(*rows < 3, "the third row");
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, rows: Option<i64>) -> rusqlite::Result<i64> {
        Ok(rows.unwrap_or(0))
    }
}

async fn a_panic_of_a_function_is_the_error_of_its_statement(place: &Place) {
    let db = in_use(place).await;
    db.functions()
        .create_scalar_function("panics_at", 2, IMPURE, |context| {
            let (value, at) = (context.get::<i64>(0)?, context.get::<i64>(1)?);
            assert!(value != at, "planted");
            Ok(value)
        })
        .unwrap();
    db.functions()
        .create_scalar_function("fails", 0, PURE, |_| {
            Err::<i64, _>(rusqlite::Error::UserFunctionError("no luck".into()))
        })
        .unwrap();
    db.functions().create_aggregate_function("panics_at_3", 1, PURE, PanicsAt3).unwrap();
    let mut tx = db.begin().await.unwrap();
    for _ in 0..5 {
        for (sql, said) in [
            ("SELECT panics_at(a, 2) FROM t", "the function panics_at panicked: planted"),
            ("SELECT panics_at_3(a) FROM t", "the function panics_at_3 panicked: the third row"),
            ("SELECT fails()", "no luck"),
        ] {
            let error = tx.query(sql, ()).await.unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, said));
        }
        let nested = tx.begin().await.unwrap();
        let error = nested.execute("UPDATE t SET a = panics_at(a, 2) + 10", ()).await.unwrap_err();
        assert_eq!(error.message(), "the function panics_at panicked: planted");
        nested.commit().await.unwrap();
    }
    tx.commit().await.unwrap();
    for _ in 0..5 {
        let error = db.execute("UPDATE t SET a = panics_at(a, 2) + 10", ()).await.unwrap_err();
        assert_eq!(error.message(), "the function panics_at panicked: planted");
        let error = db.query("SELECT panics_at(a, 2) FROM t", ()).await.unwrap_err();
        assert_eq!(error.message(), "the function panics_at panicked: planted");
    }
    let rows: Vec<(i64,)> = db.query("SELECT panics_at(a, 9) FROM t ORDER BY a", ()).await.unwrap().read().unwrap();
    assert_eq!(rows, [(1,), (2,), (3,)], "what failed changed nothing, and its connections are used on");
    assert_eq!(db.stats().replaced_connections, 0);
}

async fn a_panic_of_a_collation_is_the_error_of_its_statement(place: &Place) {
    let db = in_use(place).await;
    let panics = |one: &str, other: &str| {
        assert!(one != "x" && other != "x", "planted");
        one.cmp(other)
    };
    db.functions().create_collation("careful", panics).unwrap();
    db.execute_script("CREATE TABLE w (a TEXT COLLATE careful UNIQUE); INSERT INTO w VALUES ('a'), ('z')")
        .await
        .unwrap();
    let said = "the collation careful panicked: planted";
    for _ in 0..4 {
        for sql in ["INSERT INTO w VALUES ('x')", "UPDATE w SET a = 'x' WHERE a = 'a'"] {
            let error = db.execute(sql, ()).await.unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, said), "{sql}");
            let error = db.batch([(sql, flatwater::params![])]).await.unwrap_err();
            assert_eq!(error.message(), said, "{sql}");
            let mut tx = db.begin().await.unwrap();
            tx.execute("INSERT INTO t VALUES (9)", ()).await.unwrap();
            assert_eq!(tx.execute(sql, ()).await.unwrap_err().message(), said);
            let nested = tx.begin().await.unwrap();
            assert_eq!(nested.execute(sql, ()).await.unwrap_err().message(), said);
            nested.commit().await.unwrap();
            tx.commit().await.unwrap();
            let closure = db.write_with(move |tx| Ok::<_, Error>(tx.execute(sql, [])?)).await.unwrap_err();
            assert_eq!(closure.message(), said);
        }
        let read = db.query("SELECT a FROM w ORDER BY a || '' COLLATE careful, 'x' = a", ()).await.unwrap_err();
        assert_eq!(read.message(), said);
        let read = db.query("SELECT a FROM w WHERE a = 'x'", ()).await.unwrap_err();
        assert_eq!(read.message(), said);
        let reads = |c: &rusqlite::Connection| {
            Ok::<bool, Error>(c.query_row("SELECT 'x' = 'x' COLLATE careful", [], |row| row.get(0))?)
        };
        assert_eq!(db.read_with(reads).await.unwrap_err().message(), said);
        let left: Vec<(String,)> = db.query("SELECT a FROM w ORDER BY a", ()).await.unwrap().read().unwrap();
        assert_eq!(left, [("a".into(),), ("z".into(),)]);
    }
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t WHERE a = 9", ()).await.unwrap(), 8);
    assert_eq!(db.query_value::<String>("PRAGMA integrity_check", ()).await.unwrap(), "ok");
    // Plain SQLite, which checks the file after the test, has no such collation.
    db.execute("DROP TABLE w", ()).await.unwrap();
}

/// Creates a collation in descending order and a function, which fail while the flag is set, by a panic and by an error, and a
/// table with an index on each.
async fn shaky(db: &Database) -> Arc<AtomicBool> {
    let fails = Arc::new(AtomicBool::new(false));
    let (of_collation, of_function) = (fails.clone(), fails.clone());
    let descending = move |one: &str, other: &str| {
        assert!(!of_collation.load(Ordering::Relaxed), "planted");
        other.cmp(one)
    };
    db.functions().create_collation("shaky", descending).unwrap();
    let itself = move |context: &Context<'_>| match of_function.load(Ordering::Relaxed) {
        true => Err(rusqlite::Error::UserFunctionError("planted".into())),
        false => context.get::<i64>(0),
    };
    db.functions().create_scalar_function("shaky", 1, PURE, itself).unwrap();
    // SQLite deletes from the newest index first.
    let schema = "CREATE TABLE w (id INTEGER PRIMARY KEY, a TEXT COLLATE shaky, b, c);
                  CREATE INDEX w_b ON w (shaky(b)); CREATE INDEX w_c ON w (c); CREATE INDEX w_a ON w (a)";
    db.execute_script(schema).await.unwrap();
    let rows = (1..31).map(|n| (n, format!("m{n:02}"), n));
    db.execute_many("INSERT INTO w VALUES (?1, ?2, ?3, ?3)", rows).await.unwrap();
    fails
}

/// Plain SQLite leaves a part of most of these in an open transaction when the collation or the function fails.
const SHAKY: &[&str] = &[
    "INSERT INTO w VALUES (99, 'm155', 9, 9)",
    "INSERT OR FAIL INTO w VALUES (99, 'm155', NULL, 9)",
    "UPDATE w SET a = 'm155' WHERE id = 3",
    "UPDATE OR FAIL w SET a = 'm155', b = 9, c = 9 WHERE id = 3",
    "DELETE FROM w WHERE id = 3",
    "CREATE INDEX w_again ON w (a, c)",
    "REINDEX w_a",
];

async fn code_of_the_program_that_fails_leaves_no_part_of_a_row(place: &Place) {
    let db = in_use(place).await;
    let fails = shaky(&db).await;
    let run = async |of: &flatwater::Session, sql: &str, as_script: bool| {
        fails.store(true, Ordering::Relaxed);
        let ran = if as_script { of.execute_script(sql).await } else { of.execute(sql, ()).await.map(drop) };
        fails.store(false, Ordering::Relaxed);
        assert!(ran.as_ref().is_err_and(|error| error.message().contains("planted")), "{sql}: {ran:?}");
    };
    let is_sound = async |of: &flatwater::Session, after: &str| {
        assert_eq!(of.query_value::<String>("PRAGMA integrity_check", ()).await.unwrap(), "ok", "{after}");
        let sql = "SELECT count(*) = 30 AND sum(c) = 465 AND max(a) IS 'm01' FROM w NOT INDEXED";
        assert!(of.query_value::<bool>(sql, ()).await.unwrap(), "{after}");
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'w_again'";
        assert_eq!(of.query_value::<i64>(sql, ()).await.unwrap(), 0, "{after}");
    };
    let own = db.connection();
    for sql in SHAKY {
        for as_script in [false, true] {
            own.execute("BEGIN", ()).await.unwrap();
            own.execute("INSERT INTO t VALUES (9)", ()).await.unwrap();
            run(&own, sql, as_script).await;
            is_sound(&own, sql).await;
            own.execute("COMMIT", ()).await.unwrap();
            let tx = db.begin().await.unwrap();
            tx.execute("INSERT INTO t VALUES (9)", ()).await.unwrap();
            run(&tx, sql, as_script).await;
            is_sound(&tx, sql).await;
            tx.commit().await.unwrap();
            // In autocommit too.
            run(&own, sql, as_script).await;
            run(&db, sql, as_script).await;
            is_sound(&db, sql).await;
        }
    }
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t WHERE a = 9", ()).await.unwrap(), 28);
    // What a constraint refuses stays as the conflict clause says.
    own.execute("BEGIN", ()).await.unwrap();
    let sql = "INSERT OR FAIL INTO w VALUES (100, 'x', 1, 0), (100, 'y', 1, 0)";
    assert_eq!(own.execute(sql, ()).await.unwrap_err().kind(), ErrorKind::Constraint);
    assert_eq!(own.query_value::<i64>("SELECT count(*) FROM w", ()).await.unwrap(), 31);
    own.execute("INSERT OR ROLLBACK INTO w VALUES (100, 'x', 1, 0)", ()).await.unwrap_err();
    assert!(!own.in_transaction());
    is_sound(&db, sql).await;
    // Plain SQLite, which checks the file after the test, has neither.
    db.execute("DROP TABLE w", ()).await.unwrap();
}

/// An error of the program's own.
#[derive(Debug)]
struct Unlucky(i64);

impl std::fmt::Display for Unlucky {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no luck")
    }
}

impl std::error::Error for Unlucky {}

/// Returns the number in the program's own error, if that is the source.
fn unlucky(error: &Error) -> Option<i64> {
    std::error::Error::source(error)?.downcast_ref().map(|Unlucky(number)| *number)
}

/// Its steps fail, and so does its end.
struct Fails;

impl Aggregate<i64, i64> for Fails {
    fn init(&self, _: &mut Context<'_>) -> rusqlite::Result<i64> {
        Ok(0)
    }

    fn step(&self, context: &mut Context<'_>, _: &mut i64) -> rusqlite::Result<()> {
        Err(rusqlite::Error::UserFunctionError(Box::new(Unlucky(context.get(0)?))))
    }

    fn finalize(&self, _: &mut Context<'_>, _: Option<i64>) -> rusqlite::Result<i64> {
        Err(rusqlite::Error::UserFunctionError(Box::new(Unlucky(-1))))
    }
}

async fn the_error_of_a_function_is_the_source_of_that_of_its_statement(place: &Place) {
    let db = in_use(place).await;
    let fails = |context: &Context<'_>| {
        Err::<i64, _>(rusqlite::Error::UserFunctionError(Box::new(Unlucky(context.get::<i64>(0)?))))
    };
    db.functions().create_scalar_function("fails", 1, IMPURE, fails).unwrap();
    db.functions().create_aggregate_function("fails_too", 1, IMPURE, Fails).unwrap();
    for number in 1..5 {
        for sql in ["SELECT fails(?)", "UPDATE t SET a = fails(?) RETURNING a"] {
            let error = db.query(sql, (number,)).await.unwrap_err();
            assert_eq!((error.message(), unlucky(&error)), ("no luck", Some(number)), "{sql}");
            let tx = db.begin().await.unwrap();
            let error = tx.query(sql, (number,)).await.unwrap_err();
            assert_eq!(unlucky(&error), Some(number), "{sql} in a transaction");
            let missing = tx.query("SELECT a FROM missing", ()).await.unwrap_err();
            assert_eq!(unlucky(&missing), None, "what failed afterwards for another reason");
            tx.rollback().await.unwrap();
        }
        let error = db.query("SELECT fails_too(?) FROM t", (number,)).await.unwrap_err();
        assert_eq!((error.message(), unlucky(&error)), ("no luck", Some(number)), "the step that failed first");
    }
}

async fn what_a_function_owns_is_let_go_when_the_database_is_closed(place: &Place) {
    let db = in_use(place).await;
    let owned = Arc::new(());
    let inside = (owned.clone(), db.clone());
    db.functions().create_scalar_function("owns", 0, PURE, move |_| Ok(Arc::strong_count(&inside.0) as i64)).unwrap();
    let rows = db.query_values::<i64>("SELECT owns() FROM t", ()).await.unwrap();
    assert!(rows.iter().all(|count| *count > 1));
    db.close().await.unwrap();
    // The handle is still there, and the function owned another one.
    until(|| Arc::strong_count(&owned) == 1).await;
}

async fn a_function_cannot_call_the_database(place: &Place) {
    let db = in_use(place).await;
    let refused: Arc<Mutex<Vec<ErrorKind>>> = Arc::default();
    let (inside, kinds) = (Mutex::new(Some(db.clone())), refused.clone());
    db.functions()
        .create_scalar_function("calls", 0, IMPURE, move |_| {
            let inside = inside.lock().unwrap();
            let Some(db) = inside.as_ref() else { return Ok(0) };
            let called = [
                db.query("SELECT 1", ()).wait().map(drop),
                db.execute("DELETE FROM t", ()).wait().map(drop),
                db.functions().create_scalar_function("other", 0, IMPURE, |_| Ok(1)),
            ];
            kinds.lock().unwrap().extend(called.into_iter().filter_map(Result::err).map(|error| error.kind()));
            Ok(1)
        })
        .unwrap();
    assert_eq!(db.query_value::<i64>("SELECT calls()", ()).await.unwrap(), 1);
    db.execute("INSERT INTO t VALUES (calls())", ()).await.unwrap();
    let tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO t VALUES (calls())", ()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(*refused.lock().unwrap(), [ErrorKind::Misuse; 9]);
    // It owns a handle of its database.
    db.functions().remove_function("calls", 0).unwrap();
    db.close().await.unwrap();
}

async fn a_deadline_ends_a_statement_between_two_calls(place: &Place) {
    let db = in_use(place).await;
    db.functions().create_scalar_function("same", 1, PURE, |context| context.get::<i64>(0)).unwrap();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT same(x) + 1 FROM n)";
    let short = db.with_timeout(Duration::from_millis(50));
    let read = short.query(format!("{endless} SELECT count(*) FROM n WHERE x < 0"), ()).await.unwrap_err();
    assert_eq!(read.kind(), ErrorKind::Timeout);
    let write = short.execute(format!("INSERT INTO t {endless} SELECT x FROM n WHERE x < 0"), ()).await.unwrap_err();
    assert_eq!(write.kind(), ErrorKind::Timeout);
    assert_eq!(db.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 3);
}

async fn what_sqlite_refuses_is_refused_at_once(place: &Place) {
    let db = place.open().await;
    let long = "n".repeat(256);
    for (name, arguments) in [("", 0), ("a\0b", 0), (&*long, 0), ("f", -2), ("f", 100_000)] {
        let error = db.functions().create_scalar_function(name, arguments, PURE, |_| Ok(1)).unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("create_scalar_function")), "{error}");
    }
    for name in ["", "NoCase", "binary"] {
        assert_eq!(db.functions().create_collation(name, str::cmp).unwrap_err().kind(), ErrorKind::Misuse);
    }
    db.close().await.unwrap();
    assert_eq!(db.functions().create_scalar_function("f", 0, PURE, |_| Ok(1)).unwrap_err().kind(), ErrorKind::Closed);
}

async fn a_function_never_runs_on_its_callers_thread(place: &Place) {
    let db = in_use(place).await;
    let threads: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let seen = threads.clone();
    db.functions()
        .create_scalar_function("here", 0, PURE, move |_| {
            seen.lock().unwrap().insert(std::thread::current().name().unwrap_or_default().to_owned());
            Ok(1)
        })
        .unwrap();
    for _ in 0..30 {
        db.query("SELECT here()", ()).await.unwrap();
        db.execute("INSERT INTO t VALUES (here())", ()).await.unwrap();
        let tx = db.begin().await.unwrap();
        tx.execute("INSERT INTO t VALUES (here())", ()).await.unwrap();
        tx.commit().await.unwrap();
    }
    let threads = threads.lock().unwrap();
    assert!(!threads.is_empty() && threads.iter().all(|name| name.starts_with("fw-")), "{threads:?}");
}

async fn impure_writes_share_no_commit(place: &Place) {
    type Heard = Vec<(String, Option<ExecutedOn>)>;
    let heard: Arc<Mutex<Heard>> = Arc::default();
    let hears = heard.clone();
    let listener = move |event: &StatementEvent<'_>| {
        hears.lock().unwrap().push((event.sql.unwrap_or_default().to_owned(), event.ran_on));
    };
    let db = grouped(place.options().on_statement(listener)).open().await.unwrap();
    db.functions().create_scalar_function("pure", 0, PURE, |_| Ok(1)).unwrap();
    db.functions().create_scalar_function("impure", 0, IMPURE, |_| Ok(1)).unwrap();
    db.execute_script(
        "CREATE TABLE t (a); CREATE TABLE made (a, b DEFAULT (impure()));
         CREATE TABLE checked (a CHECK (impure() = 1)); CREATE TABLE noisy (a);
         CREATE TRIGGER noise AFTER INSERT ON noisy BEGIN INSERT INTO t VALUES (impure()); END;",
    )
    .await
    .unwrap();
    let alone = [
        "INSERT INTO t VALUES (impure())",
        "INSERT INTO made (a) VALUES (1)",
        "INSERT INTO checked (a) VALUES (1)",
        "INSERT INTO noisy VALUES (1)",
    ];
    let together = ["INSERT INTO t VALUES (pure())", "INSERT INTO t VALUES (2)"];
    let all: Vec<&str> = alone.into_iter().chain(together).collect();
    for _ in 0..3 {
        for sql in &all {
            db.execute(*sql, ()).await.unwrap();
        }
    }
    let tx = db.begin().await.unwrap();
    // In this order, so those that may share a commit stand one after another.
    let mut writes: Vec<_> = all.iter().flat_map(|sql| [*sql; 3]).map(|sql| db.execute(sql, ())).collect();
    for write in &mut writes {
        assert!(futures_util::poll!(write).is_pending());
    }
    until(|| waiting(&db) == writes.len()).await;
    heard.lock().unwrap().clear();
    tx.commit().await.unwrap();
    for write in writes {
        write.await.unwrap();
    }
    let heard = heard.lock().unwrap().clone();
    let where_it_ran = |sql: &str| -> Vec<ExecutedOn> {
        heard.iter().filter(|(text, _)| text == sql).filter_map(|(_, on)| *on).collect()
    };
    for sql in alone {
        assert_eq!(where_it_ran(sql), [ExecutedOn::Writer; 3], "{sql}");
    }
    // The writer learns of each text first.
    for sql in together {
        assert_eq!(where_it_ran(sql)[1..], [ExecutedOn::Group; 2], "{sql}");
    }
    // Plain SQLite, which checks the file after the test, has no such function.
    db.execute_script("DROP TABLE checked; DROP TABLE made; DROP TABLE noisy").await.unwrap();
}

async fn a_live_query_follows_its_functions(place: &Place) {
    let db = in_use(place).await;
    version(&db, 1);
    let mut live = db.live("SELECT version(), count(*) FROM t", ());
    let mut next = async || live.next().await.unwrap().unwrap().read::<(i64, i64)>().unwrap();
    assert_eq!(next().await, [(1, 3)]);
    version(&db, 2);
    assert_eq!(next().await, [(2, 3)]);
    let number = Arc::new(AtomicI64::new(3));
    let counts = number.clone();
    db.functions().create_scalar_function("version", 0, IMPURE, move |_| Ok(counts.load(Ordering::SeqCst))).unwrap();
    assert_eq!(next().await, [(3, 3)]);
    number.store(4, Ordering::SeqCst);
    // A commit that changes nothing that it reads.
    db.execute("CREATE TABLE other (a)", ()).await.unwrap();
    assert_eq!(next().await, [(4, 3)]);
}

#[test]
fn a_read_has_what_was_registered_before_it_began_while_others_run() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let (registered, is_over) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
        version(&db, 0);
        let readers: Vec<_> = (0..4)
            .map(|task| {
                let (db, registered, is_over) = (db.clone(), registered.clone(), is_over.clone());
                tokio::spawn(async move {
                    let mut reads = 0;
                    while !is_over.load(Ordering::SeqCst) || reads < 100 {
                        let before = registered.load(Ordering::SeqCst);
                        let seen: i64 = match task % 4 {
                            0 => db.query_value("INSERT INTO t VALUES (version()) RETURNING a", ()).await.unwrap(),
                            1 => {
                                let tx = db.begin().await.unwrap();
                                let seen = tx.query_value("SELECT version()", ()).await.unwrap();
                                tx.rollback().await.unwrap();
                                seen
                            }
                            _ => db
                                .query_value("SELECT version() FROM (SELECT 1) LEFT JOIN t ON a = -1", ())
                                .await
                                .unwrap(),
                        };
                        assert!(seen >= before, "{seen} after {before}");
                        reads += 1;
                    }
                })
            })
            .collect();
        for number in 1..300 {
            version(&db, number);
            registered.store(number, Ordering::SeqCst);
            tokio::task::yield_now().await;
        }
        is_over.store(true, Ordering::SeqCst);
        for reader in readers {
            reader.await.unwrap();
        }
        assert_eq!(versions(&db).await, BTreeSet::from([299]));
    });
}

#[test]
fn a_result_in_batches_keeps_its_function_and_a_new_call_has_the_next_one() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options()).await;
        let many = "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 100000) SELECT x FROM n";
        db.execute(many, ()).await.unwrap();
        version(&db, 1);
        let snapshot = db.snapshot().await.unwrap();
        let mut batches = snapshot.batches("SELECT version() FROM t", ());
        let first: Vec<(i64,)> = batches.next().await.unwrap().unwrap().read().unwrap();
        assert!(first.len() < 100_000);
        version(&db, 2);
        db.functions().create_scalar_function("fresh", 0, PURE, |_| Ok(7)).unwrap();
        assert_eq!(versions(&db).await, BTreeSet::from([2]));
        assert_eq!(snapshot.query_value::<i64>("SELECT fresh()", ()).await.unwrap(), 7, "beside the open result");
        let mut count = first.len();
        while let Some(batch) = batches.next().await {
            let batch: Vec<(i64,)> = batch.unwrap().read().unwrap();
            assert!(batch.iter().all(|row| *row == (1,)));
            count += batch.len();
        }
        assert_eq!(count, 100_000);
        drop(batches);
        assert_eq!(snapshot.query_value::<i64>("SELECT version()", ()).await.unwrap(), 2);
    });
}

#[test]
fn a_function_is_replaced_on_a_connection_with_a_lease() {
    let file = TestFile::new();
    let db = file.options().readers(1).open().wait().unwrap();
    db.execute("CREATE TABLE t (a)", ()).wait().unwrap();
    let read = |sql: &str| db.query_value::<i64>(sql, ()).wait().unwrap();
    for number in 0..20 {
        version(&db, number);
        assert_eq!(read("SELECT version()"), number);
        wait_until(|| {
            for _ in 0..3 {
                read("SELECT count(*) FROM t");
            }
            db.stats().leases.held > 0
        });
    }
}
