//! Tests of shapes and inline writes on programs that the linked SQLite compiles.
//!
//! Owns: the tables of texts by shape, and the comparison of Flatwater's opcode table with SQLite's opcodes. Leaves
//! out: what programs really do between two checks of the progress handler (`progress_tests`), learning on a connection
//! (`connection::learn::analyse`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use flatwater_sqlite::Sqlite;
use flatwater_sqlite::rusqlite::OpenFlags;
use flatwater_sqlite::rusqlite::functions::FunctionFlags;

use super::analysis::{Ending, InlineWrite, ProgramAnalysis};
use super::graph::{Shape, Strange};
use super::opcodes::flow;

const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER PRIMARY KEY, a, b TEXT COLLATE NOCASE, c, UNIQUE (a));
    CREATE INDEX t_b ON t (b); CREATE INDEX t_c ON t (c) WHERE c > 0; CREATE INDEX t_e ON t (lower(b));
    CREATE TABLE u (id INTEGER PRIMARY KEY, t_id REFERENCES t (id), n);
    CREATE INDEX u_t ON u (t_id);
    CREATE TABLE later (id INTEGER PRIMARY KEY, t_id REFERENCES t (id) DEFERRABLE INITIALLY DEFERRED);
    CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
    CREATE TABLE s (id INTEGER PRIMARY KEY, v TEXT NOT NULL CHECK (length(v) < 100), n INT DEFAULT 1) STRICT;
    CREATE TABLE plain (id INTEGER PRIMARY KEY, v);
    CREATE TABLE replacing (id INTEGER PRIMARY KEY ON CONFLICT REPLACE, v);
    CREATE TABLE auto (id INTEGER PRIMARY KEY AUTOINCREMENT, v);
    CREATE TABLE g (id INTEGER PRIMARY KEY, v, up TEXT AS (upper(v)) STORED, short AS (substr(v, 1, 3)));
    CREATE TABLE noisy (id INTEGER PRIMARY KEY, v);
    CREATE TRIGGER noise AFTER INSERT ON noisy BEGIN INSERT INTO plain VALUES (new.id, new.v); END;
    CREATE VIEW v AS SELECT t.id, a, n FROM t JOIN u ON u.t_id = t.id;
    CREATE VIRTUAL TABLE f USING fts5(x);
    CREATE TEMP TABLE tmp (id INTEGER PRIMARY KEY, v);
    ATTACH ':memory:' AS other; CREATE TABLE other.o (id INTEGER PRIMARY KEY, v);";

pub(super) fn memory() -> Sqlite {
    let sqlite = Sqlite::open(Path::new(":memory:"), OpenFlags::default(), None).unwrap();
    sqlite.execute_batch("PRAGMA foreign_keys = ON").unwrap();
    sqlite.execute_batch(SCHEMA).unwrap();
    sqlite
}

pub(super) fn analysis(sqlite: &mut Sqlite, sql: &str) -> ProgramAnalysis {
    ProgramAnalysis::of(&sqlite.explain(sql).unwrap_or_else(|e| panic!("{sql}: {e}")), &Strange::default())
}

fn all_are(sqlite: &mut Sqlite, expected: impl Iterator<Item = (&'static str, Shape)>) {
    let shapes = expected.map(|(sql, shape)| (sql, shape, analysis(sqlite, sql).shape));
    let wrong: Vec<_> = shapes.filter(|(_, expected, found)| expected != found).collect();
    assert!(wrong.is_empty(), "text, expected, found: {wrong:#?}");
}

#[test]
fn a_lookup_is_acyclic() {
    let mut sqlite = memory();
    all_are(&mut sqlite, ACYCLIC.iter().map(|sql| (*sql, Shape::Acyclic)));
}
const ACYCLIC: &[&str] = &[
    "SELECT 1",
    "SELECT ?, ? + 1, upper(?)",
    "SELECT * FROM t WHERE id = ?",
    "SELECT * FROM t WHERE a = ?",
    "SELECT * FROM w WHERE k = ?",
    "SELECT short, up FROM g WHERE id = ?",
    "SELECT max(id) FROM t",
    "SELECT count(*) FROM t WHERE id = ?",
    "SELECT u.n, t.a FROM u JOIN t ON t.id = u.t_id WHERE u.id = ?",
    "SELECT (SELECT a FROM t WHERE id = ?)",
    "SELECT EXISTS (SELECT 1 FROM t WHERE id = ?)",
    "SELECT * FROM t WHERE id = ? ORDER BY a",
    "SELECT coalesce((SELECT n FROM u WHERE id = ?), 0)",
    "SELECT datetime('now'), round(1.5), length(?)",
];

#[test]
fn a_count_of_a_table_has_no_loop_and_is_distinguished_from_others() {
    let mut sqlite = memory();
    let counts = analysis(&mut sqlite, "SELECT count(*) FROM t");
    assert_eq!((counts.shape, counts.counts_all), (Shape::Acyclic, true));
    let scans = analysis(&mut sqlite, "SELECT count(*) FROM t WHERE a = ?");
    assert!(scans.shape != Shape::Opaque("Count".into()) && !scans.counts_all);
    assert_eq!(analysis(&mut sqlite, "INSERT INTO plain (v) SELECT count(*) FROM t").write, None);
}

#[test]
fn a_read_that_calls_a_timed_function_needs_its_history_and_a_write_is_opaque() {
    let mut sqlite = memory();
    let flags = FunctionFlags::SQLITE_DETERMINISTIC;
    sqlite.rusqlite().create_scalar_function("timed", 1, flags, |_| Ok(1)).unwrap();
    let strange = Strange { timed: ["timed(1)".into()].into(), ..Strange::default() };
    let mut of = |sql: &str| ProgramAnalysis::of(&sqlite.explain(sql).unwrap(), &strange);
    let read = of("SELECT timed(a) FROM t WHERE id = ?");
    assert_eq!((read.shape.clone(), read.calls_timed, read.needs_history()), (Shape::Acyclic, true, true));
    assert!(!of("SELECT abs(a) FROM t WHERE id = ?").needs_history());
    assert_eq!(of("INSERT INTO plain (v) VALUES (timed(?))").write, None);
}

#[test]
fn a_scan_is_bounded() {
    let mut sqlite = memory();
    all_are(&mut sqlite, BOUNDED.iter().map(|sql| (*sql, Shape::Bounded)));
}
const BOUNDED: &[&str] = &[
    "SELECT * FROM t",
    "SELECT * FROM t WHERE b = ?",
    "SELECT * FROM t WHERE b > ? AND b < ? LIMIT 10",
    "SELECT * FROM t WHERE id BETWEEN ? AND ?",
    "SELECT * FROM t ORDER BY id DESC LIMIT ? OFFSET ?",
    "SELECT * FROM t ORDER BY b",
    "SELECT * FROM t WHERE b IN (?, ?, 'x')",
    "SELECT * FROM t WHERE id IN (?, ?, ?)",
    "SELECT * FROM t WHERE id NOT IN (?, ?, ?)",
    "SELECT * FROM t WHERE c > 5",
    "SELECT * FROM t WHERE lower(b) = ?",
    "SELECT * FROM v WHERE id = ?",
    "SELECT * FROM t JOIN u ON u.t_id = t.id",
    "SELECT sum(a), avg(a), count(*), max(a) FROM t",
    "SELECT b, count(*) FROM t GROUP BY b",
    "SELECT group_concat(b) FROM t",
    "SELECT DISTINCT b FROM t",
    "SELECT a FROM t UNION ALL SELECT n FROM u",
    "SELECT a, (SELECT max(n) FROM u WHERE t_id = t.id) FROM t",
    "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t_id = t.id)",
    "SELECT * FROM (SELECT a FROM t LIMIT 10) WHERE a > 1",
    "SELECT * FROM (VALUES (1), (2), (3))",
    "SELECT count(*) FROM t WHERE a > 1",
    "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END FROM t",
    "SELECT u.n, t.a FROM u LEFT JOIN t ON t.id = u.t_id WHERE u.id = ?",
    "SELECT * FROM w",
    "SELECT * FROM s WHERE v = 'x' OR n = 1",
];

#[test]
fn what_works_without_a_look_is_opaque() {
    let mut sqlite = memory();
    all_are(&mut sqlite, OPAQUE.iter().map(|(sql, blamed)| (*sql, Shape::Opaque((*blamed).into()))));
}
const OPAQUE: &[(&str, &str)] = &[
    ("SELECT * FROM t ORDER BY c", "SorterOpen"),
    ("SELECT * FROM t ORDER BY c LIMIT 3", "OpenEphemeral"),
    ("SELECT c, count(*) FROM t GROUP BY c", "SorterOpen"),
    ("SELECT DISTINCT c FROM t", "OpenEphemeral"),
    ("SELECT count(DISTINCT c) FROM t", "OpenEphemeral"),
    ("SELECT a FROM t UNION SELECT n FROM u", "SorterOpen"),
    ("SELECT row_number() OVER (ORDER BY id) FROM t", "OpenDup"),
    ("SELECT sum(a) OVER (ORDER BY id) FROM t", "OpenDup"),
    ("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 9) SELECT x FROM n", "OpenEphemeral"),
    ("SELECT * FROM t WHERE id IN (SELECT n FROM u)", "OpenEphemeral"),
    ("SELECT * FROM t JOIN plain ON plain.v = t.c", "OpenAutoindex"),
    ("SELECT * FROM t WHERE a = 1 OR b = 2", "RowSetTest"),
    ("SELECT * FROM f WHERE f MATCH 'x'", "VOpen"),
    ("SELECT value FROM json_each(?)", "VOpen"),
    ("SELECT * FROM t WHERE a LIKE ?", "like(2)"),
    ("SELECT * FROM t WHERE a GLOB ?", "glob(2)"),
    ("SELECT a ->> '$.x' FROM t WHERE id = 1", "->>(2)"),
    ("SELECT json_extract(a, '$.x') FROM t WHERE id = 1", "json_extract(-1)"),
    ("SELECT json_group_array(a) FROM t", "json_group_array(1)"),
    ("SELECT replace(?, ?, ?)", "replace(3)"),
    ("SELECT instr(?, ?)", "instr(2)"),
    ("SELECT trim(?, ?)", "trim(2)"),
    ("SELECT printf(?, 1)", "printf(-1)"),
    ("INSERT INTO noisy VALUES (1, 2)", "Program"),
    ("INSERT INTO f VALUES ('x')", "VUpdate"),
    ("DELETE FROM plain", "Clear"),
    ("DROP TABLE plain", "Destroy"),
    ("CREATE TABLE x (a)", "ReadCookie"),
    ("SELECT min(b) FROM t", "a loop without a look"),
    ("VACUUM", "Vacuum"),
];

const NEW_ROW: InlineWrite =
    InlineWrite { ending: Ending::Acyclic, changes_existing_rows: false, fails_before_changes: true, scans: false };
const OLD_ROW: InlineWrite = InlineWrite { changes_existing_rows: true, ..NEW_ROW };
const NEW_ROWS: InlineWrite = InlineWrite { ending: Ending::Bounded, ..NEW_ROW };
const OLD_ROWS: InlineWrite = InlineWrite { ending: Ending::Bounded, ..OLD_ROW };

#[test]
fn a_write_of_one_table_may_be_inline() {
    let mut sqlite = memory();
    let lessons = WRITES.iter().map(|(sql, write)| (sql, write, analysis(&mut sqlite, sql)));
    let is_other = |write: InlineWrite, wanted: InlineWrite| {
        InlineWrite { fails_before_changes: true, scans: false, ..write } != wanted
    };
    let wrong: Vec<_> = lessons
        .filter(|(_, wanted, analysis)| match (analysis.write, **wanted) {
            (Some(write), Some(wanted)) => is_other(write, wanted),
            (write, wanted) => write != wanted,
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
const WRITES: &[(&str, Option<InlineWrite>)] = &[
    ("INSERT INTO plain VALUES (?, ?)", Some(NEW_ROW)),
    ("INSERT INTO plain (v) VALUES (?)", Some(NEW_ROW)),
    ("INSERT OR IGNORE INTO plain VALUES (?, ?)", Some(NEW_ROW)),
    ("INSERT INTO plain VALUES (?, ?) ON CONFLICT DO NOTHING", Some(NEW_ROW)),
    ("INSERT INTO plain VALUES (?, ?) RETURNING id", Some(NEW_ROW)),
    ("INSERT INTO u VALUES (?, ?, ?)", Some(NEW_ROW)),
    ("INSERT INTO later VALUES (?, ?)", Some(NEW_ROW)),
    ("INSERT INTO w VALUES (?, ?)", Some(NEW_ROW)),
    ("INSERT INTO s VALUES (?, ?, ?)", Some(NEW_ROW)),
    ("INSERT INTO g (v) VALUES (?)", Some(NEW_ROW)),
    ("REPLACE INTO plain VALUES (?, ?)", Some(OLD_ROW)),
    ("INSERT INTO replacing VALUES (?, ?)", Some(OLD_ROW)),
    ("REPLACE INTO w VALUES (?, ?)", Some(OLD_ROW)),
    ("INSERT INTO plain VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET v = excluded.v", Some(OLD_ROW)),
    ("UPDATE plain SET v = ? WHERE id = ?", Some(OLD_ROW)),
    ("UPDATE plain SET v = ? WHERE id = ? RETURNING v", Some(OLD_ROW)),
    ("UPDATE t SET b = ? WHERE a = ?", Some(OLD_ROW)),
    ("UPDATE w SET v = ? WHERE k = ?", Some(OLD_ROW)),
    ("UPDATE u SET t_id = ? WHERE id = ?", Some(OLD_ROW)),
    ("DELETE FROM plain WHERE id = ?", Some(OLD_ROW)),
    ("DELETE FROM w WHERE k = ?", Some(OLD_ROW)),
    ("SELECT * FROM t WHERE id = ?", None),
    ("INSERT INTO plain VALUES (1, 2), (3, 4)", Some(NEW_ROWS)),
    ("UPDATE plain SET v = ? WHERE v = ?", Some(OLD_ROWS)),
    ("UPDATE plain SET v = ?", Some(OLD_ROWS)),
    ("UPDATE plain SET v = 0 WHERE 1 = 0", Some(OLD_ROWS)),
    ("DELETE FROM plain WHERE id < ?", Some(OLD_ROWS)),
    ("DELETE FROM plain WHERE id IN (?, ?)", Some(OLD_ROWS)),
    ("INSERT INTO plain SELECT id, v FROM other.o", None),
    ("INSERT INTO plain SELECT id, v FROM other.o WHERE id = ?", None),
    ("INSERT INTO t VALUES (?, ?, ?, ?)", Some(NEW_ROWS)),
    ("UPDATE t SET id = ? WHERE id = ?", Some(OLD_ROWS)),
    ("INSERT INTO auto (v) VALUES (?)", None),
    ("INSERT INTO noisy VALUES (?, ?)", None),
    ("INSERT INTO other.o VALUES (?, ?)", None),
    ("INSERT INTO tmp VALUES (?, ?)", None),
    ("DELETE FROM plain", None),
    ("DELETE FROM t WHERE id = ?", Some(OLD_ROWS)),
    ("CREATE TABLE x (a)", None),
];

#[test]
fn what_can_fail_after_a_change_is_distinguished_from_what_cannot() {
    let mut sqlite = memory();
    for (sql, wanted) in
        FAIL_BEFORE_CHANGES.iter().map(|sql| (sql, true)).chain(FAIL_LATE.iter().map(|sql| (sql, false)))
    {
        let write = analysis(&mut sqlite, sql).write.unwrap();
        assert_eq!(write.fails_before_changes, wanted, "{sql}");
    }
    // With the preupdate hook it deletes the old row first; otherwise one instruction overwrites it.
    for replaces in ["REPLACE INTO plain VALUES (?, ?)", "INSERT INTO replacing VALUES (?, ?)"] {
        let write = analysis(&mut sqlite, replaces).write.unwrap();
        assert_eq!(write.fails_before_changes, !flatwater_sqlite::REPORTS_ALL_ROWS, "{replaces}");
    }
}
const FAIL_BEFORE_CHANGES: &[&str] = &[
    "INSERT INTO plain VALUES (?, ?)",
    "INSERT OR IGNORE INTO plain VALUES (?, ?)",
    "INSERT INTO w VALUES (?, ?)",
    "INSERT INTO s VALUES (?, ?, ?)",
    "INSERT INTO g (v) VALUES (?)",
    "UPDATE plain SET v = ? WHERE id = ?",
    "DELETE FROM plain WHERE id = ?",
    "DELETE FROM w WHERE k = ?",
];
const FAIL_LATE: &[&str] = &[
    "INSERT INTO plain VALUES (1, 2), (3, 4)",
    "INSERT INTO plain VALUES (?, ?) RETURNING id",
    "INSERT INTO later VALUES (?, ?)",
    "UPDATE plain SET v = ? WHERE id = ? RETURNING v",
    "UPDATE plain SET v = ? WHERE v = ?",
    "UPDATE u SET t_id = ? WHERE id = ?",
    "DELETE FROM plain WHERE id < ?",
];

#[test]
fn what_scans_one_table_is_distinguished_from_what_seeks_and_from_loops_inside_loops() {
    let mut sqlite = memory();
    for (sql, wanted) in SCANS.iter().map(|sql| (sql, true)).chain(NO_SCANS.iter().map(|sql| (sql, false))) {
        let write = analysis(&mut sqlite, sql).write.unwrap_or_else(|| panic!("{sql}"));
        assert_eq!(write.scans, wanted, "{sql}");
    }
}
const SCANS: &[&str] = &[
    "DELETE FROM plain WHERE v = ?",
    // It scans the list.
    "DELETE FROM plain WHERE id IN (?, ?)",
    "DELETE FROM w WHERE v = ?",
    "UPDATE plain SET v = ? WHERE v > ?",
    "UPDATE plain SET v = v + 1",
    "UPDATE s SET n = n + 1 WHERE v = ?",
];
const NO_SCANS: &[&str] = &[
    "INSERT INTO plain VALUES (?, ?)",
    "INSERT INTO plain VALUES (1, 2), (3, 4)",
    "DELETE FROM plain WHERE id = ?",
    "DELETE FROM plain WHERE id < ?",
    "DELETE FROM plain WHERE id > ?",
    "UPDATE plain SET v = ? WHERE id BETWEEN 0 AND ?",
    "UPDATE plain SET v = ? WHERE id <= ? AND v = ?",
    "DELETE FROM plain WHERE ? = 1 AND v = ?",
    "DELETE FROM w WHERE ? AND v = ?",
    "UPDATE plain SET v = ? WHERE ? IS NOT NULL AND v = ?",
    "UPDATE plain SET v = ? WHERE length(v) > ?",
    // Its CHECK calls a function.
    "UPDATE s SET v = ? WHERE n > ?",
    "UPDATE u SET n = ? WHERE t_id = ?",
    "DELETE FROM t WHERE id = ?",
    "INSERT INTO plain SELECT NULL, n FROM u",
    "INSERT INTO plain SELECT NULL, u.n FROM u JOIN s",
    "INSERT INTO plain SELECT NULL, n FROM u WHERE t_id = ?",
];

/// Returns the source of the linked SQLite from cargo's registry, if it is there.
fn amalgamation() -> Option<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let version = format!("#define SQLITE_VERSION        \"{}\"", flatwater_sqlite::rusqlite::version());
    let registries = std::fs::read_dir(home.join("registry/src")).ok()?;
    let crates = registries.flatten().filter_map(|registry| std::fs::read_dir(registry.path()).ok()).flatten();
    let name = if flatwater_sqlite::CAN_ENCRYPT { "sqlcipher/sqlcipher.c" } else { "sqlite3/sqlite3.c" };
    let sources = crates.flatten().map(|place| place.path().join(name));
    sources.filter_map(|path| std::fs::read_to_string(path).ok()).find(|source| source.contains(&version))
}

/// Returns the quoted words of a text.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2)
}

/// Reads all opcodes from SQLite's source, because EXPLAIN shows only the opcodes of one program. Without that source,
/// for example if another SQLite is linked, the test checks nothing.
#[test]
fn our_table_has_the_opcodes_of_the_linked_sqlite() {
    let Some(source) = amalgamation() else {
        eprintln!("the source of the linked SQLite is not there: opcodes were not compared");
        return;
    };
    let names = source.split("const char *sqlite3OpcodeName(int i){").nth(1).unwrap();
    let names = names.split("return azName[i]").next().unwrap();
    let entries = names.lines().filter(|line| line.trim_start().starts_with("/*"));
    let theirs: BTreeSet<&str> = entries.filter_map(|line| quoted(line).next()).collect();
    assert!(theirs.len() > 150, "{theirs:?}");
    let unknown: Vec<_> = theirs.iter().filter(|name| flow(name).is_none()).collect();
    assert!(unknown.is_empty(), "opcodes that our table does not have: {unknown:?}");
    let table = include_str!("opcodes.rs").split("fn is_short_function").next().unwrap();
    let table = table.split("Some(match opcode").nth(1).unwrap();
    let ours: BTreeSet<&str> = quoted(table).collect();
    // SQLCipher follows SQLite by some versions, so the table has the opcodes of both.
    let gone: Vec<_> = ours.difference(&theirs).filter(|name| **name != "IfNotOpen").collect();
    assert!(gone.is_empty(), "opcodes that SQLite does not have: {gone:?}");
}
