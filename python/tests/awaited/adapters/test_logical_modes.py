"""A logical connection is pooled until it needs one of its own."""

from __future__ import annotations

import sqlite3

import pytest
import sqlite_vec
from logical_connections import INSERT, has_its_own, made, values

import flatwater.aiosqlite as aiosqlite


@pytest.mark.parametrize(
    "sql",
    [
        "ATTACH ':memory:' AS other",
        "CREATE TEMP TABLE x (a)",
        "CREATE VIEW temp.v AS SELECT 1",
        "PRAGMA cache_size = 7",
    ],
)
async def test_what_needs_a_connection_of_its_own_gets_it_but_not_in_a_transaction(file, sql):
    async with await made(file) as db, await made(file) as other:
        await db.execute(INSERT, (1,))
        with pytest.raises(sqlite3.OperationalError, match="needs a connection of its own, and a transaction is open"):
            await db.execute(sql)
        assert db.in_transaction and not has_its_own(db)
        await db.commit()
        await db.execute(sql)
        assert has_its_own(db) and not has_its_own(other)
        await db.execute(INSERT, (2,))
        assert db.in_transaction and await values(other) == [1]
        await db.commit()
        assert await values(db) == await values(other) == [1, 2]
        assert db.total_changes == 2


async def test_a_pragma_that_asks_for_what_is_so_is_answered(file):
    async with await made(file) as db:
        for sql, answer in (
            ("PRAGMA journal_mode = WAL", [("wal",)]),
            ("PRAGMA foreign_keys = OFF", []),
            ("PRAGMA synchronous = NORMAL", []),
            ("PRAGMA user_version = 3", []),
            ("PRAGMA user_version", [(3,)]),
        ):
            assert await db.execute_fetchall(sql) == answer, sql
        assert await db.execute_fetchall("PRAGMA busy_timeout") == [(5000,)]
        assert await db.execute_fetchall("PRAGMA busy_timeout = 50") == [(50,)]
        assert not has_its_own(db) and db._core.settings.timeout == 0.05
        await db.execute("PRAGMA synchronous = OFF")
        assert has_its_own(db)
        assert await db.execute_fetchall("PRAGMA synchronous") == [(0,)]


async def test_regexp_and_mathematics_need_no_connection_of_its_own(file):
    async with await made(file) as db:
        assert await db.execute_fetchall("SELECT 'abc' REGEXP '^a.c$', floor(1.5)") == [(1, 1.0)]
        assert not has_its_own(db)


async def test_a_function_is_the_connections_own_and_its_exception_the_cause(file):
    async with await made(file) as db, await made(file) as other:
        await db.create_function("inverse", 1, lambda value: 1 / value)
        assert has_its_own(db) and await db.execute_fetchall("SELECT inverse(2)") == [(0.5,)]
        with pytest.raises(sqlite3.OperationalError) as raised:
            await db.execute("SELECT inverse(0)")
        assert isinstance(raised.value.__cause__, ZeroDivisionError)
        with pytest.raises(sqlite3.OperationalError, match="no such function: inverse"):
            await other.execute("SELECT inverse(2)")
        await db.create_function("inverse", 1, None)
        with pytest.raises(sqlite3.OperationalError, match="no such function: inverse"):
            await db.execute("SELECT inverse(2)")


async def test_what_a_program_gives_to_sqlite_needs_a_connection_of_its_own_but_not_in_a_transaction(file):
    for give in (
        lambda db: db.create_function("f", 0, lambda: 1),
        lambda db: db.set_authorizer(lambda *_: 0),
        lambda db: db.set_progress_handler(lambda: 0, 1000),
        lambda db: db.set_trace_callback(lambda _: None),
    ):
        async with await made(file) as db:
            await db.execute(INSERT, (1,))
            with pytest.raises(
                sqlite3.OperationalError, match="needs a connection of its own, and a transaction is open"
            ):
                await give(db)
            await db.rollback()
            await give(db)
            assert has_its_own(db)
            await db.execute(INSERT, (1,))


async def test_uncommitted_reads_are_asked_for_and_not_ignored(file):
    async with await made(file) as db:
        await db.execute("PRAGMA read_uncommitted = 1")
        assert has_its_own(db)
        assert await db.execute_fetchall("PRAGMA read_uncommitted") == [(1,)]


async def test_extensions_are_an_option(file):
    async with await made(file) as db:
        assert not hasattr(db, "enable_load_extension")
        with pytest.raises(sqlite3.NotSupportedError, match="load_extension"):
            await db.load_extension("name")
    # As LangGraph's store loads it.
    path = sqlite_vec.loadable_path()
    async with aiosqlite.connect(":memory:", load_extension=path) as db:
        await db.enable_load_extension(True)
        await db.load_extension(path)
        await db.enable_load_extension(False)
        assert await db.execute_fetchall("SELECT vec_length('[1, 2]')") == [(2,)]
        with pytest.raises(sqlite3.NotSupportedError, match="load_extension"):
            await db.load_extension("name")


async def test_a_begin_that_a_write_follows_takes_the_writer_then(file):
    async with await made(file, isolation_level=None) as db, await made(file) as other:
        await db.execute("BEGIN")
        assert db.in_transaction
        await other.execute(INSERT, (1,))
        await other.commit()
        await db.execute(INSERT, (2,))
        await other.execute("PRAGMA busy_timeout = 50")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            await other.execute(INSERT, (3,))
        await db.execute("COMMIT")
        assert not has_its_own(db) and await values(other) == [1, 2]


async def test_a_begin_that_a_read_follows_makes_a_snapshot(file):
    async with await made(file, isolation_level=None) as db, await made(file) as other:
        await db.execute("BEGIN")
        assert await values(db) == []
        assert has_its_own(db)
        await other.execute(INSERT, (1,))
        await other.commit()
        assert await values(db) == []
        with pytest.raises(sqlite3.OperationalError, match="database is locked") as raised:
            await db.execute(INSERT, (2,))
        assert raised.value.sqlite_errorname == "SQLITE_BUSY_SNAPSHOT"
        await db.execute("ROLLBACK")
        assert await values(db) == [1]


async def test_foreign_keys_may_differ_between_two_connections_of_a_file(file):
    async with await made(file) as db, aiosqlite.connect(file, foreign_keys=True) as other:
        await db.executescript("CREATE TABLE p (a PRIMARY KEY); CREATE TABLE c (a REFERENCES p)")
        await db.execute("INSERT INTO c VALUES (1)")
        await db.rollback()
        with pytest.raises(sqlite3.IntegrityError):
            await other.execute("INSERT INTO c VALUES (1)")
        assert not has_its_own(db) and has_its_own(other)


async def test_what_a_connection_tells_of_its_statements_is_not_of_others(file):
    async with await made(file, isolation_level=None) as db, await made(file, isolation_level=None) as other:
        await db.execute(INSERT, (1,))
        for _ in range(3):
            await other.execute(INSERT, (2,))
        sql = "SELECT last_insert_rowid(), changes(), total_changes() AS total"
        async with db.execute(sql) as cursor:
            assert [column[0] for column in cursor.description] == ["last_insert_rowid()", "changes()", "total"]
            assert await cursor.fetchall() == [(1, 1, 1)]
        await db.execute("INSERT INTO t VALUES (last_insert_rowid())")
        assert await values(db) == [1, 1, 2, 2, 2]
        [row] = [await other.execute_insert(INSERT, (4,))]
        assert row == (6,)
