"""What a program of aiosqlite relies on: the same tests for aiosqlite itself and for `flatwater.aiosqlite`."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import aiosqlite as theirs
import pytest

import flatwater.aiosqlite as ours

INSERT = "INSERT INTO t VALUES (?)"


@pytest.fixture(params=[ours, theirs], ids=["ours", "theirs"])
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


async def values(db: Any, sql: str = "SELECT a FROM t ORDER BY a") -> list[Any]:
    return [row[0] for row in await db.execute_fetchall(sql)]


async def test_a_change_of_rows_begins_a_transaction_and_nothing_else_does(module, place):
    async with module.connect(place) as db:
        for sql in ("CREATE TABLE t (a)", "SELECT a FROM t", "WITH n(x) AS (SELECT 1) INSERT INTO t SELECT x FROM n"):
            await db.execute(sql)
            assert not db.in_transaction, sql
        for sql in (
            "/* so */ INSERT INTO t VALUES (2)",
            "-- so\nUPDATE t SET a = 3",
            "DELETE FROM t",
            "REPLACE INTO t VALUES (4)",
        ):
            await db.execute(sql)
            assert db.in_transaction, sql
            await db.rollback()
            assert not db.in_transaction
        assert await values(db) == [1]


async def test_other_connections_see_a_change_when_it_is_committed(module, file):
    async with module.connect(file) as one, module.connect(str(file)) as other:
        await one.execute("CREATE TABLE t (a)")
        await one.execute(INSERT, (1,))
        assert (await values(one), await values(other)) == ([1], [])
        await one.commit()
        assert await values(other) == [1]
        await one.execute(INSERT, (2,))
        await one.rollback()
        assert await values(one) == [1]


async def test_an_error_keeps_the_transaction_unless_it_takes_it_along(module, place):
    async with module.connect(place) as db:
        await db.execute("CREATE TABLE t (a UNIQUE)")
        await db.execute(INSERT, (1,))
        with pytest.raises(sqlite3.IntegrityError, match="^UNIQUE constraint failed: t.a$") as raised:
            await db.execute(INSERT, (1,))
        assert raised.value.sqlite_errorname == "SQLITE_CONSTRAINT_UNIQUE"
        assert db.in_transaction
        with pytest.raises(sqlite3.IntegrityError):
            await db.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
        assert not db.in_transaction
        await db.commit()
        assert await values(db) == []


async def test_the_wait_for_the_writer_ends_and_nothing_is_begun(module, file):
    async with module.connect(file) as one, module.connect(file, timeout=0.05) as other:
        await one.execute("CREATE TABLE t (a)")
        await one.execute(INSERT, (1,))
        for sql in ("INSERT INTO t VALUES (2)", "CREATE TABLE u (a)", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"):
            with pytest.raises(sqlite3.OperationalError, match="^database is locked$") as raised:
                await other.execute(sql)
            assert raised.value.sqlite_errorcode == 5 and raised.value.sqlite_errorname == "SQLITE_BUSY"
            if module is ours:
                assert not other.in_transaction
            await other.rollback()
        assert await values(other) == []
        await one.commit()
    async with module.connect(file) as other:
        await other.execute(INSERT, (2,))
        await other.commit()
        assert await values(other) == [1, 2]


async def test_a_script_commits_first_and_leaves_what_ran_before_a_failure(module, place):
    async with module.connect(place) as db:
        await db.execute("CREATE TABLE t (a UNIQUE)")
        await db.execute(INSERT, (1,))
        script = """
            INSERT INTO t VALUES (2); -- a ; comment
            CREATE TRIGGER odd AFTER INSERT ON t WHEN new.a % 2 BEGIN
                UPDATE t SET a = a + CASE WHEN 1 THEN 100 END WHERE a = new.a; SELECT ';'; END;
            INSERT INTO t VALUES (3); INSERT INTO t VALUES (2); INSERT INTO t VALUES (4);
        """
        with pytest.raises(sqlite3.IntegrityError):
            await db.executescript(script)
        assert not db.in_transaction
        await db.rollback()
        assert await values(db) == [1, 2, 103]
        await db.executescript("BEGIN; INSERT INTO t VALUES (5); ROLLBACK; SELECT * FROM t; INSERT INTO t VALUES (6)")
        assert await values(db) == [1, 2, 6, 103]
        with pytest.raises(TypeError):
            await db.executescript(b"SELECT 1")


async def test_many_rows_are_of_any_iterable_and_of_a_change(module, place):
    async with module.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        cursor = await db.executemany(INSERT, ((n,) for n in range(3)))
        assert (cursor.rowcount, cursor.lastrowid, db.in_transaction) == (3, None, True)
        await db.executemany("INSERT INTO t VALUES (:n)", iter([{"n": 3, "m": 4}]))
        assert await values(db) == [0, 1, 2, 3]
        with pytest.raises(sqlite3.ProgrammingError, match="executemany.. can only execute DML statements"):
            await db.executemany("SELECT ?", [(1,)])


async def test_a_cursor_is_read_in_parts(module, place):
    async with module.connect(place) as db:
        cursor = await db.execute(
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5000) SELECT x FROM n"
        )
        assert cursor.arraysize == 1 and await cursor.fetchmany() == [(1,)]
        cursor.arraysize = 2
        assert await cursor.fetchmany() == [(2,), (3,)]
        assert await cursor.fetchone() == (4,)
        assert await cursor.fetchmany(3) == [(5,), (6,), (7,)]
        assert len(await cursor.fetchall()) == 4993
        assert (await cursor.fetchone(), await cursor.fetchmany(2), await cursor.fetchall()) == (None, [], [])
        await cursor.execute("SELECT 1")
        assert await cursor.fetchall() == [(1,)]
        await cursor.close()
        with pytest.raises(sqlite3.ProgrammingError, match="closed cursor"):
            await cursor.fetchone()


async def test_statements_run_in_the_order_of_their_calls(module, place):
    async with module.connect(place) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        await asyncio.gather(*(db.execute("INSERT INTO t (a) VALUES (?)", (n,)) for n in range(50)))
        await db.commit()
        assert await values(db, "SELECT a FROM t ORDER BY id") == list(range(50))
        results = await asyncio.gather(db.execute(INSERT.replace("t ", "t (a) "), (50,)), db.rollback(), values(db))
        assert results[2] == list(range(50))


async def test_a_transaction_goes_on_in_another_task(module, place):
    async with module.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        await asyncio.create_task(write(db, 1))
        assert db.in_transaction
        await asyncio.create_task(write(db, 2))
        await asyncio.create_task(db.commit())
        assert not db.in_transaction and await values(db) == [1, 2]


async def write(db: Any, value: int) -> None:
    await db.execute(INSERT, (value,))


async def test_a_copy_goes_into_a_connection_of_each_kind(module, file, tmp_path):
    async with module.connect(file) as db, ours.connect(":memory:") as memory, theirs.connect(":memory:") as other:
        await db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        seen: list[Any] = []
        plain = sqlite3.connect(tmp_path / "copy.db")
        await db.backup(plain, pages=1, progress=lambda *pages: seen.append(pages), sleep=0)
        assert plain.execute("SELECT a FROM t").fetchall() == [(1,)] and seen[-1][1] == 0
        plain.close()
        await db.backup(other)
        assert await values(other) == [1]
        if module is ours:
            await db.backup(memory)
            assert await values(memory) == [1]


async def test_a_dump_is_that_of_sqlite3(module, place):
    script = """
        CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, "b""c" TEXT); INSERT INTO t VALUES (7, 'it''s');
        CREATE TABLE u (x BLOB, y REAL); INSERT INTO u VALUES (x'00ff', 0.5), (NULL, -1);
        CREATE INDEX i ON t (a); CREATE VIEW v AS SELECT * FROM t;
        CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM u; END;
    """
    plain = sqlite3.connect(":memory:")
    plain.executescript(script)
    async with module.connect(place) as db:
        await db.executescript(script)
        assert [line async for line in db.iterdump()] == list(plain.iterdump())
        await db.execute("INSERT INTO t VALUES (8, 'open')")
        assert any("'open'" in line for line in [line async for line in db.iterdump()])
    plain.close()


@pytest.mark.parametrize("name", ["file:named?mode=memory&cache=shared", "file::memory:?cache=shared"])
async def test_one_database_in_memory_has_a_name(module, name):
    async with module.connect(name, uri=True) as one:
        await one.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        async with module.connect(name, uri=True) as other, module.connect(":memory:") as alone:
            assert await values(other) == [1]
            with pytest.raises(sqlite3.OperationalError, match="no such table: t"):
                await values(alone)
        assert await values(one) == [1]
    async with module.connect(name, uri=True) as later:
        with pytest.raises(sqlite3.OperationalError, match="no such table: t"):
            await values(later)


async def test_errors_are_those_of_sqlite3(module, file, tmp_path):
    with pytest.raises(sqlite3.OperationalError, match="^unable to open database file$"):
        await module.connect(tmp_path / "none" / "test.db")
    async with module.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        for sql, text in (
            ("SELECT * FROM none", "no such table: none"),
            ("SELECT b FROM t", "no such column: b"),
            ("ALTER TABLE t ADD COLUMN a", "duplicate column name: a"),
            ("SELEC", 'near "SELEC": syntax error'),
            ("COMMIT", "cannot commit - no transaction is active"),
            ("RELEASE s", "no such savepoint: s"),
        ):
            with pytest.raises(sqlite3.OperationalError) as raised:
                await db.execute(sql)
            assert (str(raised.value), raised.value.sqlite_errorname) == (text, "SQLITE_ERROR")
    async with module.connect(f"file:{file}?mode=ro", uri=True) as db:
        await db.execute("CREATE TABLE IF NOT EXISTS t (a)")
        with pytest.raises(sqlite3.OperationalError, match="^attempt to write a readonly database$") as raised:
            await db.execute(INSERT, (1,))
        assert raised.value.sqlite_errorname == "SQLITE_READONLY"


async def test_a_closed_connection_says_so(module, place):
    db = module.connect(place)
    with pytest.raises(ValueError, match="no active connection"):
        db.in_transaction  # noqa: B018
    await db
    cursor = await db.execute("SELECT 1")
    await db.close()
    await db.close()
    for call in (lambda: db.execute("SELECT 1"), db.commit, cursor.fetchall, lambda: cursor.execute("SELECT 1")):
        with pytest.raises(ValueError, match="^Connection closed$|^no active connection$"):
            await call()


async def test_a_close_rolls_back(module, file):
    async with module.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        await db.execute(INSERT, (1,))
    async with module.connect(file) as db:
        assert await values(db) == []


async def test_foreign_keys_are_enforced_if_it_is_asked_for(module, file):
    async with module.connect(file) as db:
        await db.executescript("CREATE TABLE p (a PRIMARY KEY); CREATE TABLE c (a REFERENCES p)")
        await db.execute("INSERT INTO c VALUES (1)")
        await db.rollback()
        await db.execute("PRAGMA foreign_keys = ON")
        assert await values(db, "PRAGMA foreign_keys") == [1]
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY constraint failed"):
            await db.execute("INSERT INTO c VALUES (1)")


async def test_the_level_of_isolation_may_be_changed(place):
    async with ours.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        assert db.isolation_level == ""
        db.isolation_level = None
        await db.execute(INSERT, (1,))
        assert not db.in_transaction and db.isolation_level is None
        db.isolation_level = "IMMEDIATE"
        await db.execute(INSERT, (2,))
        assert db.in_transaction
        await db.rollback()
        with pytest.raises(ValueError, match="isolation_level string must be"):
            db.isolation_level = "SOMETIMES"
        assert await values(db) == [1]
