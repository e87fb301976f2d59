"""Tasks of a library that is not asyncio, and loops that watch no sockets, as Windows' default one."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Coroutine
from pathlib import Path

import pytest
import trio
from conftest import Unwatching

import flatwater
from flatwater import blocking


def test_a_task_of_trio_is_told_that_calls_are_of_asyncio(file):
    async def connect() -> None:
        await flatwater.connect(file)

    with pytest.raises(flatwater.ProgrammingError, match="no asyncio event loop.*trio.to_thread") as caught:
        trio.run(connect)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert not file.exists(), "nothing has begun"


def test_a_write_without_a_loop_is_refused_before_it_begins(file):
    with blocking.connect(file) as db:
        db.execute("CREATE TABLE t (a)")

    async def keep() -> flatwater.Database:
        return await flatwater.connect(file)

    async def write(db: flatwater.Database) -> None:
        await db.execute("INSERT INTO t VALUES (1)")

    db = asyncio.run(keep())
    with pytest.raises(flatwater.ProgrammingError, match="no asyncio event loop"):
        trio.run(write, db)
    with pytest.raises(flatwater.ProgrammingError, match="no asyncio event loop"):
        write(db).send(None)
    with blocking.connect(file) as other:
        assert other.query_value("SELECT count(*) FROM t") == 0
    asyncio.run(db.close())


def test_the_way_in_the_hint_works(file):
    async def ask() -> object:
        with blocking.connect(file) as db:
            return await trio.to_thread.run_sync(db.query_value, "SELECT 5")

    assert trio.run(ask) == 5


def stopping(file):
    """A loop that runs only as long as something is waited for, what waits, and a database with a table."""
    loop = asyncio.new_event_loop()
    wait = loop.run_until_complete
    db = wait(flatwater.connect(file))
    wait(db.execute("CREATE TABLE t (a)"))
    return loop, wait, db


def test_a_block_that_is_left_where_no_loop_runs_keeps_its_error_and_is_rolled_back(file):
    loop, wait, db = stopping(file)
    inserted = asyncio.Event()

    async def stays():
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO t VALUES (1)")
            inserted.set()
            await asyncio.Event().wait()

    task = loop.create_task(stays())
    wait(inserted.wait())
    time.sleep(0.01)
    with pytest.raises(ValueError, match="of the block"):
        task.get_coro().throw(ValueError("of the block"))
    assert wait(db.query_value("SELECT count(*) FROM t")) == 0
    assert wait(db.execute("INSERT INTO t VALUES (2)")).changes == 1
    task.cancel()
    wait(asyncio.gather(task, return_exceptions=True))
    wait(db.close())
    loop.close()


def test_a_commit_that_is_refused_without_a_loop_is_a_rollback(file):
    loop, wait, db = stopping(file)
    block = db.transaction()

    async def begins():
        tx = await block.__aenter__()
        await tx.execute("INSERT INTO t VALUES (1)")

    wait(begins())
    time.sleep(0.01)
    with pytest.raises(flatwater.ProgrammingError, match="no asyncio event loop"):
        block.__aexit__(None, None, None).send(None)
    assert not block.in_transaction
    assert wait(db.query_value("SELECT count(*) FROM t")) == 0
    wait(db.close())
    loop.close()


def run_unwatching(test: Coroutine[object, object, None]) -> None:
    loop = Unwatching()
    try:
        loop.run_until_complete(asyncio.wait_for(test, 60))
    finally:
        loop.close()


def bells() -> set[str]:
    """The threads that wake loops."""
    names = (task / "comm" for task in Path("/proc/self/task").iterdir())
    return {name.parent.name for name in names if name.read_text().startswith("flatwater-bell")}


def test_a_loop_that_watches_no_sockets_is_woken(file):
    async def use() -> None:
        async with flatwater.connect(file) as db:
            await db.execute("CREATE TABLE t (a)")
            await asyncio.gather(*(db.execute("INSERT INTO t VALUES (?)", (n,)) for n in range(1_000)))
            async with db.live("SELECT count(*) FROM t") as results:
                assert (await anext(results))[0][0] == 1_000
                await db.execute("DELETE FROM t WHERE a = 0")
                assert (await anext(results))[0][0] == 999
            slow = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(db.query(slow), 0.05)
            with pytest.raises(flatwater.IntegrityError):
                await db.executescript("CREATE UNIQUE INDEX u ON t (a); INSERT INTO t VALUES (1)")

    run_unwatching(use())


def test_the_thread_that_wakes_a_loop_ends_with_it(file):
    before = bells()
    woken_by = []

    async def use() -> None:
        async with flatwater.connect(file) as db:
            assert await db.query_value("SELECT 1") == 1
            woken_by.append(len(bells() - before))

    run_unwatching(use())
    assert woken_by == [1]
    # A loop's inbox is kept until its thread uses another one.
    asyncio.run(use())
    gc.collect()
    end = time.monotonic() + 60
    while bells() - before:
        assert time.monotonic() < end, "a thread outlives its loop"
        time.sleep(0.001)


def test_loops_of_several_threads_are_woken_each_for_its_own_calls(file):
    with blocking.connect(file) as db:
        db.execute("CREATE TABLE t (a)")
    failed = []

    async def use() -> None:
        async with flatwater.connect(file) as db:
            await asyncio.gather(*(db.execute("INSERT INTO t VALUES (1)") for _ in range(100)))

    def run() -> None:
        try:
            run_unwatching(use())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with blocking.connect(file) as db:
        assert db.query_value("SELECT count(*) FROM t") == 400
