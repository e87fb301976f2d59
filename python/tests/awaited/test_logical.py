"""What `flatwater.aiosqlite` promises beyond aiosqlite: pooled connections, and what becomes of a transaction."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import flatwater
import flatwater.aiosqlite as aiosqlite
from flatwater._logical.own import Own

INSERT = "INSERT INTO t VALUES (?)"
# More than a cursor holds.
LARGE = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 200000) SELECT x, 'text' FROM n"


async def made(path: Any, **options: Any) -> aiosqlite.Connection:
    """A connection of a file with a table."""
    db = await aiosqlite.connect(path, **options)
    await db.execute("CREATE TABLE IF NOT EXISTS t (a)")
    return db


async def values(db: aiosqlite.Connection) -> list[Any]:
    return [row[0] for row in await db.execute_fetchall("SELECT a FROM t ORDER BY a")]


def has_its_own(db: aiosqlite.Connection) -> bool:
    return isinstance(db._core.mode, Own)


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.001)


# The idle limit.


@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
@pytest.mark.parametrize("end", ["commit", "execute", "rollback"])
async def test_the_end_of_an_idle_transaction_is_told_once(file, own, end):
    await (await made(file)).close()
    async with aiosqlite.connect(file, transaction_idle=0.5) as db:
        if own:
            await db.execute("CREATE TEMP TABLE own (a)")
        assert has_its_own(db) is own
        await db.execute(INSERT, (1,))
        await until(lambda: not db.in_transaction)
        call = {"commit": db.commit, "rollback": db.rollback, "execute": lambda: db.execute(INSERT, (2,))}[end]
        if end == "rollback":
            await call()
        else:
            with pytest.raises(sqlite3.OperationalError, match="idle|not used"):
                await call()
        assert not db.in_transaction
        await db.commit()
        assert await values(db) == []


async def test_the_idle_limit_is_five_minutes(file):
    async with await made(file) as db:
        assert db._core._place.options["transaction_idle"] == 300


# Cancellation.


async def test_a_cancelled_call_that_waits_does_nothing(file):
    one, other = await made(file), await made(file, timeout=3600)
    await one.execute(INSERT, (1,))
    waits = asyncio.ensure_future(other.execute(INSERT, (2,)))
    behind = asyncio.ensure_future(other.execute(INSERT, (3,)))
    await asyncio.sleep(0)
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    await one.commit()
    await behind
    await other.commit()
    assert await values(one) == [1, 3]
    await one.close()
    await other.close()


async def test_a_write_that_runs_is_waited_for_and_its_transaction_stays_open(file):
    async with await made(file) as db:
        await db.execute(INSERT, (1,))
        runs = asyncio.ensure_future(db.execute(f"INSERT INTO t SELECT x FROM ({LARGE})"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for _ in range(3):
            runs.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await runs
        assert db.in_transaction
        assert (await db.execute_fetchall("SELECT count(*) FROM t")) == [(200001,)]
        await db.commit()
        assert (await db.execute_fetchall("SELECT count(*) FROM t")) == [(200001,)]


async def test_a_transaction_survives_its_task(file):
    async with await made(file) as db:

        async def dies() -> None:
            await db.execute(INSERT, (1,))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await asyncio.create_task(dies())
        assert db.in_transaction
        await db.commit()
        assert await values(db) == [1]


async def test_dropping_a_connection_rolls_back_with_a_warning(file):
    other = await made(file, timeout=3600)
    db = await made(file)
    await db.execute(INSERT, (1,))
    with pytest.warns(ResourceWarning, match="was deleted before being closed"):
        del db
        gc.collect()
    await other.execute(INSERT, (2,))
    await other.commit()
    assert await values(other) == [2]
    await other.close()


# Reads.


async def test_a_half_read_cursor_blocks_no_writer_and_reads_on_from_its_snapshot(file):
    async with await made(file) as db, await made(file, timeout=3600) as other:
        await db.executescript(f"CREATE TABLE large AS {LARGE}")
        cursor = await db.execute("SELECT x FROM large ORDER BY x")
        assert await cursor.fetchone() == (1,)
        await other.execute("DELETE FROM large")
        await other.commit()
        await db.execute(INSERT, (1,))
        await db.commit()
        assert len(await cursor.fetchall()) == 199_999
        assert await db.execute_fetchall("SELECT count(*) FROM large") == [(0,)]


async def test_tasks_may_read_one_cursor(file):
    async with await made(file) as db:
        cursor = await db.execute(LARGE)
        parts = await asyncio.gather(*(cursor.fetchmany(60_000) for _ in range(4)))
        assert [len(part) for part in parts] == [60_000, 60_000, 60_000, 20_000]
        assert sorted(row[0] for part in parts for row in part) == list(range(1, 200_001))


async def test_a_large_result_is_made_in_slices(file, other_task):
    async with await made(file) as db:
        cursor = await db.execute(LARGE)
        async with other_task() as other:
            assert len(await cursor.fetchall()) == 200_000
            assert other.turns > 20


async def test_reads_of_an_idle_connection_do_not_wait_for_each_other(file):
    async with await made(file) as db:
        slow = asyncio.ensure_future(db.execute_fetchall(f"SELECT count(*) FROM ({LARGE}) a, ({LARGE}) b"))
        await asyncio.sleep(0)
        assert await db.execute_fetchall("SELECT 1") == [(1,)]
        assert not slow.done()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow


@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
async def test_a_statement_is_interrupted(file, own):
    async with await made(file) as db:
        if own:
            await db.execute("PRAGMA cache_size = 7")
        runs = asyncio.ensure_future(db.execute(f"SELECT count(*) FROM ({LARGE}) a, ({LARGE}) b"))
        while not runs.done():
            await asyncio.sleep(0.001)
            await db.interrupt()
        with pytest.raises(sqlite3.OperationalError, match="interrupted") as raised:
            await runs
        assert raised.value.sqlite_errorname == "SQLITE_INTERRUPT"
        assert await db.execute_fetchall("SELECT 1") == [(1,)]


# Pooled, or its own.


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


async def test_extensions_are_an_option(file):
    async with await made(file) as db:
        assert not hasattr(db, "enable_load_extension")
        with pytest.raises(sqlite3.NotSupportedError, match="load_extension"):
            await db.load_extension("name")


async def test_a_begin_that_a_write_follows_takes_the_writer_then(file):
    async with await made(file, isolation_level=None) as db, await made(file, timeout=0.05) as other:
        await db.execute("BEGIN")
        assert db.in_transaction
        await other.execute(INSERT, (1,))
        await other.commit()
        await db.execute(INSERT, (2,))
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


# Tasks, threads, loops, processes.


async def test_thirty_connections_have_ten_transactions_each(file):
    await (await made(file)).close()

    async def interactive(number: int) -> None:
        async with aiosqlite.connect(file, timeout=3600) as db:
            for turn in range(10):
                await db.execute("BEGIN IMMEDIATE")
                [(count,)] = await db.execute_fetchall("SELECT count(*) FROM t")
                await asyncio.sleep(0)
                await db.execute(INSERT, (count,))
                await db.commit()

    await asyncio.gather(*(interactive(number) for number in range(30)))
    async with aiosqlite.connect(file) as db:
        assert await values(db) == list(range(300))


def test_loops_on_threads_contend_for_one_connection(file):
    async def opened() -> aiosqlite.Connection:
        return await made(file)

    db = asyncio.run(opened())
    failed: list[BaseException] = []

    async def inserts(first: int) -> None:
        await asyncio.gather(*(db.execute(INSERT, (number,)) for number in range(first, first + 50)))

    def thread(first: int) -> None:
        try:
            asyncio.run(inserts(first))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=thread, args=(first,)) for first in range(0, 200, 50)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()

    async def ended() -> list[Any]:
        await db.commit()
        found = await values(db)
        await db.close()
        return found

    assert asyncio.run(ended()) == list(range(200)) and not failed


WRITES = """
import asyncio, sys
import flatwater.aiosqlite as aiosqlite

async def main():
    async with aiosqlite.connect(sys.argv[1], timeout=3600) as db:
        for number in range(20):
            await db.execute("BEGIN IMMEDIATE")
            [(count,)] = await db.execute_fetchall("SELECT count(*) FROM t")
            await db.execute("INSERT INTO t VALUES (?)", (count,))
            await db.commit()
        await db.execute("INSERT INTO t VALUES (-1)")
        print("open", flush=True)
        sys.stdin.read()

asyncio.run(main())
"""


async def test_processes_take_turns_and_one_that_is_killed_leaves_nothing_of_its_transaction(file: Path) -> None:
    async with await made(file, timeout=3600) as db:
        command = [sys.executable, "-c", WRITES, str(file)]
        other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert other.stdout is not None and other.stdin is not None
        for _ in range(20):
            await db.execute("BEGIN IMMEDIATE")
            [(count,)] = await db.execute_fetchall("SELECT count(*) FROM t")
            await db.execute(INSERT, (count,))
            await db.commit()
        assert await asyncio.to_thread(other.stdout.readline) == b"open\n"
        waits = asyncio.ensure_future(db.execute(INSERT, (40,)))
        await asyncio.sleep(0)
        assert not waits.done()
        other.kill()
        other.communicate()
        await waits
        await db.commit()
        assert await values(db) == list(range(41))


async def test_a_database_and_a_connection_of_a_file_share_its_writer(file):
    async with flatwater.connect(file, foreign_keys=False, busy_timeout=7) as other:
        async with await made(file) as db:
            assert not has_its_own(db)
            await db.execute(INSERT, (1,))
            waits = asyncio.ensure_future(other.execute(INSERT, (2,)))
            await asyncio.sleep(0)
            await db.commit()
            await waits
            assert await values(db) == [1, 2]


async def test_a_connection_has_its_own_if_the_file_is_open_with_other_foreign_keys(file):
    async with flatwater.connect(file), await made(file) as db:
        assert has_its_own(db)
        await db.executescript("CREATE TABLE p (a PRIMARY KEY); CREATE TABLE c (a REFERENCES p)")
        await db.execute("INSERT INTO c VALUES (1)")
