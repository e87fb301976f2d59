"""After each statement of a list `flatwater.aiosqlite` tells the same as `sqlite3`."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

import flatwater.aiosqlite as aiosqlite

SCHEMA = """
CREATE TABLE t (id INTEGER PRIMARY KEY, a UNIQUE, b);
CREATE TABLE log (a);
CREATE TRIGGER logged AFTER DELETE ON t BEGIN INSERT INTO log VALUES (old.a); INSERT INTO log VALUES (old.b); END;
CREATE TABLE w (k TEXT PRIMARY KEY, v) WITHOUT ROWID;
CREATE TABLE x (a); DROP TABLE x;
"""

# A text, with its parameters; `COMMIT()` and the like are calls; a list of parameters is for `executemany`.
WRITES: list[Any] = [
    ("INSERT INTO t (a, b) VALUES (?, ?)", (1, "x")),
    ("INSERT INTO t (id, a) VALUES (:id, :a)", {"id": 40, "a": 2, "further": 3}),
    "SELECT id, a AS named, b FROM t ORDER BY id",
    "SELECT last_insert_rowid(), changes(), total_changes()",
    ("INSERT INTO t (a) VALUES (?)", (1,)),
    "UPDATE t SET b = 'y'",
    "SELECT changes()",
    "INSERT INTO w VALUES ('k', 1)",
    "REPLACE INTO w VALUES ('k', 2)",
    "commit()",
    "SELECT count(*) FROM t",
    "WITH n(x) AS (VALUES (7), (8)) INSERT INTO t (a) SELECT x FROM n",
    "rollback()",
    "SELECT count(*) FROM t",
    "/* a comment */ DELETE FROM t -- another\n WHERE a = 1",
    "SELECT last_insert_rowid(), changes(), total_changes()",
    "commit()",
    "CREATE TABLE more (a)",
    "DROP TABLE more",
    ("INSERT INTO t (a) VALUES (?)", [(20,), (21,), (22,)]),
    ("DELETE FROM t WHERE a = ?", [(20,), (99,)]),
    ("SELECT ?", [(1,)]),
    "INSERT OR IGNORE INTO t (a) VALUES (21)",
    "INSERT INTO t (a) VALUES (30) RETURNING id, a",
    "UPDATE t SET b = 1 WHERE a = 30 RETURNING b",
    "INSERT INTO log SELECT 'x' AS returning",
    "INSERT INTO log VALUES ('SELECT changes(), last_insert_rowid() -- total_changes()')",
    'SELECT a, changes() AS "changes()" FROM log /* changes() */ ORDER BY a',
    "INSERT OR ROLLBACK INTO t (a) VALUES (21)",
    "SELECT a FROM t ORDER BY a",
    "commit()",
    "PRAGMA user_version = 5",
    "PRAGMA user_version",
    "PRAGMA table_info(t)",
    "PRAGMA table_info(none)",
    "SELECT a FROM t WHERE 0",
    "EXPLAIN QUERY PLAN SELECT 1",
    "VALUES (1), (2)",
    "",
    "  -- nothing\n;",
    "no statement",
    "SELECT nothing",
    "SELECT 1; SELECT 2",
    ("SELECT ?, ?", (1,)),
    ("SELECT :a", {"b": 1}),
    "ANALYZE",
    "rollback()",
    "commit()",
]

CONTROL: list[Any] = [
    "BEGIN",
    "BEGIN",
    "INSERT INTO t (a) VALUES (1)",
    "SAVEPOINT one",
    "INSERT INTO t (a) VALUES (2)",
    'SAVEPOINT "two"',
    "INSERT INTO t (a) VALUES (3)",
    "ROLLBACK TO ONE",
    "RELEASE two",
    "SELECT a FROM t ORDER BY a",
    "RELEASE SAVEPOINT one",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT outer",
    "INSERT INTO t (a) VALUES (4)",
    "ROLLBACK TRANSACTION TO SAVEPOINT outer",
    "INSERT INTO t (a) VALUES (5)",
    "RELEASE outer",
    "SELECT a FROM t ORDER BY a",
    "RELEASE outer",
    "BEGIN IMMEDIATE TRANSACTION",
    "DELETE FROM t",
    "VACUUM",
    "ROLLBACK",
    "BEGIN EXCLUSIVE; -- with a comment",
    "END",
    "BEGIN DEFERRED",
    "rollback()",
    "BEGIN NONSENSE",
    "INSERT INTO t (a) VALUES (6)",
    "SELECT last_insert_rowid(), changes()",
    "commit()",
]


def told_of(connection: Any, cursor: Any, rows: Any, failed: type[BaseException] | None) -> list[Any]:
    return [
        failed and next(kind for kind in failed.__mro__ if kind.__module__ == "sqlite3"),
        failed or [cursor.rowcount, cursor.lastrowid, cursor.description, rows],
        connection.in_transaction,
        connection.total_changes,
    ]


def of_sqlite3(connection: sqlite3.Connection, step: Any) -> list[Any]:
    sql, params = step if isinstance(step, tuple) else (step, ())
    cursor, rows, failed = connection.cursor(), None, None
    try:
        if sql in ("commit()", "rollback()"):
            getattr(connection, sql[:-2])()
        elif isinstance(params, list):
            cursor.executemany(sql, params)
        else:
            rows = cursor.execute(sql, params).fetchall()
    except sqlite3.Error as error:
        failed = type(error)
    return told_of(connection, cursor, rows, failed)


async def of_ours(connection: aiosqlite.Connection, step: Any) -> list[Any]:
    sql, params = step if isinstance(step, tuple) else (step, ())
    cursor, rows, failed = await connection.cursor(), None, None
    try:
        if sql in ("commit()", "rollback()"):
            await getattr(connection, sql[:-2])()
        elif isinstance(params, list):
            await cursor.executemany(sql, params)
        else:
            rows = await (await cursor.execute(sql, params)).fetchall()
    except sqlite3.Error as error:
        failed = type(error)
    return told_of(connection, cursor, rows, failed)


@pytest.mark.parametrize("level", ["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE", None])
@pytest.mark.parametrize("steps", [WRITES, CONTROL], ids=["writes", "control"])
async def test_each_statement_tells_the_same(place, tmp_path, level, steps):
    theirs = sqlite3.connect(tmp_path / "theirs.db", isolation_level=level)
    ours = await aiosqlite.connect(place, isolation_level=level)
    try:
        theirs.executescript(SCHEMA)
        await ours.executescript(SCHEMA)
        for step in steps:
            expected, told = of_sqlite3(theirs, step), await of_ours(ours, step)
            if expected[0]:
                expected[1] = told[1] = None
            assert told == expected, step
    finally:
        theirs.close()
        await ours.close()
