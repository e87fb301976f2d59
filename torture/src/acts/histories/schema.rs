//! The tables that histories write, and the texts that run on them.
//!
//! Texts contain placeholders, which `generate` replaces: `?` is a random value; `@?` is a value that also records when
//! it was used; `@WHERE` and `@ALL` are conditions that are always true and record the same (`ticks`). In a history of
//! one task they record nothing and leave no trace.

/// Tables with a constraint of each class, triggers of each kind, and other features of SQLite.
pub(super) const SCHEMA: &str = "
    CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE, c NOT NULL, d CHECK (d IS NULL OR d < 50));
    CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE late (id INTEGER PRIMARY KEY, p REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
    CREATE INDEX late_p ON late (p, id);
    CREATE TABLE soon (id INTEGER PRIMARY KEY, p REFERENCES parent (id) ON DELETE CASCADE ON UPDATE SET NULL);
    CREATE TABLE firm (id INTEGER PRIMARY KEY, p REFERENCES parent (id) ON DELETE RESTRICT);
    CREATE TABLE source (a, b); INSERT INTO source VALUES (1, 'one'), (2, 'two'), ('three', 'x'), (4, 'four');
    CREATE TABLE typed (a INT, b TEXT, c REAL, CHECK (c <> 7)) STRICT;
    CREATE TABLE word (k TEXT PRIMARY KEY COLLATE NOCASE, v NOT NULL) WITHOUT ROWID;
    CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, v NOT NULL);
    CREATE TABLE made (id INTEGER PRIMARY KEY, a, twice AS (a * 2) VIRTUAL, text AS (a || 'x') STORED UNIQUE,
        CHECK (twice <> 14));
    CREATE VIRTUAL TABLE text USING fts5 (x);
    CREATE VIEW both AS SELECT a, b FROM t;
    CREATE TRIGGER both_insert INSTEAD OF INSERT ON both BEGIN INSERT INTO t (a, b, c) VALUES (new.a, new.b, 0); END;
    CREATE TRIGGER both_update INSTEAD OF UPDATE ON both BEGIN UPDATE t SET b = new.b WHERE a = old.a; END;
    CREATE TRIGGER both_delete INSTEAD OF DELETE ON both BEGIN DELETE FROM t WHERE a = old.a; END;
    CREATE TABLE guarded (a); CREATE TABLE log (id INTEGER PRIMARY KEY, a);
    CREATE TRIGGER guard BEFORE INSERT ON guarded BEGIN
        SELECT CASE WHEN new.a % 3 = 0 THEN RAISE(ABORT, 'divisible by three')
                    WHEN new.a % 5 = 0 THEN RAISE(IGNORE) END;
    END;
    CREATE TRIGGER trace AFTER INSERT ON guarded BEGIN INSERT INTO log (a) VALUES (new.a); END;
    CREATE TRIGGER trace_gone AFTER DELETE ON guarded BEGIN INSERT INTO log (a) VALUES (-old.a); END;
    CREATE TABLE harsh (a);
    CREATE TRIGGER harsh_guard BEFORE INSERT ON harsh BEGIN
        SELECT CASE WHEN new.a % 3 = 0 THEN RAISE(ROLLBACK, 'all of it')
                    WHEN new.a % 3 = 1 THEN RAISE(FAIL, 'from here on') END;
    END;
    CREATE TABLE strict_keys (a UNIQUE ON CONFLICT FAIL, b UNIQUE ON CONFLICT ROLLBACK);
    CREATE TABLE owned (id INTEGER PRIMARY KEY, task NOT NULL, u, k UNIQUE, v NOT NULL CHECK (v < 40));
    CREATE INDEX owned_task ON owned (task, id);
    CREATE TABLE marks (task INTEGER PRIMARY KEY, u);
    CREATE TABLE counters (id INTEGER PRIMARY KEY, n NOT NULL); INSERT INTO counters VALUES (1, 0), (2, 0), (3, 0);
";

/// The number of rows of `counters`.
pub(super) const COUNTERS: i64 = 3;

/// Writes that return no rows.
pub(super) const WRITES: &[&str] = &[
    "INSERT INTO t VALUES (?, ?, @?, ?)",
    "INSERT INTO t (b, c, d) VALUES (?, @?, ?)",
    "INSERT INTO t (b, c) VALUES (@?, ?)",
    "INSERT OR REPLACE INTO t VALUES (@?, ?, ?, ?)",
    "INSERT OR IGNORE INTO t VALUES (@?, ?, ?, ?)",
    "INSERT OR ABORT INTO t SELECT ? + value, value, 1, value FROM json_each('[1,2,3,60]') @ALL",
    "INSERT INTO t VALUES (?, @?, NULL, ?)",
    "INSERT INTO t VALUES (?, ?, @?, ?) ON CONFLICT (a) DO UPDATE SET c = c + excluded.c ON CONFLICT (b) DO NOTHING",
    "INSERT INTO t (b, c) VALUES (@?, 1) ON CONFLICT (b) DO UPDATE SET c = excluded.b, d = d + 20",
    "REPLACE INTO t (a, b, c) VALUES (@?, ?, ?)",
    "UPDATE t SET b = b + ? @WHERE a < ?",
    "UPDATE t SET c = ? @WHERE a = ?",
    "UPDATE t SET b = ?, d = ? @WHERE a = ?",
    "UPDATE t SET a = a + ? @WHERE a = ?",
    "UPDATE OR REPLACE t SET b = ? @WHERE a < ?",
    "UPDATE OR IGNORE t SET b = ? @WHERE a < ?",
    "UPDATE t SET d = d + ? @WHERE a > ?",
    "UPDATE t SET c = abs(-9223372036854775807 - (a > ?)) @ALL",
    "UPDATE t SET c = json_extract('{bad', '$.x') @WHERE a = ?",
    "UPDATE t SET c = c @WHERE 0 AND a = ?",
    "DELETE FROM t @WHERE a % 4 = ?",
    "DELETE FROM t @WHERE a = ?",
    "DELETE FROM t @ALL",
    "INSERT INTO parent VALUES (@?)",
    "INSERT OR IGNORE INTO parent VALUES (@?)",
    "DELETE FROM parent @WHERE id = ?",
    "UPDATE parent SET id = id + 1 @WHERE id = ?",
    "INSERT INTO late (p) VALUES (@?)",
    "DELETE FROM late @WHERE p = ?",
    // SQLite plans these, and others below, by the values that are bound.
    "DELETE FROM late @WHERE id = (SELECT id FROM late WHERE p = ? ORDER BY id LIMIT ?)",
    "UPDATE late SET p = ? @WHERE id IN (SELECT id FROM late WHERE p = ? ORDER BY id DESC LIMIT ?)",
    "INSERT INTO soon (p) VALUES (@?)",
    "UPDATE soon SET p = ? @WHERE id = ?",
    "INSERT INTO firm (p) VALUES (@?)",
    "DELETE FROM firm @WHERE p < ?",
    "INSERT INTO typed SELECT a, b, 1.5 FROM source @WHERE rowid <> ?",
    "INSERT INTO typed VALUES (@?, 'text', ?)",
    "DELETE FROM typed @WHERE a <> ?",
    "INSERT INTO word VALUES ('k' || @?, ?)",
    "REPLACE INTO word VALUES ('K' || @?, ?)",
    "INSERT INTO word VALUES ('k' || @?, ?) ON CONFLICT DO UPDATE SET v = v || excluded.v WHERE length(v) < 9",
    "DELETE FROM word @WHERE v > ?",
    "INSERT INTO counted (v) VALUES (@?)",
    "INSERT INTO counted (v) SELECT ? FROM source @WHERE rowid < 3",
    "DELETE FROM counted @WHERE id > ?",
    "INSERT INTO made (a) VALUES (@?)",
    "UPDATE made SET a = ? @WHERE id = ?",
    "DELETE FROM made @WHERE twice < ?",
    "INSERT INTO text VALUES ('word ' || @?)",
    "UPDATE text SET x = 'other ' || ? @WHERE rowid = ?",
    "DELETE FROM text @WHERE rowid > ?",
    "INSERT INTO both VALUES (?, @?)",
    "UPDATE both SET b = ? @WHERE a = ?",
    "DELETE FROM both @WHERE a = ?",
    "INSERT INTO guarded VALUES (@?)",
    "INSERT INTO guarded SELECT value + ? FROM json_each('[1,2]') @ALL",
    "DELETE FROM guarded @WHERE a < ?",
];

/// Writes whose failure keeps part of their work, or ends a transaction.
pub(super) const HOSTILE: &[&str] = &[
    "INSERT OR FAIL INTO t SELECT a, b, 1, ? FROM source @ALL",
    "INSERT OR FAIL INTO t VALUES (?, ?, @?, 1), (?, ?, ?, ?)",
    "UPDATE OR FAIL t SET d = d + 10 @WHERE a < ?",
    "INSERT OR ROLLBACK INTO t VALUES (?, ?, @?, ?)",
    "UPDATE OR ROLLBACK t SET b = ? @WHERE a < ?",
    "INSERT INTO harsh VALUES (@?)",
    "INSERT INTO harsh SELECT value FROM json_each('[2,5,4,2]') @WHERE value <> ?",
    "INSERT INTO strict_keys VALUES (@?, ?)",
    "INSERT INTO strict_keys SELECT value, value + ? FROM json_each('[1,2,3]') @ALL",
];

/// Writes that return rows.
pub(super) const RETURNING: &[&str] = &[
    "INSERT INTO t VALUES (?, ?, @?, ?) RETURNING a, b",
    "INSERT INTO t VALUES (?, ?, @?, ?) ON CONFLICT DO UPDATE SET c = excluded.c RETURNING *",
    "UPDATE t SET c = c + ? @ALL RETURNING a, c",
    "UPDATE t SET c = ? @WHERE a = ? RETURNING a, c",
    "DELETE FROM soon @WHERE p = ? RETURNING id",
    "INSERT INTO counted (v) VALUES (@?) RETURNING id, v",
    "INSERT INTO word VALUES ('k' || @?, ?) RETURNING *",
    "DELETE FROM t @WHERE a = ? RETURNING b",
];

/// Texts that only read.
pub(super) const READS: &[&str] = &[
    "SELECT * FROM t WHERE a = ?",
    "SELECT * FROM t WHERE b = ?",
    "SELECT a, c FROM t WHERE c = ?",
    "SELECT * FROM t",
    "SELECT a, b FROM t ORDER BY a LIMIT ?",
    "SELECT length(c), c FROM t WHERE a = ?",
    "SELECT count(*) FROM t WHERE b LIKE ?",
    "SELECT x.a, y.a FROM t x, t y WHERE x.a = ?",
    "SELECT v FROM word WHERE k = 'K' || ?",
    "SELECT (SELECT count(*) FROM soon WHERE p = parent.id) FROM parent WHERE id = ?",
    "SELECT abs(-9223372036854775807 - ?)",
    "SELECT json_extract('{bad', ?)",
    "SELECT ?, ?",
    "SELECT rowid FROM text WHERE text MATCH 'word' AND rowid < ? ORDER BY rowid",
    "SELECT * FROM both WHERE a = ?",
    "SELECT id, twice, text FROM made WHERE twice = ?",
    "SELECT name, seq FROM sqlite_sequence",
    "SELECT max(id), count(*), sum(v) FROM counted WHERE id > ?",
    "SELECT name FROM pragma_table_info('t')",
    "SELECT no_such_column FROM t WHERE a = ?",
];

/// Definitions and statistics; `extra` may exist or not.
pub(super) const DEFINITIONS: &[&str] = &[
    "CREATE INDEX IF NOT EXISTS by_c ON t (c)",
    "CREATE INDEX by_c ON t (c)",
    "DROP INDEX IF EXISTS by_c",
    "CREATE UNIQUE INDEX IF NOT EXISTS word_v ON word (v)",
    "DROP INDEX IF EXISTS word_v",
    "ANALYZE",
    "ANALYZE t",
    "REINDEX t",
    "PRAGMA user_version = 7",
];

/// Definitions and statements that change which texts can be prepared.
pub(super) const EXTRA: &[&str] = &[
    "CREATE TABLE extra (a, b)",
    "CREATE TABLE IF NOT EXISTS extra (a, b)",
    "DROP TABLE extra",
    "DROP TABLE IF EXISTS extra",
    "ALTER TABLE extra ADD COLUMN c DEFAULT 7",
    "ALTER TABLE extra RENAME COLUMN c TO d",
    "ALTER TABLE extra DROP COLUMN d",
    "ALTER TABLE extra RENAME TO other",
    "DROP TABLE IF EXISTS other",
    "INSERT INTO extra (a, b) VALUES (?, ?)",
    "INSERT INTO extra (a, b) VALUES (?, ?)",
    "UPDATE extra SET d = ?",
    "DELETE FROM extra WHERE a > ?",
    "CREATE TRIGGER IF NOT EXISTS to_log AFTER INSERT ON extra BEGIN INSERT INTO log (a) VALUES (new.a); END",
    "DROP TRIGGER IF EXISTS to_log",
];

/// Texts that are refused everywhere, because they would affect one connection of several.
pub(super) const REFUSED: &[&str] = &[
    "BEGIN",
    "COMMIT",
    "SAVEPOINT s",
    "ATTACH ':memory:' AS other",
    "PRAGMA foreign_keys = 0",
    "PRAGMA no_such_pragma",
    "DELETE FROM t; DELETE FROM parent",
    "-- nothing",
];
