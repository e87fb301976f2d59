//! Moves of databases that are written to.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use flatwater::{Database, ErrorKind, Session, Value};
use flatwater_move::Move;
use flatwater_remote::Remote;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Tables of each kind, with rows.
const KINDS: &str = r#"
CREATE TABLE "order ""1""" (id INTEGER PRIMARY KEY AUTOINCREMENT, "a b", c REAL);
CREATE TABLE plain (a, b);
CREATE TABLE keyed (a TEXT COLLATE NOCASE, b BLOB, c ANY, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID;
CREATE TABLE only (id INTEGER PRIMARY KEY);
CREATE TABLE hides (rowid, _rowid_ TEXT);
CREATE TABLE made (a INTEGER PRIMARY KEY, b AS (a * 2), c AS (a * 3) STORED);
CREATE TABLE child (id INTEGER PRIMARY KEY, of REFERENCES parent (id) ON DELETE CASCADE, twin REFERENCES child (id));
CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
CREATE TABLE text_key (name TEXT PRIMARY KEY, n INT);
CREATE TABLE declared (id INTEGER PRIMARY KEY, at DATETIME, is_so BOOLEAN, label TEXT);
CREATE INDEX by_b ON plain (b);
CREATE UNIQUE INDEX by_n ON text_key (n);
CREATE VIEW names AS SELECT name FROM parent;
CREATE TABLE noted (a);
CREATE TRIGGER notes AFTER INSERT ON only BEGIN INSERT INTO noted VALUES (NEW.id); END;
INSERT INTO "order ""1""" ("a b", c) VALUES ('it''s', 1), (x'00ff', 2.5), (NULL, NULL), ('more', -0.5);
DELETE FROM "order ""1""" WHERE id = 4;
INSERT INTO plain VALUES (1, 1.0), (9223372036854775807, 'ä'), ('x', x''), (2.0, 0.1);
DELETE FROM plain WHERE a = 1;
INSERT INTO keyed VALUES ('A', x'00', 1), ('b', x'01', 1.0), ('c', x'', 'text');
INSERT INTO only VALUES (-5), (7);
INSERT INTO hides VALUES ('r', 'u');
INSERT INTO made (a) VALUES (1), (2);
INSERT INTO parent VALUES (1, 'Ada'), (2, 'Bob');
INSERT INTO child VALUES (1, 1, 2), (2, 2, 1), (3, NULL, 3);
INSERT INTO text_key VALUES ('one', 1), ('two', 2);
INSERT INTO declared VALUES (1, 'soon', 2, x'ff00'), (2, 1709247906, -1, 'x');
"#;

const TABLES: [&str; 11] =
    ["order \"1\"", "plain", "keyed", "only", "hides", "made", "child", "parent", "text_key", "noted", "declared"];

/// All rows of all tables, with the types of their values.
async fn content(of: &Session) -> Vec<String> {
    let mut all = Vec::new();
    for table in TABLES {
        let columns: Vec<String> =
            of.query_values("SELECT name FROM pragma_table_xinfo(?) ORDER BY cid", (table,)).await.unwrap();
        let shown = columns.iter().map(|name| format!("quote(\"{name}\")")).collect::<Vec<_>>().join(" || ',' || ");
        let sql = format!("SELECT {shown} FROM \"{}\"", table.replace('"', "\"\""));
        let mut rows: Vec<String> = of.query_values(sql, ()).await.unwrap();
        rows.sort();
        all.extend(rows.into_iter().map(|row| format!("{table}: {row}")));
    }
    let numbers: Vec<String> = of
        .query_values("SELECT name || seq FROM sqlite_sequence WHERE name NOT LIKE '\\_%' ESCAPE '\\'", ())
        .await
        .unwrap();
    all.extend(numbers);
    let made = "SELECT name FROM sqlite_schema WHERE type IN ('index', 'view', 'trigger') AND sql IS NOT NULL
        AND substr(name, 1, 1) <> '_' ORDER BY name";
    all.extend(of.query_values::<String>(made, ()).await.unwrap());
    all
}

fn cluster() -> (rqlite_double::Running, Remote) {
    let double = rqlite_double::start();
    let remote =
        Remote::connect(&format!("rqlite://{}/?timeout=60s&level=linearizable", double.nodes.join(","))).unwrap();
    (double, remote)
}

fn file(path: &Path) -> Database {
    Database::open(path.to_str().unwrap()).wait().unwrap()
}

/// A source and a target, in a folder.
fn two_files() -> (tempfile::TempDir, Database, Database) {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (file(&folder.path().join("from.db")), file(&folder.path().join("to.db")));
    (folder, from, to)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn each_kind_of_table_moves() {
    let (folder, (_double, cluster)) = (tempfile::tempdir().unwrap(), cluster());
    let (from, back) = (file(&folder.path().join("from.db")), file(&folder.path().join("back.db")));
    runtime().block_on(async {
        from.execute_script(KINDS).await.unwrap();
        let expected = content(&from).await;
        let to = Move::new(&from, &cluster);
        let copied = to.copy().await.unwrap();
        assert_eq!((copied.tables, copied.repaired), (11, 0));
        to.switch(cluster.name()).await.unwrap();
        assert_eq!(content(&cluster).await, expected);
        let refused = from.execute("INSERT INTO parent (name) VALUES ('Eve')", ()).await.unwrap_err();
        assert!(refused.message().contains("has moved to rqlite://"), "{refused}");
        // And back, where the triggers of the program fire for what it writes, and not for what is moved.
        cluster.execute("INSERT INTO only VALUES (8)", ()).await.unwrap();
        let expected = content(&cluster).await;
        let home = Move::new(&cluster, &back);
        home.copy().await.unwrap();
        home.switch("back.db").await.unwrap();
        assert_eq!(content(&back).await, expected);
        assert_eq!(back.query_value::<i64>("SELECT count(*) FROM noted", ()).await.unwrap(), 3);
        let ours = "SELECT count(*) FROM sqlite_schema WHERE name LIKE '\\_flatwater%' ESCAPE '\\'";
        assert_eq!(back.query_value::<i64>(ours, ()).await.unwrap(), 0);
        to.give_up().await.unwrap();
        from.execute("INSERT INTO parent (name) VALUES ('Eve')", ()).await.unwrap();
        assert_eq!(from.query_value::<i64>(ours, ()).await.unwrap(), 0);
    });
}

#[test]
fn what_cannot_move_is_refused_before_anything_changes() {
    let (folder, from, to) = two_files();
    runtime().block_on(async {
        from.execute_script("CREATE TABLE t (a); CREATE VIRTUAL TABLE found USING fts5 (a)").await.unwrap();
        let moving = Move::new(&from, &to);
        let error = moving.copy().await.unwrap_err();
        assert!(error.message().contains("found is a virtual table") && error.hint().is_some(), "{error}");
        from.execute("DROP TABLE found", ()).await.unwrap();
        assert_eq!(moving.switch("x").await.unwrap_err().kind(), ErrorKind::Misuse);
        to.execute("CREATE TABLE t (b)", ()).await.unwrap();
        let error = moving.copy().await.unwrap_err();
        assert!(error.message().contains("has a table t already"), "{error}");
        for db in [&from, &to] {
            assert_eq!(db.query_value::<i64>("SELECT count(*) FROM sqlite_schema", ()).await.unwrap(), 1);
        }
        to.execute("DROP TABLE t", ()).await.unwrap();
        // Other programs do not enforce foreign keys.
        let plain = rusqlite::Connection::open(folder.path().join("from.db")).unwrap();
        plain.execute_batch("CREATE TABLE u (a REFERENCES t (b))").unwrap();
        plain
            .execute_batch(
                "DROP TABLE t; CREATE TABLE t (b PRIMARY KEY); INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)",
            )
            .unwrap();
        moving.copy().await.unwrap();
        plain.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM t").unwrap();
        for error in [moving.switch("to.db").await.err(), moving.copy().await.err()] {
            let error = error.unwrap();
            assert!(error.message().contains("rows of u refer to rows of t that are not there: 1"), "{error}");
        }
        plain.execute_batch("DELETE FROM u").unwrap();
        moving.switch("to.db").await.unwrap();
    });
}

/// Writes at random, as a program beside us does, with plain SQLite. Returns when it is refused, or told to end.
fn write(path: &Path, seed: u64, ends: &AtomicBool, written: &AtomicU64) {
    let plain = rusqlite::Connection::open(path).unwrap();
    plain.busy_timeout(Duration::from_secs(60)).unwrap();
    plain.execute_batch("PRAGMA foreign_keys = ON").unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    while !ends.load(Ordering::Relaxed) {
        let (a, b) = (random.random_range(1..60_i64), random.random_range(1..60_i64));
        let wrote = match random.random_range(0..8) {
            0 => plain.execute("INSERT OR IGNORE INTO parent VALUES (?, 'name ' || ?)", (a, b)),
            1 => plain.execute("INSERT OR REPLACE INTO parent VALUES (?, 'name ' || ?)", (a, b)),
            2 => plain.execute("UPDATE OR IGNORE parent SET id = ? WHERE id = ?", (a, b)),
            3 => plain.execute("DELETE FROM parent WHERE id = ?", [a]),
            4 => plain.execute("INSERT OR REPLACE INTO child SELECT ?, id, NULL FROM parent WHERE id = ?", (a, b)),
            5 => plain.execute("INSERT INTO plain VALUES (?, ?)", (a, b as f64)),
            6 => plain.execute("DELETE FROM plain WHERE a = ?", [a]),
            _ => plain.execute("INSERT OR REPLACE INTO keyed VALUES ('k' || ?, x'01', ?)", (a, b)),
        };
        match wrote {
            Ok(_) => written.fetch_add(1, Ordering::Relaxed),
            Err(error) if error.to_string().contains("moved to") => return,
            Err(error) if error.to_string().contains("constraint") => 0,
            Err(error) => panic!("{error}"),
        };
    }
}

#[test]
fn a_service_moves_to_a_cluster_and_back_while_it_writes() {
    let (folder, (_double, cluster)) = (tempfile::tempdir().unwrap(), cluster());
    let path = folder.path().join("from.db");
    let (from, back) = (file(&path), file(&folder.path().join("back.db")));
    let (ends, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    from.execute_script(KINDS).wait().unwrap();
    let rows = (0..3000_i64).map(|n| (n, n));
    from.execute_many("INSERT INTO plain VALUES (?, ?)", rows).wait().unwrap();
    let seed: u64 = rand::random_range(0..1 << 40);
    let writers: Vec<_> = (0..2)
        .map(|number| {
            let (path, ends, written) = (path.clone(), ends.clone(), written.clone());
            std::thread::spawn(move || write(&path, seed + number, &ends, &written))
        })
        .collect();
    let wait_for = |more: u64| {
        let until = written.load(Ordering::Relaxed) + more;
        while written.load(Ordering::Relaxed) < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    runtime().block_on(async {
        wait_for(50);
        let moving = Move::new(&from, &cluster);
        let first = moving.copy().await.unwrap();
        wait_for(50);
        let again = moving.copy().await.unwrap();
        assert!(first.rows > 3000 && again.changes > 0, "seed {seed}: {first:?} {again:?}");
        wait_for(50);
        let switched = moving.switch(cluster.name()).await.unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        assert!(switched.changes > 0, "seed {seed}: {switched:?}");
        assert_eq!(content(&cluster).await, content(&from).await, "seed {seed}");
    });
    ends.store(true, Ordering::Relaxed);
    // Back, while tasks write to the cluster.
    runtime().block_on(async {
        let home = Move::new(&cluster, &back);
        let writes = async {
            for n in 0.. {
                let row = (n, Value::Real(1.0));
                match cluster.execute("INSERT INTO plain VALUES (?, ?)", row).await {
                    Ok(_) => {}
                    Err(error) if error.message().contains("moved to") => return,
                    Err(error) => panic!("{error}"),
                }
                cluster.execute("DELETE FROM parent WHERE id = ?", (n % 60,)).await.ok();
            }
        };
        let moves = async {
            home.copy().await.unwrap();
            home.switch("back.db").await.unwrap();
        };
        futures_util::future::join(writes, moves).await;
        assert_eq!(content(&back).await, content(&cluster).await, "seed {seed}");
    });
}

#[test]
fn a_move_that_was_stopped_goes_on() {
    let (_folder, from, to) = two_files();
    runtime().block_on(async {
        from.execute_script(KINDS).await.unwrap();
        let rows = (0..3000_i64).map(|n| (n, n));
        from.execute_many("INSERT INTO plain VALUES (?, ?)", rows).await.unwrap();
        let moving = Move::new(&from, &to);
        // It ends wherever it is.
        for polls in [1, 3, 9, 27, 81] {
            let mut copy = std::pin::pin!(moving.copy());
            for _ in 0..polls {
                if futures_util::poll!(&mut copy).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        from.execute("UPDATE plain SET b = b + 1 WHERE a < 100", ()).await.unwrap();
        moving.copy().await.unwrap();
        // The target is not as it was: it is put right, or the switch says so and the source goes on.
        to.execute("DELETE FROM plain WHERE a = 5", ()).await.unwrap();
        assert!(moving.switch("to.db").await.unwrap().repaired > 0);
        assert_eq!(content(&to).await, content(&from).await);
    });
}

#[test]
fn the_command_says_what_it_did_and_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    file(folder.path().join("from.db").as_path()).execute_script(KINDS).wait().unwrap();
    let run = |step: &str, to: &str| {
        let command = std::process::Command::new(env!("CARGO_BIN_EXE_flatwater-move"))
            .args([step, &path("from.db"), to])
            .output();
        let output = command.unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let to = path("to.db");
    assert_eq!(run("switch", &to), (false, "misuse: nothing was copied yet -- copy before\n".into()));
    let (done, text) = run("copy", &to);
    assert!(done && text.starts_with("11 tables and 25 rows copied to "), "{text}");
    let (done, text) = run("switch", &to);
    assert!(done && text.contains("the database is ") && text.contains("to.db now"), "{text}");
    let (done, text) = run("give-up", &to);
    assert!(done && text.contains("is as it was"), "{text}");
    let (done, text) = run("copy", "rqlite://ada:secret@127.0.0.1:1/?timeout=1s");
    assert!(!done && !text.contains("secret"), "{text}");
}

#[test]
fn what_is_moved_is_neither_moved_again_nor_mixed_up() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| file(&folder.path().join(name));
    let (from, to, other) = (open("from.db"), open("to.db"), open("other.db"));
    runtime().block_on(async {
        from.execute_script(KINDS).await.unwrap();
        let (moving, elsewhere) = (Move::new(&from, &to), Move::new(&from, &other));
        moving.copy().await.unwrap();
        for error in [elsewhere.copy().await.err(), elsewhere.switch("other.db").await.err()] {
            assert!(error.unwrap().message().contains("was copied to another database"));
        }
        from.execute("UPDATE plain SET b = 5 WHERE a = 'x'", ()).await.unwrap();
        moving.switch("to.db").await.unwrap();
        let expected = content(&from).await;
        assert_eq!(content(&to).await, expected);
        // The target goes on; nothing brings the old rows back.
        to.execute("DELETE FROM plain", ()).await.unwrap();
        let expected = content(&to).await;
        for error in [moving.copy().await.err(), moving.switch("to.db").await.err()] {
            assert!(error.unwrap().message().contains("has moved already"));
        }
        assert_eq!(content(&to).await, expected);
        moving.give_up().await.unwrap();
        assert!(moving.copy().await.unwrap_err().message().contains("has a table"));
        assert_eq!(content(&to).await, expected);
    });
}

#[test]
fn a_schema_that_changes_is_seen_and_a_switch_that_fails_takes_writes_again() {
    let (_folder, from, to) = two_files();
    runtime().block_on(async {
        from.execute_script(KINDS).await.unwrap();
        let moving = Move::new(&from, &to);
        moving.copy().await.unwrap();
        from.execute_script("CREATE TABLE late (a); INSERT INTO late VALUES (1)").await.unwrap();
        let error = moving.switch("to.db").await.unwrap_err();
        assert!(error.message().contains("the table late is not as it was copied"), "{error}");
        // The source takes writes, and they are logged: also in a spelling of the key that is the same, and where no trigger fires.
        from.execute("CREATE TABLE once (id INTEGER PRIMARY KEY, n)", ()).await.unwrap();
        from.execute("INSERT INTO once VALUES (1, 'a')", ()).await.unwrap();
        moving.copy().await.unwrap();
        from.execute("CREATE UNIQUE INDEX by_once ON once (n)", ()).await.unwrap();
        from.execute("INSERT OR REPLACE INTO once VALUES (2, 'a')", ()).await.unwrap();
        let script = "INSERT INTO late VALUES (2); UPDATE keyed SET a = 'a' WHERE a = 'A'; DROP TABLE text_key;
            CREATE TABLE text_key (name TEXT PRIMARY KEY, n INT); INSERT INTO text_key VALUES ('three', 3);
            CREATE UNIQUE INDEX by_n ON text_key (n); CREATE INDEX later ON late (a);
            INSERT OR REPLACE INTO text_key VALUES ('four', 3)";
        from.execute_script(script).await.unwrap();
        moving.copy().await.unwrap();
        // A trigger that is there already does not fire for what is moved.
        to.execute("CREATE TRIGGER notes AFTER INSERT ON only BEGIN INSERT INTO noted VALUES (NEW.id); END", ())
            .await
            .unwrap();
        from.execute("INSERT INTO only VALUES (70)", ()).await.unwrap();
        moving.switch("to.db").await.unwrap();
        assert_eq!(content(&to).await, content(&from).await);
        assert_eq!(to.query_values::<i64>("SELECT id FROM once", ()).await.unwrap(), [2]);
        assert_eq!(to.query_values::<i64>("SELECT a FROM late ORDER BY a", ()).await.unwrap(), [1, 2]);
        let ours = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE '\\_flatwater%' ESCAPE '\\'";
        for db in [&from, &to] {
            assert_eq!(db.query_values::<String>(ours, ()).await.unwrap(), [] as [String; 0]);
        }
    });
}

#[test]
fn of_two_runs_at_a_time_the_older_one_ends() {
    let (folder, from, to) = two_files();
    runtime().block_on(async {
        from.execute_script(KINDS).await.unwrap();
        from.execute_many("INSERT INTO plain VALUES (?, ?)", (0..3000_i64).map(|n| (n, n))).await.unwrap();
        let moving = Move::new(&from, &to);
        moving.copy().await.unwrap();
        // A copy that is in the middle when a switch comes changes nothing after it. It cannot end while a transaction is open.
        let newest = async || from.query_value::<String>("SELECT run FROM _flatwater_move", ()).await.unwrap();
        let (before, held) = (newest().await, to.begin().await.unwrap());
        let mut copy = std::pin::pin!(moving.copy());
        while newest().await == before {
            assert!(futures_util::poll!(&mut copy).is_pending());
            tokio::task::yield_now().await;
        }
        let mut switch = std::pin::pin!(moving.switch("to.db"));
        while from.execute("INSERT INTO plain VALUES (-1, 0)", ()).await.is_ok() {
            assert!(futures_util::poll!(&mut switch).is_pending());
            tokio::task::yield_now().await;
        }
        held.rollback().await.unwrap();
        switch.await.unwrap();
        to.execute("DELETE FROM plain", ()).await.unwrap();
        let expected = content(&to).await;
        let ended = copy.await.unwrap_err();
        assert!(ended.message().contains("another copy or switch"), "{ended}");
        assert_eq!(content(&to).await, expected);
        // A switch that is in the middle when a copy comes is none.
        let (back, source) = (file(&folder.path().join("back.db")), &to);
        let home = Move::new(source, &back);
        home.copy().await.unwrap();
        let held = back.begin().await.unwrap();
        let mut switch = std::pin::pin!(home.switch("back.db"));
        while source.execute("INSERT INTO plain VALUES (1, 1)", ()).await.is_ok() {
            assert!(futures_util::poll!(&mut switch).is_pending());
            tokio::task::yield_now().await;
        }
        held.rollback().await.unwrap();
        home.copy().await.unwrap();
        source.execute("INSERT INTO plain VALUES (2, 2)", ()).await.unwrap();
        assert!(switch.await.unwrap_err().message().contains("another copy or switch"));
        source.execute("INSERT INTO plain VALUES (3, 3)", ()).await.unwrap();
        home.switch("back.db").await.unwrap();
        assert_eq!(content(&back).await, content(source).await);
    });
}

#[test]
fn a_copy_of_a_table_that_grows_has_an_end() {
    let (_folder, from, to) = two_files();
    runtime().block_on(async {
        from.execute_script(KINDS).await.unwrap();
        from.execute_many("INSERT INTO plain VALUES (?, ?)", (0..3000_i64).map(|n| (n, n))).await.unwrap();
        let count = "SELECT count(*) FROM plain";
        let before = from.query_value::<i64>(count, ()).await.unwrap();
        let moving = Move::new(&from, &to);
        let copied = async {
            let mut copy = std::pin::pin!(moving.copy());
            while to.query_value::<i64>(count, ()).await.unwrap_or_default() == 0 {
                assert!(futures_util::poll!(&mut copy).is_pending());
                tokio::task::yield_now().await;
            }
            from.execute_many("INSERT INTO plain VALUES (?, ?)", (0..2000_i64).map(|n| (n, n))).await.unwrap();
            copy.await.unwrap()
        };
        let copied = copied.await;
        let others = 25 - 3;
        assert_eq!((copied.rows, copied.changes), (before as u64 + others, 2000));
        assert_eq!(to.query_value::<i64>(count, ()).await.unwrap(), before + 2000);
        // What is behind the last row of the source goes, too.
        to.execute("INSERT INTO plain (rowid, a) VALUES (1000000, 'more')", ()).await.unwrap();
        to.execute("INSERT INTO noted VALUES (1000000)", ()).await.unwrap();
        moving.copy().await.unwrap();
        moving.switch("to.db").await.unwrap();
        assert_eq!(content(&to).await, content(&from).await);
    });
}

#[test]
fn rows_that_refer_to_later_rows_are_moved() {
    let (folder, from, to) = two_files();
    runtime().block_on(async {
        let schema = "PRAGMA foreign_keys = OFF; CREATE TABLE chain (id INTEGER PRIMARY KEY, next NOT NULL REFERENCES chain (id))";
        rusqlite::Connection::open(folder.path().join("from.db")).unwrap().execute_batch(schema).unwrap();
        // Each refers to the next one, and the last one to itself.
        let rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
            INSERT INTO chain SELECT i, min(i + 1, 4000) FROM n";
        from.execute(rows, ()).await.unwrap();
        let moving = Move::new(&from, &to);
        assert_eq!(moving.copy().await.unwrap().differing, 0);
        moving.switch("to.db").await.unwrap();
        let count = "SELECT count(*), sum(next) FROM chain";
        assert_eq!(to.query_one_as::<(i64, i64)>(count, ()).await.unwrap(), (4000, 4001 * 4000 / 2 + 3999));
    });
}

#[test]
fn what_the_source_has_changed_under_the_same_name_is_seen() {
    let (folder, from, to) = two_files();
    runtime().block_on(async {
        from.execute_script(KINDS).await.unwrap();
        let moving = Move::new(&from, &to);
        moving.copy().await.unwrap();
        let script = "DROP INDEX by_b; CREATE INDEX by_b ON plain (a, b); DROP INDEX by_n; DROP VIEW names;
            CREATE VIEW names AS SELECT name || '!' AS name FROM parent; CREATE VIEW more AS SELECT 1";
        from.execute_script(script).await.unwrap();
        moving.copy().await.unwrap();
        from.execute_script("DROP VIEW more; DROP INDEX by_b; CREATE INDEX by_b ON plain (b DESC)").await.unwrap();
        moving.switch("to.db").await.unwrap();
        let schema = "SELECT type || name || sql FROM sqlite_schema WHERE sql IS NOT NULL
            AND name NOT LIKE '\\_flatwater%' ESCAPE '\\' ORDER BY 1";
        let of = async |db: &Session| db.query_values::<String>(schema, ()).await.unwrap();
        assert_eq!(of(&to).await, of(&from).await);
        // The same columns, with another constraint and another default.
        let back = file(&folder.path().join("back.db"));
        let home = Move::new(&to, &back);
        home.copy().await.unwrap();
        let script = "DROP TABLE plain; CREATE TABLE plain (a CHECK (a > 0), b DEFAULT 5)";
        to.execute_script(script).await.unwrap();
        for error in [home.copy().await.err(), home.switch("back.db").await.err()] {
            let error = error.unwrap();
            assert!(error.message().contains("the table plain is not as it was copied"), "{error}");
        }
        to.execute("INSERT INTO plain VALUES (1, 1)", ()).await.unwrap();
        home.give_up().await.unwrap();
        let again = file(&folder.path().join("again.db"));
        let home = Move::new(&to, &again);
        home.copy().await.unwrap();
        home.switch("again.db").await.unwrap();
        assert_eq!(of(&again).await, of(&to).await);
    });
}
