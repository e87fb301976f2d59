//! Closures that go through the raw handle behind rusqlite's back: the next caller sees a clean connection, and correct
//! results. It is the engine that is tested; it is tested here because the raw handle takes `unsafe`.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flatwater::{Blocking, Error, Options};
use rusqlite::{Connection, Transaction, ffi};

type Mischief = fn(&Connection);

/// How often a hook of a closure was called since this was last set.
static CALLED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn on_busy(_: *mut c_void, _: c_int) -> c_int {
    CALLED.fetch_add(1, Ordering::SeqCst);
    0
}

/// As a commit hook it turns every COMMIT into a ROLLBACK, as a progress handler it ends every statement.
unsafe extern "C" fn on_commit_or_progress(_: *mut c_void) -> c_int {
    CALLED.fetch_add(1, Ordering::SeqCst);
    1
}

unsafe extern "C" fn on_update(_: *mut c_void, _: c_int, _: *const c_char, _: *const c_char, _: i64) {
    CALLED.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn on_rollback(_: *mut c_void) {
    CALLED.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn on_authorize(
    _: *mut c_void,
    _: c_int,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> c_int {
    CALLED.fetch_add(1, Ordering::SeqCst);
    ffi::SQLITE_DENY
}

const NOTHING: *mut c_void = std::ptr::null_mut();

fn take_off_authorizer(connection: &Connection) {
    // SAFETY: the connection is open and used by this thread only.
    let rc = unsafe { ffi::sqlite3_set_authorizer(connection.handle(), None, NOTHING) };
    assert_eq!(rc, ffi::SQLITE_OK);
}

/// A connection whose database is in memory cannot be replaced: what is done to it behind its back stays.
fn is_on_file(connection: &Connection) -> bool {
    connection.path().is_some_and(|path| !path.is_empty())
}

// SAFETY: of all these, the connection is open and used by this thread only; the functions have the types the hooks want.
const MISCHIEFS: &[(&str, Mischief)] = &[
    ("busy handler", |c| unsafe { assert_eq!(ffi::sqlite3_busy_handler(c.handle(), Some(on_busy), NOTHING), 0) }),
    ("progress handler", |c| unsafe {
        ffi::sqlite3_progress_handler(c.handle(), 1, Some(on_commit_or_progress), NOTHING);
    }),
    ("commit hook", |c| unsafe {
        ffi::sqlite3_commit_hook(c.handle(), Some(on_commit_or_progress), NOTHING);
    }),
    ("no commit hook", |c| unsafe {
        ffi::sqlite3_commit_hook(c.handle(), None, NOTHING);
    }),
    ("update hook", |c| unsafe {
        ffi::sqlite3_update_hook(c.handle(), Some(on_update), NOTHING);
    }),
    ("no update hook", |c| unsafe {
        ffi::sqlite3_update_hook(c.handle(), None, NOTHING);
    }),
    ("rollback hook", |c| unsafe {
        ffi::sqlite3_rollback_hook(c.handle(), Some(on_rollback), NOTHING);
    }),
    ("authorizer", |c| unsafe {
        assert_eq!(ffi::sqlite3_set_authorizer(c.handle(), Some(on_authorize), NOTHING), 0);
    }),
    ("no authorizer", take_off_authorizer),
    ("checkpoints at every commit", |c| unsafe { assert_eq!(ffi::sqlite3_wal_autocheckpoint(c.handle(), 1), 0) }),
    ("no checkpoints", |c| unsafe { assert_eq!(ffi::sqlite3_wal_autocheckpoint(c.handle(), 0), 0) }),
    ("open savepoints", |c| {
        take_off_authorizer(c);
        c.execute_batch("SAVEPOINT a; SAVEPOINT b").unwrap();
    }),
    ("another transaction", |c| {
        take_off_authorizer(c);
        c.execute_batch("ROLLBACK; BEGIN").unwrap();
    }),
    ("another transaction after a commit", |c| {
        take_off_authorizer(c);
        c.execute_batch("COMMIT; BEGIN").unwrap();
    }),
    ("no transaction", |c| {
        take_off_authorizer(c);
        c.execute_batch("ROLLBACK").unwrap();
    }),
    ("temp table", |c| {
        take_off_authorizer(c);
        // Refused where only reads are allowed.
        let _ = c.execute_batch("CREATE TEMP TABLE t (a)");
    }),
    ("temp trigger", |c| {
        take_off_authorizer(c);
        let _ = c.execute_batch("CREATE TEMP TRIGGER x AFTER INSERT ON main.t BEGIN DELETE FROM t; END");
    }),
    ("connection state", |c| {
        take_off_authorizer(c);
        if is_on_file(c) {
            c.execute_batch("COMMIT; PRAGMA foreign_keys = OFF; PRAGMA reverse_unordered_selects = ON; BEGIN").unwrap();
        }
    }),
    ("attached database", |c| {
        take_off_authorizer(c);
        if is_on_file(c) {
            c.execute_batch("COMMIT; ATTACH ':memory:' AS x; BEGIN").unwrap();
        }
    }),
];

const SCHEMA: &str = "CREATE TABLE t (a INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES t); CREATE TABLE log (a);
    CREATE TABLE done (a); CREATE TRIGGER watch AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END";

/// Every kind of call does what it should, several times over, and no hook of a closure is called.
fn is_clean(db: &Blocking) {
    CALLED.store(0, Ordering::SeqCst);
    db.execute_script("DELETE FROM t; DELETE FROM log").unwrap();
    thread::scope(|scope| {
        for first in 0..6_i64 {
            scope.spawn(move || {
                for n in 0..10_i64 {
                    let inserted = db.execute("INSERT INTO t VALUES (?)", (first * 10 + n,)).unwrap();
                    assert_eq!(inserted.last_insert_rowid, Some(first * 10 + n));
                }
            });
        }
    });
    let sums = "SELECT (SELECT sum(a) FROM t), (SELECT sum(a) FROM log), (SELECT a FROM t LIMIT 1)";
    assert_eq!(db.query_as::<(i64, i64, i64)>(sums, ()).unwrap(), [(1770, 1770, 0)]);
    let error = db.execute("INSERT INTO c VALUES (1000)", ()).unwrap_err();
    assert_eq!(error.sqlite_name(), Some("SQLITE_CONSTRAINT_FOREIGNKEY"), "{error}");
    db.batch([("INSERT INTO t VALUES (100)", flatwater::params![]), ("nonsense", flatwater::params![])]).unwrap_err();
    db.write_with(|tx| tx.execute("INSERT INTO t VALUES (200)", []).map_err(Error::from)).unwrap();
    let look = |c: &Connection| {
        let answer = |sql| c.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(Error::from);
        let databases = "SELECT count(*) FROM pragma_database_list WHERE name <> 'temp'";
        Ok::<_, Error>([answer("SELECT count(*) FROM t")?, answer(databases)?])
    };
    assert_eq!(db.read_with(look).unwrap(), [61, 1]);
    assert_eq!(db.write_with(move |tx| look(tx)).unwrap(), [61, 1]);
    assert_eq!(CALLED.load(Ordering::SeqCst), 0, "a hook of a closure is still called");
}

/// After how many pages the writer and a reader would checkpoint by themselves.
fn checkpoint_limits(db: &Blocking) -> [i64; 2] {
    let ask = |c: &Connection| c.query_row("PRAGMA wal_autocheckpoint", [], |row| row.get(0)).map_err(Error::from);
    [db.write_with(move |tx| ask(tx)).unwrap(), db.read_with(ask).unwrap()]
}

/// What the closure wrote is there if it was told so, and the next caller notices nothing.
fn check(options: Options, mischief: Mischief) {
    let on_file = options != Options::new(":memory:");
    // One reader at most: what a closure leaves there the next caller meets.
    let db = options.readers(1).open_blocking().unwrap().blocking();
    db.execute_script(SCHEMA).unwrap();
    let limits = checkpoint_limits(&db);
    let wrote = db.write_with(move |tx: &Transaction<'_>| {
        tx.execute("INSERT INTO done VALUES (1)", [])?;
        mischief(tx);
        Ok::<_, Error>(())
    });
    is_clean(&db);
    let done = || db.query_value::<i64>("SELECT count(*) FROM done", ()).unwrap().unwrap();
    assert!(wrote.is_err() || done() == 1, "it was told that its row is there");
    let before = done();
    let read = db.read_with(move |c| {
        let seen: i64 = c.query_row("SELECT count(*) FROM done", [], |row| row.get(0))?;
        mischief(c);
        Ok::<_, Error>(seen)
    });
    assert!(read.as_ref().map_or(true, |seen| *seen == before), "{read:?}");
    is_clean(&db);
    if on_file {
        assert_eq!(checkpoint_limits(&db), limits);
    }
    db.close().unwrap();
}

#[test]
fn whatever_a_closure_did_to_the_connection_the_next_caller_meets_a_clean_one() {
    let mut failed = Vec::new();
    for (name, mischief) in MISCHIEFS {
        let directory = tempfile::tempdir().unwrap();
        for path in [directory.path().join("test.db"), ":memory:".into()] {
            if catch_unwind(AssertUnwindSafe(|| check(Options::new(&path), *mischief))).is_err() {
                failed.push(format!("{name}: {}", path.display()));
            }
        }
        let plain = Connection::open(directory.path().join("test.db")).unwrap();
        let integrity: String = plain.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(integrity, "ok", "{name}");
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
