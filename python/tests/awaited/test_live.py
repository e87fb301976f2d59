"""Live queries."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import weakref

import pytest

import flatwater


async def next_of(results):
    return await asyncio.wait_for(results.__anext__(), 60)


async def test_a_result_comes_again_when_it_changed_and_only_then(place):
    async with flatwater.connect(place) as db:
        await db.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, a); CREATE TABLE other (a)")
        async with db.live("SELECT a FROM t WHERE id < ? ORDER BY id", (10,)) as results:
            assert await next_of(results) == []
            await db.execute("INSERT INTO other VALUES (1)")
            await db.execute("INSERT INTO t VALUES (1, 'x')")
            assert await next_of(results) == [("x",)]
            await db.execute("INSERT INTO t VALUES (11, 'y')")
            await db.execute("UPDATE t SET a = 'z' WHERE id = 1")
            assert await next_of(results) == [("z",)]
        assert db.stats()["live"]["deliveries"] == 3


async def test_a_loop_over_results_can_be_left_and_ends_with_the_database(file):
    db = await flatwater.connect(file)
    await db.execute("CREATE TABLE t (a)")
    async with db.live("SELECT count(*) AS n FROM t") as results:
        async for rows in results:
            if rows[0]["n"] == 3:
                break
            await db.execute("INSERT INTO t VALUES (1)")
    while db.stats()["live"]["subscribers"]:
        await asyncio.sleep(0.001)
    async with db.live("SELECT count(*) AS n FROM t") as results:
        assert await next_of(results) == [(3,)]
        await db.close()
        with pytest.raises(StopAsyncIteration):
            await next_of(results)


async def test_an_await_that_is_cancelled_loses_no_result(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.live("SELECT count(*) FROM t") as results:
            assert await next_of(results) == [(0,)]
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(results.__anext__(), 0.001)
            await db.execute("INSERT INTO t VALUES (1)")
            assert await next_of(results) == [(1,)]


async def test_changes_are_rows_that_were_inserted_updated_and_deleted(place):
    async with flatwater.connect(place) as db:
        await db.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        async with db.live("SELECT id, a FROM t").changes() as changes:
            first = await next_of(changes)
            assert first.full == [(1, "x"), (2, "y")] and first.inserted == []
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (3, 'z')")
                await tx.execute("UPDATE t SET a = 'new' WHERE id = 1")
                await tx.execute("DELETE FROM t WHERE id = 2")
            change = await next_of(changes)
            assert (change.full, change.inserted, change.deleted) == (None, [(3, "z")], [(2, "y")])
            [(old, new)] = change.updated
            assert (old, new["a"]) == ((1, "x"), "new")
            assert repr(change) == "<Change: 1 inserted, 1 updated, 1 deleted>"


async def test_a_large_change_whose_await_is_cancelled_comes_again(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 15000) SELECT n + ? FROM c"
        async with db.live("SELECT id FROM t").changes() as changes:
            found = aiter(changes)
            assert (await anext(found)).full == []
            cancelled = 0
            for number in range(6):
                task = asyncio.ensure_future(anext(found))
                while task._fut_waiter is None:
                    await asyncio.sleep(0)
                await db.execute(f"INSERT INTO t {numbers}", (number * 15_000,))
                # It waits for the change, and is then being made.
                while task._fut_waiter is not None:
                    await asyncio.sleep(0)
                for _ in range(number // 2):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                cancelled += task.cancelled()
                change = await anext(found) if task.cancelled() else task.result()
                assert [change.inserted[0], change.inserted[-1]] == [
                    (number * 15_000 + 1,),
                    (number * 15_000 + 15_000,),
                ]
                assert len(change.inserted) == 15_000
            assert cancelled


async def test_the_results_of_a_group_are_of_one_point_in_time(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        queries = [("SELECT a FROM t WHERE a > ?", (0,)), ("SELECT count(*) FROM t", None)]
        async with db.live_group(queries) as results:
            for n in range(1, 5):
                both = await next_of(results)
                assert type(both) is tuple
                rows, count = both
                assert count == [(len(rows),)] == [(n - 1,)]
                await db.execute("INSERT INTO t VALUES (?)", (n,))


async def test_a_commit_of_another_process_is_seen(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.live("SELECT count(*) FROM t") as results:
            assert await next_of(results) == [(0,)]
            insert = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('INSERT INTO t VALUES (1)')"
            insert += "; c.commit()"
            other = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", insert, str(file)], check=True)
            assert other.returncode == 0
            assert await next_of(results) == [(1,)]


async def test_a_query_that_is_wrong_is_raised_by_the_loop(place):
    async with flatwater.connect(place) as db:
        async with db.live("SELECT * FROM nowhere") as results:
            with pytest.raises(flatwater.OperationalError, match="no such table"):
                await next_of(results)
        with pytest.raises(flatwater.ProgrammingError, match="use `async with`"):
            async for _ in db.live("SELECT 1"):
                pass


async def test_a_row_that_did_not_change_is_the_same_object(place):
    async with flatwater.connect(place) as db:
        await db.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        async with db.live("SELECT id, a FROM t ORDER BY id") as results:
            [first, second] = await next_of(results)
            await db.execute("UPDATE t SET a = 'z' WHERE id = 2")
            [again, changed] = await next_of(results)
            assert again is first and changed == (2, "z") and changed is not second
            await db.execute("INSERT INTO t VALUES (0, 'new')")
            rows = await next_of(results)
            assert rows[1] is first and rows[-1] is changed and rows[0] is rows[0]


async def test_rows_that_were_dropped_are_not_kept(place):
    async with flatwater.connect(place) as db:
        await db.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        async with db.live("SELECT id FROM t") as results:
            await next_of(results)
            for n in range(300):
                await db.execute("INSERT INTO t VALUES (?)", (n,))
                rows = await next_of(results)
                seen = weakref.ref(rows[n])
                del rows
                assert seen() is None
