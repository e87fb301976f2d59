//! PRAGMAs that ask for what is in force are answered as SQLite answers them; those that ask for something else are
//! refused (`state`).

use std::time::Duration;

use flatwater::options::TempStore;
use flatwater::rusqlite::types::Value;
use flatwater::{Database, Error, ErrorKind, Options, params, rusqlite};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, run};

in_both_places!(
    what_is_in_force_is_answered_by_every_call_as_sqlite_answers_it,
    the_first_lines_of_a_program_change_nothing,
    the_wait_for_locks_is_told,
    what_new_connections_ask_for_is_answered_too,
    a_failed_pragma_names_its_place_in_a_script,
);

fn options(place: &Place) -> Options {
    place
        .options()
        .tuning(|t| t.writer_cache_bytes(8 << 20).reader_cache_bytes(8 << 20).temp_store(TempStore::Memory))
        .busy_timeout(Duration::from_secs(5))
}

/// What these options put in force.
const IN_FORCE: &[&str] = &[
    "PRAGMA journal_mode = WAL",
    "PRAGMA journal_mode('wal')",
    "PRAGMA main.journal_mode = wal;",
    "PRAGMA foreign_keys = ON",
    "PRAGMA foreign_keys(1)",
    "PRAGMA foreign_keys = yes",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA synchronous = 1",
    "PRAGMA main.synchronous = normal",
    "PRAGMA cache_size = -8192",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA temp_store = 2",
    "PRAGMA mmap_size = 0",
    "PRAGMA busy_timeout = 5000",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA locking_mode = NORMAL",
    "PRAGMA query_only = OFF",
    "PRAGMA cache_spill = ON",
    "PRAGMA defer_foreign_keys = OFF",
    "PRAGMA recursive_triggers = off",
    "PRAGMA automatic_index = 1",
    "PRAGMA trusted_schema = ON",
    "PRAGMA read_uncommitted = false",
    "PRAGMA legacy_alter_table = 0",
    "PRAGMA ignore_check_constraints = 0",
    "PRAGMA writable_schema = OFF",
    "PRAGMA analysis_limit = 0",
    "PRAGMA threads = 0",
    "PRAGMA journal_size_limit = -1",
    "PRAGMA soft_heap_limit = 0",
];

type Answer = (Vec<String>, Vec<Vec<Value>>);

/// Returns what SQLite answers, on a connection with the same settings.
fn by_sqlite(plain: &rusqlite::Connection, sql: &str) -> Answer {
    let mut statement = plain.prepare(sql).unwrap();
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let columns = names.len();
    let row = |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at)).collect::<rusqlite::Result<Vec<Value>>>();
    let rows = statement.query_map([], row).unwrap().collect::<rusqlite::Result<_>>().unwrap();
    (names, rows)
}

fn by_us(rows: &flatwater::Rows) -> Answer {
    let names: Vec<String> = rows.columns().map(str::to_owned).collect();
    let value = |value: flatwater::ValueRef<'_>| match value {
        flatwater::ValueRef::Integer(value) => Value::Integer(value),
        flatwater::ValueRef::Text(text) => Value::Text(String::from_utf8(text.to_vec()).unwrap()),
        other => panic!("{other:?}"),
    };
    let columns = names.len();
    (names, rows.iter().map(|row| (0..columns).map(|at| value(row.value(at).unwrap())).collect()).collect())
}

async fn what_is_in_force_is_answered_by_every_call_as_sqlite_answers_it(place: &Place) {
    let db = options(place).open().await.unwrap();
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
    let plain = place.file().map_or_else(|| rusqlite::Connection::open_in_memory().unwrap(), TestFile::plain);
    plain.execute_batch("PRAGMA busy_timeout = 5000; PRAGMA wal_autocheckpoint = 0").unwrap();
    // SQLite says "exclusive" of memory, but only if it is asked to set a mode.
    let is_comparable = |sql: &&&str| place.file().is_some() || !sql.contains("locking_mode");
    let comparable: Vec<_> = IN_FORCE.iter().filter(is_comparable).collect();
    for sql in &comparable {
        let expected = by_sqlite(&plain, sql);
        assert_eq!(by_us(&db.query(sql, ()).await.unwrap()), expected, "{sql}");
        assert_eq!(by_us(&db.query(sql, ()).wait().unwrap()), expected, "{sql}");
        assert_eq!(db.execute(sql, ()).await.unwrap().changes, 0, "{sql}");
        db.execute_script(format!("{sql};\n{sql}")).await.unwrap();
        db.execute_many(sql, [()]).await.unwrap();
        let batch = db.batch([(**sql, params![]), ("INSERT INTO t VALUES (1)", params![])]).await.unwrap();
        assert_eq!(batch[0].rows.as_ref().map(by_us).unwrap_or_default().1, expected.1, "{sql}");
        let tx = db.begin().await.unwrap();
        assert_eq!(by_us(&tx.query(sql, ()).await.unwrap()), expected, "{sql}");
        tx.execute(sql, ()).await.unwrap();
        tx.execute_script(sql).await.unwrap();
        tx.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        tx.commit().await.unwrap();
        let snapshot = db.snapshot().await.unwrap();
        assert_eq!(by_us(&snapshot.query(sql, ()).await.unwrap()), expected, "{sql}");
        drop(snapshot);
        let mut stream = db.stream(sql, ());
        let mut streamed = 0;
        while let Some(row) = stream.next().await {
            row.unwrap();
            streamed += 1;
        }
        assert_eq!(streamed, expected.1.len(), "{sql}");
    }
    let rows = db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap();
    assert_eq!(rows, Some(2 * comparable.len() as i64));
}

/// The settings of the writer and of a reader.
async fn settings(db: &Database) -> Vec<String> {
    const ALL: &str = "foreign_keys synchronous cache_size temp_store mmap_size journal_mode cache_spill locking_mode";
    let ask = |c: &rusqlite::Connection| {
        let value = |name: &str| c.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, Value>(0)).ok();
        Ok::<_, Error>(ALL.split(' ').map(|name| format!("{name} {:?}", value(name))).collect::<Vec<_>>())
    };
    let mut all = db.write_with(move |tx| ask(tx)).await.unwrap();
    all.extend(db.read_with(ask).await.unwrap());
    all
}

async fn the_first_lines_of_a_program_change_nothing(place: &Place) {
    let db = options(place).open().await.unwrap();
    let before = settings(&db).await;
    for sql in IN_FORCE {
        db.execute(sql, ()).await.unwrap();
        db.query(sql, ()).await.unwrap();
    }
    assert_eq!(settings(&db).await, before);
}

async fn the_wait_for_locks_is_told(place: &Place) {
    let db = options(place).open().await.unwrap();
    let rows = db.query("PRAGMA busy_timeout", ()).await.unwrap();
    assert_eq!(by_us(&rows), (vec!["timeout".into()], vec![vec![Value::Integer(5000)]]));
    let error = db.query("PRAGMA busy_timeout = 6000", ()).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Misuse && error.hint().unwrap().contains("Options::busy_timeout"), "{error}");
}

async fn what_new_connections_ask_for_is_answered_too(place: &Place) {
    let all = format!("{}; SELECT 1", IN_FORCE.join(";\n"));
    let db = options(place).on_open(&all).on_open("PRAGMA recursive_triggers = ON").open().await.unwrap();
    db.query("PRAGMA recursive_triggers = ON", ()).await.unwrap();
    db.query("PRAGMA recursive_triggers = OFF", ()).await.unwrap_err();
    let refused = options(&place.another()).on_open("PRAGMA foreign_keys = ON; PRAGMA synchronous = OFF").open().await;
    let error = refused.unwrap_err();
    assert!(error.message().contains("synchronous") && error.hint().unwrap().contains("durability"), "{error}");
}

async fn a_failed_pragma_names_its_place_in_a_script(place: &Place) {
    let db = options(place).open().await.unwrap();
    let script = "CREATE TABLE t (a);\nPRAGMA foreign_keys = OFF";
    let error = db.execute_script(script).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Misuse && error.offset() == Some(20), "{error:?}");
    db.execute("CREATE TABLE t (a)", ()).await.unwrap();
}

#[test]
fn a_cache_that_only_the_writer_has_is_not_in_force() {
    let file = TestFile::new();
    run(async {
        let db = file.options().tuning(|t| t.writer_cache_bytes(8 << 20)).open().await.unwrap();
        for _ in 0..3 {
            let error = db.query("PRAGMA cache_size = -8192", ()).await.unwrap_err();
            assert!(error.hint().unwrap().contains("reader_cache_bytes"), "{error}");
            db.execute("PRAGMA cache_size = -8192", ()).await.unwrap_err();
        }
    });
}

#[test]
fn a_database_that_is_only_read_answers_too() {
    let file = TestFile::new();
    run(async {
        file.open().await.close().await.unwrap();
        let db = file.options().read_only(true).open().await.unwrap();
        for sql in ["PRAGMA journal_mode = WAL", "PRAGMA foreign_keys = ON", "PRAGMA cache_size = -4096"] {
            db.query(sql, ()).await.unwrap();
            db.execute(sql, ()).await.unwrap();
        }
        for sql in ["PRAGMA user_version = 1", "PRAGMA user_version", "DROP TABLE IF EXISTS t", "EXPLAIN SELECT 1"] {
            let error = db.execute(sql, ()).await.unwrap_err();
            assert!(error.kind() == ErrorKind::Misuse && error.message().contains("read-only"), "{sql}: {error}");
        }
    });
}

#[test]
fn an_attached_file_has_settings_of_its_own() {
    let (file, other) = (TestFile::new(), TestFile::new());
    other.plain().execute_batch("CREATE TABLE o (a)").unwrap();
    run(async {
        let db = file.options().tuning(|t| t.attach("s", other.path())).open().await.unwrap();
        let mode = db.query_optional_value::<String>("PRAGMA s.journal_mode = DELETE", ()).await.unwrap();
        assert_eq!(mode.as_deref(), Some("delete"));
        db.execute("PRAGMA s.synchronous = NORMAL", ()).await.unwrap();
        db.execute("PRAGMA s.journal_mode = WAL", ()).await.unwrap_err();
    });
}
