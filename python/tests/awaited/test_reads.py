"""Streams and batches."""

from __future__ import annotations

import asyncio

import pytest

import flatwater
from flatwater import blocking

NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c LIMIT 10000) SELECT n FROM c"


async def test_a_stream_has_all_rows_in_their_order(place):
    async with flatwater.connect(place) as db, db.stream(NUMBERS) as rows:
        assert [row["n"] async for row in rows] == list(range(10_000))


async def test_a_stream_that_is_left_gives_its_reader_back(file):
    async with flatwater.connect(file, tuning={"extra_readers": 1}) as db:
        for _ in range(3):
            async with db.stream(NUMBERS) as rows:
                async for row in rows:
                    if row["n"] == 5:
                        break
            assert db.stats()["readers_held"] == 0 or await held(db, 0)


async def test_rows_are_taken_one_by_one_and_a_loop_goes_on_where_the_last_one_was_left(file):
    async with flatwater.connect(file) as db:
        async with db.stream(NUMBERS) as rows:
            assert (await anext(rows))["n"] == 0 and (await anext(aiter(rows)))["n"] == 1
            async for row in rows:
                if row["n"] == 5000:
                    break
            assert [row["n"] async for row in rows] == list(range(5001, 10_000))
            assert await anext(rows, None) is None
        with pytest.raises(flatwater.ProgrammingError, match="async with"):
            await anext(db.stream(NUMBERS))
        async with db.batches(NUMBERS) as batches:
            assert (await anext(batches))[0]["n"] == 0
        assert await anext(batches, None) is None
    with blocking.connect(file) as db:
        with db.stream(NUMBERS) as stream, db.batches(NUMBERS) as batches:
            assert next(stream)["n"] == 0 and next(batches)[0]["n"] == 0
            for one in stream:
                if one["n"] == 5000:
                    break
            assert [one["n"] for one in stream] == list(range(5001, 10_000))
            assert next(stream, None) is None
            assert 0 < sum(len(batch) for batch in batches) < 10_000
            assert next(batches, None) is None


def test_a_stream_that_is_dropped_within_its_loop_gives_its_reader_back(file):
    with blocking.connect(file, tuning={"extra_readers": 1}) as db:
        for _ in range(3):
            assert next(iter(db.stream(NUMBERS, timeout=60)))["n"] == 0


async def held(db, number):
    while db.stats()["readers_held"] != number:
        await asyncio.sleep(0.001)
    return True


async def test_batches_have_all_rows_of_one_point_in_time(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (n)")
        await db.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(5000)))
        seen = []
        async with db.batches("SELECT n FROM t WHERE n >= ?", (10,)) as batches:
            async for rows in batches:
                assert len(rows) > 0
                seen.extend(row["n"] for row in rows)
                await db.execute("DELETE FROM t")
            assert await batches.next_batch() is None
        assert seen == list(range(10, 5000))


async def test_an_await_that_is_cancelled_loses_no_rows(file):
    async with flatwater.connect(file) as db, db.batches(NUMBERS) as batches:
        seen = []
        while True:
            task = asyncio.create_task(batches.next_batch())
            await asyncio.sleep(0)
            task.cancel()
            try:
                rows = await task
            except asyncio.CancelledError:
                rows = await batches.next_batch()
            if rows is None:
                break
            seen.extend(row[0] for row in rows)
        assert seen == list(range(10_000))


async def test_a_loop_without_a_block_is_refused(place):
    async with flatwater.connect(place) as db:
        with pytest.raises(flatwater.ProgrammingError, match="use `async with`"):
            async for _ in db.stream("SELECT 1"):
                pass
        with pytest.raises(flatwater.ProgrammingError, match="use `async with`"):
            async for _ in db.batches("SELECT 1"):
                pass


async def test_errors_of_a_stream_are_raised_by_the_loop(place):
    async with flatwater.connect(place) as db:
        with pytest.raises(flatwater.OperationalError, match="no such table"):
            async with db.stream("SELECT * FROM nowhere") as rows:
                async for _ in rows:
                    pass


async def test_transactions_and_snapshots_stream_too(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (n)")
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO t VALUES (1)")
            async with tx.stream("SELECT n FROM t") as rows:
                assert [row[0] async for row in rows] == [1]
        async with db.snapshot() as snapshot:
            await db.execute("INSERT INTO t VALUES (2)")
            async with snapshot.stream("SELECT n FROM t") as rows:
                assert [row[0] async for row in rows] == [1]


async def test_a_long_stream_lets_other_tasks_run(file, other_task):
    async with flatwater.connect(file) as db:
        async with other_task() as other, db.stream(NUMBERS.replace("10000", "100000")) as rows:
            async for row in rows:
                row["n"]
        assert other.turns > 10
