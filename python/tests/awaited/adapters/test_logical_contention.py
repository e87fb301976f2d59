"""Logical connections of one file in tasks, threads, loops and processes."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from logical_connections import INSERT, has_its_own, made, values

import flatwater
import flatwater.aiosqlite as aiosqlite


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


HOLDS = """
import sqlite3, sys

db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("open", flush=True)
sys.stdin.read()
"""


async def test_the_wait_for_another_process_ends_and_nothing_is_begun(file: Path) -> None:
    async with await made(file, timeout=0.05) as db, await made(file, timeout=0.05) as own:
        await own.execute("CREATE TEMP TABLE own (a)")
        other = subprocess.Popen(
            [sys.executable, "-c", HOLDS, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert other.stdout is not None
        assert await asyncio.to_thread(other.stdout.readline) == b"open\n"
        for one in (db, own):
            for sql in ("INSERT INTO t VALUES (1)", "BEGIN IMMEDIATE"):
                with pytest.raises(sqlite3.OperationalError, match="^database is locked$") as raised:
                    await one.execute(sql)
                assert raised.value.sqlite_errorname == "SQLITE_BUSY" and not one.in_transaction
        other.communicate()
        for number, one in enumerate((db, own)):
            # On a machine with other work the writer's turn may take longer than that.
            while not one.in_transaction:
                with contextlib.suppress(sqlite3.OperationalError):
                    await one.execute(INSERT, (number,))
            await one.commit()
        assert await values(db) == [0, 1]


async def test_connections_with_transactions_of_every_kind_take_turns(file):
    await (await made(file)).close()

    async def counts(kind: int) -> None:
        async with aiosqlite.connect(file, timeout=3600, isolation_level=None) as db:
            if kind % 2:
                await db.execute("PRAGMA cache_size = 77")
            for turn in range(20):
                await db.execute("BEGIN IMMEDIATE" if turn % 2 else "BEGIN EXCLUSIVE")
                [(count,)] = await db.execute_fetchall("SELECT count(*) FROM t")
                await db.executemany(INSERT, [(count,)])
                await db.execute("COMMIT" if turn % 3 else "END")

    await asyncio.gather(*(counts(kind) for kind in range(6)))
    async with aiosqlite.connect(file) as db:
        assert await values(db) == list(range(120))


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
