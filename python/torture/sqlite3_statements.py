"""The programs of the act `sqlite3-programs`: what their steps are, made of random choices.

Owns the tables, the statements and their parameters. Knows nothing of how they run.
"""

from __future__ import annotations

import random
from typing import Any

SCHEMA = """
CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE, b DEFAULT 'changes() of an earlier one');
CREATE TABLE p (id INTEGER PRIMARY KEY);
CREATE TABLE c (id INTEGER PRIMARY KEY, p REFERENCES p DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE w (k PRIMARY KEY, v CHECK (v < 5)) WITHOUT ROWID;
CREATE TABLE log (what NOT NULL);
CREATE TABLE g (a CHECK (a <> 3), twice AS (a * 2) UNIQUE);
CREATE VIRTUAL TABLE f USING fts5 (words);
CREATE VIEW v AS SELECT a, b FROM t;
CREATE TRIGGER logged AFTER DELETE ON t BEGIN INSERT INTO log VALUES (old.id); INSERT INTO log VALUES ('two'); END;
CREATE TRIGGER refused BEFORE INSERT ON t WHEN new.a = 13 BEGIN SELECT RAISE(ABORT, 'no 13'); END;
CREATE TRIGGER undone BEFORE INSERT ON t WHEN new.a = 14 BEGIN SELECT RAISE(ROLLBACK, 'no 14'); END;
INSERT INTO log VALUES ('first');
"""

NAMES = ["one", '"two"', "[three]", "`fo``ur`", "ONE", "'one'"]

# A `#` is a small number.
WRITES = [
    "INSERT INTO t (a) VALUES (#)",
    "INSERT INTO t (id, a) VALUES (# + 1, #)",
    "INSERT INTO t (a) VALUES (#), (#), (#)",
    "INSERT OR IGNORE INTO t (a) VALUES (#)",
    "INSERT OR FAIL INTO t (a) VALUES (#), (#), (#)",
    "INSERT OR ROLLBACK INTO t (a) VALUES (#), (#)",
    "INSERT OR REPLACE INTO t (id, a) VALUES (# + 1, #)",
    "INSERT INTO t (a, b) VALUES (#, 'SELECT last_insert_rowid(), total_changes() -- '' changes()')",
    "INSERT INTO t (a, b) SELECT # + 20, total_changes()",
    "INSERT INTO t (a) VALUES (#) ON CONFLICT DO UPDATE SET b = 'again'",
    "/* INSERT */ UPDATE t SET b = '#' WHERE a > #",
    "UPDATE t SET a = a + # WHERE id > #",
    "UPDATE t SET b = last_insert_rowid() WHERE a = #",
    "DELETE FROM t WHERE a = #",
    "DELETE FROM t WHERE id > #",
    "DELETE FROM log",
    "REPLACE INTO w VALUES ('k#', #)",
    "INSERT INTO w VALUES ('k#', #)",
    "INSERT INTO w VALUES ('x#', 1), ('y#', #), ('z#', 2)",
    "INSERT INTO log VALUES (changes())",
    "INSERT INTO log VALUES (NULL)",
    "INSERT INTO c (p) VALUES (#)",
    "INSERT OR IGNORE INTO p VALUES (# + 1)",
    "DELETE FROM p WHERE id = #",
    "DELETE FROM c",
    "WITH n(x) AS (VALUES (#), (#)) INSERT INTO log SELECT x FROM n",
    "WITH n(x) AS (SELECT #) DELETE FROM log WHERE what IN (SELECT x FROM n)",
    "INSERT INTO g VALUES (#)",
    "INSERT INTO g (a) VALUES (#), (#), (#)",
    "UPDATE OR IGNORE g SET a = a + # WHERE twice > #",
    "INSERT INTO f VALUES ('some words #')",
    "INSERT INTO f (rowid, words) VALUES (#, 'other words')",
    "DELETE FROM f WHERE words MATCH 'words'",
    "UPDATE v SET a = 1",
    "INSERT INTO t (a) SELECT x FROM (SELECT # AS x UNION ALL SELECT # + 7) WHERE x < 12",
    "-- a comment\nINSERT INTO log VALUES ('a ; in a text') /* the end",
]
RETURNING = [
    "INSERT INTO t (a) VALUES (#) RETURNING id, a",
    "INSERT INTO t (a) VALUES (#), (#) RETURNING id AS named, a + 1",
    "UPDATE t SET b = 1 WHERE id < # RETURNING id",
    "DELETE FROM t WHERE a = # RETURNING a, b",
    "INSERT INTO w VALUES ('r#', #) RETURNING k",
]
READS = [
    "SELECT id, a AS named, b FROM t ORDER BY id",
    "SELECT last_insert_rowid(), changes(), total_changes()",
    'SELECT changes ( ) + 1, \'changes()\', "changes"() AS "changes()" -- changes()',
    "SELECT a FROM t ORDER BY changes(), a",
    "SELECT count(*), '#' FROM t WHERE a <> 'last_insert_rowid()'",
    "SELECT * FROM v ORDER BY a",
    "SELECT count(*) FROM log",
    "SELECT k, v FROM w",
    "SELECT * FROM c",
    "SELECT rowid, words FROM f WHERE words MATCH 'words' ORDER BY rowid",
    "SELECT a, twice FROM g ORDER BY a",
    "SELECT last_insert_rowid() AS id, (SELECT max(a) FROM t WHERE a < total_changes()) FROM t LIMIT 2",
    "EXPLAIN QUERY PLAN SELECT 1",
    "PRAGMA table_info(t)",
    "VALUES (#), (#)",
    "WITH n(x) AS (VALUES (1), (2)) SELECT x, changes() FROM n",
    "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name",
]
DEFINITIONS = [
    "CREATE TABLE new# (a, b)",
    "CREATE TABLE IF NOT EXISTS new# (a)",
    "DROP TABLE new#",
    "DROP TABLE IF EXISTS new#",
    "ALTER TABLE new# ADD COLUMN c DEFAULT 'changes()'",
    "CREATE INDEX new_i# ON t (b)",
    "DROP INDEX new_i#",
    "INSERT INTO new# (a) VALUES (#)",
    "CREATE TABLE new# AS SELECT a FROM t",
    "PRAGMA user_version = #",
    "PRAGMA user_version",
    "PRAGMA foreign_keys = #",
    "PRAGMA foreign_keys",
    "ANALYZE",
    "REINDEX t",
]
WRONG = [
    "INSERT INTO none VALUES (1)",
    "INSERT INTO t (none) VALUES (1)",
    "INSERT INTO t VALUES (1, 2, 3, 4)",
    "UPDATE none SET a = 1",
    "UPDATE t SET a = (",
    "DELETE FROM v",
    "DELETE FROM t WHERE none(1)",
    "SELECT none FROM t",
    "SELECT",
    "nothing",
    "INSERT INTO log VALUES (1); INSERT INTO log VALUES (2)",
    "SELECT 1; SELECT 2",
    "INSERT INTO log SELECT abs(-9223372036854775808)",
    "SELECT abs(-9223372036854775808)",
    "INSERT INTO sqlite_schema VALUES (1, 2, 3, 4, 5)",
    "COMMIT COMMIT",
    "SAVEPOINT",
    "",
    "-- nothing",
    ";",
]
CONTROL = [
    "BEGIN",
    "BEGIN IMMEDIATE",
    "begin exclusive transaction",
    "BEGIN DEFERRED TRANSACTION named",
    "COMMIT",
    "END TRANSACTION",
    "ROLLBACK",
    "rollback transaction",
    "SAVEPOINT @",
    "savepoint/* none */@",
    "RELEASE @",
    "RELEASE SAVEPOINT @",
    "ROLLBACK TO @",
    "ROLLBACK TRANSACTION TO SAVEPOINT @;",
]
WITH_PARAMS: list[tuple[str, list[Any]]] = [
    (
        "INSERT INTO t (a) VALUES (?)",
        [(1,), [7], (13,), (14,), ("x",), (), (1, 2), None, {"a": 1}, (object(),), 5, (1 << 70,)],
    ),
    (
        "INSERT INTO t (a, b) VALUES (:a, $b)",
        [{"a": 3, "b": 4}, {"a": 3}, {"a": 5, "b": b"x", "c": 6}, (7, 8), (1,), ()],
    ),
    ("UPDATE t SET b = ? WHERE a = ?", [(1, 2), ("\ud800", 1), (1,), (1.5, None)]),
    ("SELECT ?", [(1,), ("x",), (None,), (), (1, 2), ("\ud800",), (object(),), (float("nan"),)]),
    ("SELECT a FROM t WHERE a < :limit ORDER BY a", [{"limit": 5}, {}, (3,)]),
    ("INSERT INTO log VALUES (?1)", [("x",), (None,), ("x", "y")]),
    ("INSERT INTO none VALUES (?)", [(1,), (), (object(),)]),
    ("INSERT INTO t (a, b) VALUES (?2, ?1)", [(1, 2), (1,)]),
    ("REPLACE INTO w VALUES (@k, :v)", [{"k": "n", "v": 1}, {"k": "n", "v": 9}, {"k": None, "v": 1}, ["k", 1]]),
    ("SELECT :a, :b, :a", [{"a": 1, "b": 2}, (1, 2), (1, 2, 3), {"a": 1}]),
    ("PRAGMA user_version", [(), (1,)]),
]
ROWS: list[Any] = [
    [],
    [(1,), (2,), (3,)],
    [(30,), (31,), (30,)],
    [(40,), ()],
    [(1, 2)],
    [(50,), (object(),)],
    [(object(),)],
    [(51,), "raise"],
    ["raise"],
    [(52,), 5],
    [(13,)],
    [(60,), (14,), (61,)],
    [[70], [71]],
    [{"a": 1}],
    [(72,), None],
    [("x",), (b"x",), (1.5,), (None,)],
]
MANY = [
    "INSERT INTO t (a) VALUES (?)",
    "INSERT OR IGNORE INTO t (a) VALUES (?)",
    "INSERT INTO w VALUES (?, 1)",
    "UPDATE t SET b = 'many' WHERE a = ?",
    "DELETE FROM t WHERE a = ?",
    "REPLACE INTO log VALUES (?)",
    "INSERT INTO none VALUES (?)",
    "SELECT ?",
    "INSERT INTO c (p) VALUES (?)",
    "INSERT INTO t (a) VALUES (:a) RETURNING a",
    "INSERT INTO t (a) VALUES (?) ON CONFLICT DO UPDATE SET b = b + 1",
    "WITH n(x) AS (SELECT ?) INSERT INTO log SELECT x FROM n",
    "INSERT INTO f VALUES (?)",
    "CREATE TABLE many (a)",
]
LEVELS = ["", None, "DEFERRED", "IMMEDIATE", "EXCLUSIVE", "deferred", "Immediate", "other", 5]


def program(rng: random.Random, cursors: int) -> list[tuple[Any, ...]]:
    """The steps of one program."""
    steps = [_step(rng, cursors) for _ in range(rng.randrange(1, 40))]
    if rng.random() < 0.3:
        # The connection has its own, which it gets between two transactions.
        steps.insert(0, ("execute", 0, "CREATE TEMP TABLE temporary (a)", None))
    return steps


def _text(rng: random.Random, some: list[str]) -> str:
    text = rng.choice(some)
    while "#" in text:
        text = text.replace("#", str(rng.randrange(6)), 1)
    return text.replace("@", rng.choice(NAMES), 1)


def _step(rng: random.Random, cursors: int) -> tuple[Any, ...]:
    at = rng.randrange(cursors)
    chance = rng.random()
    if chance < 0.3:
        return ("execute", at, _text(rng, WRITES), None)
    if chance < 0.35:
        return ("all", at, _text(rng, RETURNING), None)
    if chance < 0.45:
        return (rng.choice(["execute", "all"]), at, _text(rng, READS), None)
    if chance < 0.52:
        return ("fetch", at, rng.choice([None, 1, 2]))
    if chance < 0.57:
        return ("execute", at, _text(rng, DEFINITIONS), None)
    if chance < 0.64:
        return ("execute", at, _text(rng, WRONG), None)
    if chance < 0.74:
        return ("execute", at, _text(rng, CONTROL), None)
    if chance < 0.8:
        sql, given = rng.choice(WITH_PARAMS)
        return ("all" if sql.startswith("SELECT") else "execute", at, sql, rng.choice(given))
    if chance < 0.86:
        return ("many", at, _text(rng, MANY), (rng.choice(["list", "generator"]), rng.choice(ROWS)))
    if chance < 0.88:
        some = [_text(rng, rng.choice([WRITES, DEFINITIONS, CONTROL, WRONG])) for _ in range(rng.randrange(4))]
        return ("script", at, ";\n".join(some))
    if chance < 0.91:
        return ("block", at, _text(rng, WRITES), None, rng.random() < 0.3)
    if chance < 0.93:
        return ("level", rng.choice(LEVELS))
    if chance < 0.95:
        return ("fresh", at)
    return ("commit",) if rng.random() < 0.6 else ("rollback",)
