//! One connection by itself: prepare, bind, run, hooks, interrupts, the wal-index header.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use flatwater_sqlite::rusqlite::limits::Limit;
use flatwater_sqlite::rusqlite::types::{Value, ValueRef};
use flatwater_sqlite::rusqlite::{OpenFlags, ffi};
use flatwater_sqlite::{
    AuthEvent, Bindings, CheckpointMode, Control, Discard, Error, Flow, Interrupt, Sink, Sqlite, StatementId, Verdict,
};

/// Collects rows as text, for comparing.
#[derive(Default)]
struct Texts {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
    limit: Option<usize>,
}

impl Sink for Texts {
    fn null(&mut self) {
        self.row.push("NULL".into());
    }
    fn integer(&mut self, value: i64) {
        self.row.push(value.to_string());
    }
    fn real(&mut self, value: f64) {
        self.row.push(format!("{value:?}"));
    }
    fn text(&mut self, value: &[u8]) {
        self.row.push(format!("'{}'", String::from_utf8_lossy(value)));
    }
    fn blob(&mut self, value: &[u8]) {
        self.row.push(format!("{value:?}"));
    }
    fn row_done(&mut self) -> Flow {
        self.rows.push(std::mem::take(&mut self.row));
        if self.limit == Some(self.rows.len()) { Flow::Stop } else { Flow::Continue }
    }
}

fn memory() -> Sqlite {
    Sqlite::open(Path::new(":memory:"), OpenFlags::default(), None).unwrap()
}

fn prepare(connection: &mut Sqlite, sql: &str) -> StatementId {
    connection.prepare(sql).unwrap().unwrap().id
}

fn run(connection: &mut Sqlite, sql: &str, values: &[Value]) -> Result<Vec<Vec<String>>, Error> {
    let id = connection.prepare(sql)?.unwrap().id;
    let mut texts = Texts::default();
    let result = connection.statement(id).run(values, &mut texts);
    connection.statement(id).finalize();
    result.map(|()| texts.rows)
}

#[test]
fn every_type_comes_back_as_it_was_bound() {
    let mut connection = memory();
    let values = [
        Value::Null,
        Value::Integer(i64::MIN),
        Value::Real(-0.5),
        Value::Text("text with \0 inside".into()),
        Value::Text(String::new()),
        Value::Blob(vec![0, 255]),
        Value::Blob(Vec::new()),
    ];
    let rows = run(&mut connection, "SELECT ?, ?, ?, ?, ?, ?, ?, typeof(?7)", &values).unwrap();
    let expected = ["NULL", "-9223372036854775808", "-0.5", "'text with \0 inside'", "''", "[0, 255]", "[]", "'blob'"];
    assert_eq!(rows, [expected]);
}

#[test]
fn texts_of_a_database_in_utf_16_come_back_in_utf_8() {
    let mut connection = memory();
    connection.execute_batch("PRAGMA encoding = 'UTF-16'; CREATE TABLE t (a, b, c)").unwrap();
    let long = "naïve 🦀 ".repeat(3000);
    let values = [Value::Text(long.clone()), Value::Text(String::new()), Value::Blob(vec![0, 1])];
    run(&mut connection, "INSERT INTO t VALUES (?, ?, ?)", &values).unwrap();
    run(&mut connection, "INSERT INTO t VALUES (?, ?, ?)", &[Value::Text("a\0b".into()), Value::Null, Value::Null])
        .unwrap();
    let rows = run(&mut connection, "SELECT a, b, c, upper('é'), 12 FROM t ORDER BY rowid", &[]).unwrap();
    assert_eq!(rows[0], [format!("'{long}'"), "''".into(), "[0, 1]".into(), "'é'".into(), "12".into()]);
    assert_eq!(rows[1], ["'a\0b'", "NULL", "NULL", "'é'", "12"]);
    let encoding = run(&mut connection, "PRAGMA encoding", &[]).unwrap();
    assert!(encoding[0][0].starts_with("'UTF-16"), "{encoding:?}");
}

#[test]
fn bindings_that_do_not_fit_are_refused_before_anything_runs() {
    let mut connection = memory();
    connection.execute_batch("CREATE TABLE t (a, b)").unwrap();
    let id = prepare(&mut connection, "INSERT INTO t VALUES (:a, @b)");
    let mut named = |pairs: &[(&str, i64)]| {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, Value::Integer(*value))).collect();
        connection.statement(id).run(&pairs[..], &mut Discard)
    };
    let unknown = named(&[(":a", 1), ("c", 2)]).unwrap_err();
    assert_eq!(unknown, Error::UnknownParameter { name: "c".into(), known: vec![":a".into(), "@b".into()] });
    assert_eq!(named(&[("a", 1)]), Err(Error::MissingParameter { name: "@b".into() }));
    assert_eq!(named(&[("a", 1), (":a", 1)]), Err(Error::RepeatedParameter { name: ":a".into() }));
    named(&[("b", 2), (":a", 1)]).unwrap();
    let too_few = connection.statement(id).run(&[Value::Null][..], &mut Discard);
    assert_eq!(too_few, Err(Error::ParameterCount { expected: 2, given: 1 }));
    assert_eq!(run(&mut connection, "SELECT * FROM t", &[]).unwrap(), [["1", "2"]]);
}

#[test]
fn values_in_order_are_refused_for_numbers_that_are_names_in_another_order() {
    let mut connection = memory();
    let mut result = |sql: &str| {
        let id = prepare(&mut connection, sql);
        connection.statement(id).run(&[Value::Integer(1), Value::Integer(2)][..], &mut Discard)
    };
    let wrong = |name: &str, place| Err(Error::MisnumberedParameter { name: name.into(), place });
    assert_eq!(result("SELECT $2, $1"), wrong("$2", 1));
    assert_eq!(result("SELECT ?, $3"), wrong("$3", 2));
    for right in ["SELECT $1, $2, $1", "SELECT ?2, ?1", "SELECT $b, $a", "SELECT ?, ?", "SELECT :2, @1", "SELECT $1, ?"]
    {
        assert_eq!(result(right), Ok(()), "{right}");
    }
    let id = prepare(&mut connection, "SELECT $2, $1");
    let named = [("1", Value::Integer(1)), ("$2", Value::Integer(2))];
    connection.statement(id).run(&named[..], &mut Discard).unwrap();
}

/// Values that are freed when their run is over.
struct Owned(Vec<Value>);

impl Bindings for Owned {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn value(&self, index: usize) -> ValueRef<'_> {
        (&self.0[index]).into()
    }

    fn name(&self, _: usize) -> Option<&str> {
        None
    }
}

#[test]
fn each_of_many_runs_sees_its_own_values_and_one_that_does_not_fit_ends_them() {
    let mut connection = memory();
    run(&mut connection, "CREATE TABLE t (a, b)", &[]).unwrap();
    let insert = prepare(&mut connection, "INSERT INTO t VALUES (?, ?)");
    let text = |number: usize| Value::Text(format!("{number}").repeat(10_000));
    let runs = (0..4).map(|number| match number {
        1 => Owned(vec![Value::Null, text(1)]),
        3 => Owned(vec![text(3)]),
        _ => Owned(vec![text(number), Value::Integer(7)]),
    });
    let mut changes = 0;
    let ended = connection.statement(insert).run_many(runs, |connection| {
        changes += connection.handle().changes();
        ControlFlow::Continue(())
    });
    assert!(matches!(ended, Err(Error::ParameterCount { expected: 2, given: 1 })), "{ended:?}");
    assert_eq!(changes, 3);
    connection.statement(insert).run(&[text(5), Value::Null][..], &mut Discard).unwrap();
    let quoted = |number: usize| format!("'{}'", format!("{number}").repeat(10_000));
    let expected =
        [[quoted(0), "7".into()], ["NULL".into(), quoted(1)], [quoted(2), "7".into()], [quoted(5), "NULL".into()]];
    assert_eq!(run(&mut connection, "SELECT a, b FROM t", &[]).unwrap(), expected);
    let (mut ran, mut rows) = (0, (0..4).map(|_| Owned(vec![Value::Null, Value::Null])));
    let ended = connection.statement(insert).run_many(&mut rows, |_| {
        ran += 1;
        if ran == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    ended.unwrap();
    assert_eq!((ran, rows.len()), (2, 2), "the others are left");
}

#[test]
fn a_sink_that_stops_or_panics_leaves_a_reset_statement() {
    struct Panics;
    impl Sink for Panics {
        fn null(&mut self) {}
        fn integer(&mut self, _: i64) {
            panic!("expected");
        }
        fn real(&mut self, _: f64) {}
        fn text(&mut self, _: &[u8]) {}
        fn blob(&mut self, _: &[u8]) {}
        fn row_done(&mut self) -> Flow {
            Flow::Continue
        }
    }
    let mut connection = memory();
    let id = prepare(&mut connection, "SELECT value FROM json_each('[1,2,3]') WHERE ?1 = 'x'");
    let mut two = Texts { limit: Some(2), ..Texts::default() };
    connection.statement(id).run(&[Value::Text("x".into())][..], &mut two).unwrap();
    assert_eq!(two.rows.len(), 2);
    assert!(!connection.handle().has_busy_statement());
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        connection.statement(id).run(&[Value::Text("x".into())][..], &mut Panics)
    }));
    assert!(panics.is_err() && !connection.handle().has_busy_statement());
    let mut all = Texts::default();
    connection.statement(id).run(&[Value::Text("x".into())][..], &mut all).unwrap();
    assert_eq!(all.rows.len(), 3);
}

#[test]
fn a_finalised_statement_cannot_be_used_and_its_place_is_used_again() {
    let mut connection = memory();
    let first = prepare(&mut connection, "SELECT 1");
    connection.statement(first).finalize();
    connection.statement(first).finalize();
    let second = prepare(&mut connection, "SELECT 2");
    assert_ne!(first, second);
    assert_eq!(connection.statement(first).run(&(), &mut Discard), Err(Error::StaleStatement));
    connection.statement(second).run(&(), &mut Discard).unwrap();
    assert!(matches!(connection.statements().column_names(first), Err(Error::StaleStatement)));
}

#[test]
fn a_connection_moves_between_threads_with_its_statements() {
    let mut connection = memory();
    connection.execute_batch("CREATE TABLE t (a)").unwrap();
    let insert = prepare(&mut connection, "INSERT INTO t VALUES (?)");
    for n in 0..10 {
        connection = std::thread::spawn(move || {
            connection.statement(insert).run(&[Value::Integer(n)][..], &mut Discard).unwrap();
            connection
        })
        .join()
        .unwrap();
    }
    assert_eq!(run(&mut connection, "SELECT count(*) FROM t", &[]).unwrap(), [["10"]]);
}

#[test]
fn errors_tell_the_extended_code_and_the_place_in_the_sql() {
    let mut connection = memory();
    let Err(Error::Sqlite(error)) = connection.prepare("SELECT a FORM t") else { panic!("it is no SQL") };
    assert_eq!((error.code, error.offset), (ffi::SQLITE_ERROR, Some(14)));
    connection.execute_batch("CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1)").unwrap();
    let error = run(&mut connection, "INSERT INTO t VALUES (1)", &[]).unwrap_err();
    assert_eq!(error.code(), Some(ffi::SQLITE_CONSTRAINT_UNIQUE));
}

#[test]
fn the_judge_is_asked_before_a_text_has_any_effect() {
    fn no_pragma(event: &AuthEvent) -> Verdict {
        if event.action == ffi::SQLITE_PRAGMA { Verdict::Deny } else { Verdict::Allow }
    }
    fn panics(_: &AuthEvent) -> Verdict {
        panic!("expected")
    }
    let mut connection = memory();
    connection.hooks().authorizer.set_policy(no_pragma);
    assert_eq!(connection.prepare("PRAGMA foreign_keys = OFF").unwrap_err().code(), Some(ffi::SQLITE_AUTH));
    assert_eq!(connection.hooks().authorizer.take_denied().unwrap().first.as_deref(), Some("foreign_keys"));
    connection.hooks().authorizer.set_policy(panics);
    assert!(connection.prepare("SELECT 1").is_err() && connection.hooks().take_panicked());
    connection.hooks().authorizer.set_policy(|_| Verdict::Allow);
    assert_eq!(run(&mut connection, "PRAGMA foreign_keys", &[]).unwrap(), [["1"]]);
}

/// Stops after a number of looks.
struct After(AtomicI64);

impl Interrupt for After {
    fn should_stop(&self) -> bool {
        self.0.fetch_sub(1, Ordering::SeqCst) <= 0
    }
}

/// With the commit hook disarming the interrupt, what a write reports is what the file holds, wherever it is interrupted.
#[test]
fn an_interrupted_write_is_not_there_and_a_finished_one_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = Sqlite::open(&directory.path().join("test.db"), OpenFlags::default(), None).unwrap();
    connection.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a INTEGER PRIMARY KEY, b)").unwrap();
    connection.hooks().set_progress_steps(1);
    let insert = prepare(&mut connection, "INSERT INTO t (b) SELECT value FROM json_each('[1,2,3,4,5,6,7,8,9]')");
    let control = Control::prepare(&mut connection).unwrap();
    let (mut interrupted, mut finished, mut expected) = (0, 0, 0);
    for looks in 0..300 {
        let in_transaction = looks % 2 == 1;
        if in_transaction {
            control.begin(&mut connection).unwrap();
        }
        connection.hooks().interrupts.arm(Arc::new(After(AtomicI64::new(looks / 2))));
        let result = connection.statement(insert).run(&(), &mut Discard);
        connection.hooks().interrupts.disarm();
        match result {
            Ok(()) => {
                finished += 1;
                expected += 9;
                if in_transaction {
                    control.commit(&mut connection).unwrap();
                }
            }
            Err(error) => {
                interrupted += 1;
                assert_eq!(error.code(), Some(ffi::SQLITE_INTERRUPT));
                control.rollback(&mut connection).unwrap();
            }
        }
        assert!(connection.handle().is_autocommit());
        assert_eq!(run(&mut connection, "SELECT count(*) FROM t", &[]).unwrap(), [[expected.to_string()]], "{looks}");
    }
    assert!(interrupted > 20 && finished > 20, "{interrupted} interrupted, {finished} finished");
}

#[test]
fn a_statement_ends_at_the_moment_that_was_set_and_tells_how_many_steps_it_took() {
    let mut connection = memory();
    let count = prepare(
        &mut connection,
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
    );
    connection.statement(count).arm_until(Instant::now());
    let error = connection.statement(count).run(&(), &mut Discard).unwrap_err();
    assert_eq!(error.code(), Some(ffi::SQLITE_INTERRUPT));
    assert!(
        (1000..10_000).contains(&connection.hooks().interrupts.steps_seen()),
        "{}",
        connection.hooks().interrupts.steps_seen()
    );
    connection.hooks().interrupts.disarm();
    let short = prepare(&mut connection, "SELECT 1");
    for _ in 0..1000 {
        connection.statement(short).arm_until(Instant::now());
        assert_eq!(connection.statement(short).run(&(), &mut Discard), Ok(()));
        assert_eq!(connection.hooks().interrupts.steps_seen(), 0);
    }
    connection.hooks().interrupts.disarm();
    let many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 10000) SELECT max(x) FROM n";
    assert_eq!(run(&mut connection, many, &[]).unwrap(), [["10000"]], "nothing ends it");
}

#[test]
fn a_savepoint_undoes_what_sqlite_does_not_and_the_deferred_counter() {
    let mut connection = memory();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = 1; CREATE TABLE p (a PRIMARY KEY);
             CREATE TABLE c (a REFERENCES p (a) DEFERRABLE INITIALLY DEFERRED);
             CREATE TABLE big (a INTEGER PRIMARY KEY, b); INSERT INTO big VALUES (1, 'x'), (2, printf('%600d', 1))",
        )
        .unwrap();
    let control = Control::prepare(&mut connection).unwrap();
    connection.rusqlite().set_limit(Limit::SQLITE_LIMIT_LENGTH, 1000).unwrap();
    control.begin(&mut connection).unwrap();
    control.savepoint(&mut connection).unwrap();
    assert_eq!(run(&mut connection, "UPDATE big SET b = b || b", &[]).unwrap_err().code(), Some(ffi::SQLITE_TOOBIG));
    let changed = "SELECT count(*) FROM big WHERE b = 'xx'";
    assert_eq!(run(&mut connection, changed, &[]).unwrap(), [["1"]], "SQLite leaves the first row changed");
    run(&mut connection, "INSERT INTO c VALUES (7)", &[]).unwrap();
    assert!(connection.handle().has_deferred_violations());
    control.undo(&mut connection).unwrap();
    assert!(!connection.handle().has_deferred_violations());
    assert_eq!(run(&mut connection, changed, &[]).unwrap(), [["0"]]);
    control.commit(&mut connection).unwrap();
}

#[test]
fn the_change_counter_moves_with_every_commit_of_anybody() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    let mut connection = Sqlite::open(&path, OpenFlags::default(), None).unwrap();
    assert_eq!(connection.read_journal_mode().unwrap(), "delete");
    assert!(connection.wal().header().is_none(), "no WAL, no header");
    connection.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
    assert_eq!(connection.read_journal_mode().unwrap(), "wal");
    let first = connection.wal().header().unwrap();
    run(&mut connection, "INSERT INTO t VALUES (1)", &[]).unwrap();
    let second = connection.wal().header().unwrap();
    assert_eq!(second.change, first.change + 1);
    assert!(second.max_frame > first.max_frame);
    let other = flatwater_sqlite::rusqlite::Connection::open(&path).unwrap();
    other.execute("INSERT INTO t VALUES (2)", []).unwrap();
    assert_eq!(connection.wal().header().unwrap().change, second.change + 1);
    run(&mut connection, "UPDATE t SET a = 1 WHERE 0", &[]).unwrap();
    assert_eq!(connection.wal().header().unwrap().change, second.change + 1, "nothing was written");
    let done = connection.checkpoint(CheckpointMode::Restart).unwrap();
    assert_eq!(done.frames, done.copied);
    assert_eq!(connection.wal().header().unwrap().change, second.change + 1, "a checkpoint is no commit");
    run(&mut connection, "INSERT INTO t VALUES (3)", &[]).unwrap();
    let restarted = connection.wal().header().unwrap();
    assert_eq!((restarted.change, restarted.max_frame), (second.change + 2, 1));
    assert_ne!(restarted.salts, second.salts);
}

fn in_wal_mode(path: &std::path::Path) -> Sqlite {
    let mut connection = Sqlite::open(path, OpenFlags::default(), None).unwrap();
    connection.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
    assert_eq!(connection.read_journal_mode().unwrap(), "wal");
    run(&mut connection, "INSERT INTO t VALUES (1)", &[]).unwrap();
    connection
}

#[test]
fn the_state_of_the_wal_moves_with_every_commit_and_every_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = in_wal_mode(&directory.path().join("test.db"));
    let first = connection.wal().state().expect("a real header has the checksum that is looked for");
    run(&mut connection, "SELECT * FROM t", &[]).unwrap();
    assert_eq!(connection.wal().state(), Some(first));
    run(&mut connection, "INSERT INTO t VALUES (2)", &[]).unwrap();
    let second = connection.wal().state().unwrap();
    assert_ne!(second, first);
    connection.checkpoint(CheckpointMode::Passive).unwrap();
    assert_eq!(connection.wal().state(), Some(second), "a copy changes nothing");
    connection.checkpoint(CheckpointMode::Truncate).unwrap();
    assert_ne!(connection.wal().state().unwrap(), second, "the WAL was started over");
}

#[test]
fn a_state_of_the_wal_does_not_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = in_wal_mode(&directory.path().join("test.db"));
    let (first, change) = (connection.wal().state(), connection.wal().header().unwrap().change);
    for _ in 0..300 {
        run(&mut connection, "UPDATE t SET a = a + 1", &[]).unwrap();
        assert_ne!(connection.wal().state(), first);
    }
    // Without its index the WAL is recovered, which counts changes from the beginning.
    let copy = tempfile::tempdir().unwrap();
    for name in ["test.db", "test.db-wal"] {
        std::fs::copy(directory.path().join(name), copy.path().join(name)).unwrap();
    }
    let mut recovered = Sqlite::open(&copy.path().join("test.db"), OpenFlags::default(), None).unwrap();
    assert_eq!(recovered.read_journal_mode().unwrap(), "wal");
    run(&mut recovered, "SELECT * FROM t", &[]).unwrap();
    assert!(recovered.wal().header().unwrap().change < change);
    while recovered.wal().header().unwrap().change < change {
        run(&mut recovered, "UPDATE t SET a = a + 1", &[]).unwrap();
    }
    assert_eq!(recovered.wal().header().unwrap().change, change);
    assert_ne!(recovered.wal().state(), first);
}

#[test]
fn the_wal_index_is_never_looked_for_where_it_was_before_wal_mode_was_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.db");
    let leave = "PRAGMA journal_mode = delete";

    let mut connection = in_wal_mode(&path);
    assert!(connection.wal().state().is_some());
    let lent = connection.rusqlite();
    assert!(connection.wal().header().is_some(), "a look while the connection is lent");
    lent.execute_batch(leave).unwrap();
    assert!(connection.wal().header().is_none() && connection.wal().state().is_none());
    run(&mut connection, "SELECT * FROM t", &[]).unwrap();
    assert!(connection.wal().state().is_none());
    drop(connection);
    std::fs::remove_file(&path).unwrap();

    let mut connection = in_wal_mode(&path);
    run(&mut connection, "SELECT * FROM t", &[]).unwrap();
    assert!(connection.wal().state().is_some());
    assert_eq!(run(&mut connection, leave, &[]).unwrap(), [["'delete'"]]);
    assert!(connection.wal().header().is_none() && connection.wal().state().is_none());
    drop(connection);
    std::fs::remove_file(&path).unwrap();

    let mut connection = in_wal_mode(&path);
    // SAFETY: the connection is open; the callback needs no context.
    unsafe {
        let db = connection.rusqlite().handle();
        ffi::sqlite3_collation_needed(db, std::ptr::null_mut(), Some(leaves_wal_mode));
    }
    run(&mut connection, "SELECT * FROM t", &[]).unwrap();
    assert!(connection.wal().state().is_some());
    assert!(connection.prepare("SELECT * FROM t ORDER BY a COLLATE missing").is_err());
    assert!(connection.wal().header().is_none() && connection.wal().state().is_none());
}

/// What a safe callback of rusqlite may do with the connection that it is given.
unsafe extern "C" fn leaves_wal_mode(
    _: *mut std::ffi::c_void,
    db: *mut ffi::sqlite3,
    _: std::ffi::c_int,
    _: *const std::ffi::c_char,
) {
    let leave = c"PRAGMA journal_mode = delete".as_ptr();
    // SAFETY: SQLite calls with its open connection.
    unsafe { ffi::sqlite3_exec(db, leave, None, std::ptr::null_mut(), std::ptr::null_mut()) };
}

#[test]
fn only_a_row_put_into_the_watched_table_counts() {
    let mut connection = memory();
    connection
        .execute_batch(
            "CREATE TABLE t (a UNIQUE); CREATE TABLE log (a);
             CREATE TRIGGER x AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (1); END",
        )
        .unwrap();
    let mut inserts = |sql| {
        connection.hooks().inserts.watch("T");
        run(&mut connection, sql, &[]).unwrap();
        connection.hooks().inserts.saw(connection.handle().last_insert_rowid())
    };
    assert!(inserts("INSERT INTO t VALUES (1)"));
    assert!(!inserts("UPDATE t SET a = 2"));
    assert!(!inserts("INSERT OR IGNORE INTO t VALUES (2)"));
    assert!(!inserts("INSERT INTO t VALUES (2) ON CONFLICT DO UPDATE SET a = 3"));
}

#[test]
fn a_text_of_several_statements_is_taken_one_by_one() {
    let mut connection = memory();
    let sql = "SELECT 1; -- and\n SELECT 2 ; /* end */ ";
    let first = connection.prepare(sql).unwrap().unwrap();
    assert_eq!(&sql[first.length..], " -- and\n SELECT 2 ; /* end */ ");
    assert!(connection.has_statement(&sql[first.length..]));
    let second = connection.prepare(&sql[first.length..]).unwrap().unwrap();
    assert!(!connection.has_statement(&sql[first.length + second.length..]));
    assert!(connection.prepare(" -- nothing\n").unwrap().is_none());
}

#[test]
fn explain_lists_the_program_and_each_subprogram_once() {
    let mut connection = memory();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = ON; CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE log (a);
             CREATE TABLE c (a REFERENCES p (id) ON DELETE CASCADE);
             CREATE TRIGGER gone AFTER DELETE ON p BEGIN INSERT INTO log VALUES (old.id); END",
        )
        .unwrap();
    let programs = connection.explain("SELECT id FROM p WHERE id = ?1 -- by key").unwrap();
    let [program] = &*programs else { panic!("{programs:?}") };
    let seek = program.iter().find(|op| &*op.opcode == "SeekRowid").unwrap();
    assert_eq!(&*program[usize::try_from(seek.p2).unwrap()].opcode, "Halt");
    assert!(program.iter().any(|op| &*op.opcode == "Variable" && op.p1 == 1));

    let programs = connection.explain("DELETE FROM p WHERE id = ?").unwrap();
    let calls = programs[0].iter().filter(|op| &*op.opcode == "Program" && op.p4.as_deref() == Some("program"));
    assert_eq!((calls.count(), programs.len()), (2, 3));
    assert!(programs.iter().all(|program| &*program[0].opcode == "Init" && program.len() > 3));
    assert_eq!(run(&mut connection, "SELECT count(*) FROM log", &[]).unwrap(), [["0"]]);
}

#[test]
fn explain_runs_nothing_records_nothing_and_reports_what_is_wrong() {
    let mut connection = memory();
    connection.execute_batch("CREATE TABLE t (a)").unwrap();
    connection.hooks().commits.watch();
    connection.hooks().interrupts.arm(Arc::new(Never));
    assert!(connection.explain("INSERT INTO t VALUES (?), (:b)").is_ok());
    connection.hooks().interrupts.disarm();
    assert!(
        connection.handle().is_autocommit()
            && connection.hooks().commits.began().is_none()
            && !connection.handle().has_busy_statement()
    );
    assert_eq!(run(&mut connection, "SELECT count(*) FROM t", &[]).unwrap(), [["0"]]);
    for wrong in ["SELECT * FROM nowhere", "EXPLAIN SELECT 1", ""] {
        assert!(connection.explain(wrong).is_err(), "{wrong}");
    }
    assert!(!connection.handle().has_busy_statement());
}

#[test]
fn the_beginning_of_a_commit_is_noted_while_somebody_watches() {
    let mut connection = memory();
    connection.execute_batch("CREATE TABLE t (a)").unwrap();
    assert_eq!(connection.hooks().commits.began(), None);
    let before = Instant::now();
    connection.hooks().commits.watch();
    run(&mut connection, "SELECT * FROM t", &[]).unwrap();
    run(&mut connection, "INSERT INTO t VALUES (1)", &[]).unwrap();
    let began = connection.hooks().commits.began().unwrap();
    assert!((before..=Instant::now()).contains(&began));
    run(&mut connection, "INSERT INTO t VALUES (2)", &[]).unwrap();
    assert_eq!(connection.hooks().commits.began(), None, "the watch is over");
}

/// An interrupt that never comes.
struct Never;

impl Interrupt for Never {
    fn should_stop(&self) -> bool {
        false
    }
}

#[test]
fn a_judge_that_denies_everything_keeps_a_statement_from_being_prepared_again_inside_its_step() {
    let mut connection = memory();
    connection.execute_batch("CREATE TABLE t (a)").unwrap();
    let id = prepare(&mut connection, "SELECT a FROM t");
    let select = |connection: &mut Sqlite| connection.statement(id).run(&(), &mut Texts::default());
    let before = connection.hooks().authorizer.set_policy(|_| Verdict::Deny);
    select(&mut connection).unwrap();
    connection.hooks().authorizer.set_policy(before);
    connection.execute_batch("CREATE INDEX i ON t (a)").unwrap();
    connection.hooks().authorizer.set_policy(|_| Verdict::Deny);
    let Err(Error::Sqlite(error)) = select(&mut connection) else { panic!("it was prepared again") };
    assert_eq!(error.code, ffi::SQLITE_AUTH);
    connection.hooks().authorizer.set_policy(before);
    select(&mut connection).unwrap();
}

/// The R-Tree module reads when it is connected, and each of these reads has a snapshot of its own.
#[test]
fn one_prepare_that_begins_many_snapshots_is_not_taken_for_one_that_cannot_begin() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let mut connection = in_wal_mode(&path);
    let names: Vec<String> = (0..8).map(|i| format!("box_{i}")).collect();
    for name in &names {
        run(&mut connection, &format!("CREATE VIRTUAL TABLE {name} USING rtree(id, a, b)"), &[]).unwrap();
    }
    let texts = [format!("SELECT count(*) FROM {}", names.join(", ")), "DELETE FROM box_7".into()];
    let other = rusqlite::Connection::open(&path).unwrap();
    for (number, text) in texts.iter().enumerate() {
        // The modules are connected again.
        other.execute_batch(&format!("CREATE TABLE t_{number} (a)")).unwrap();
        run(&mut connection, text, &[]).unwrap();
        other.execute_batch(&format!("DROP TABLE t_{number}")).unwrap();
        let unheld = connection.unheld().unwrap();
        run(&mut connection, text, &[]).unwrap();
        drop(unheld);
    }
}
