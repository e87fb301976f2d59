"""Nested transactions: which block a call is made in, and that nothing undoes an open one but its own end."""

from __future__ import annotations

import asyncio

import pytest

import flatwater
from flatwater import blocking

INSERT = "INSERT INTO t VALUES (?)"
OTHER = "a nested transaction is open"


async def rows(db: flatwater.Database) -> list[int]:
    return await db.query_values("SELECT a FROM t ORDER BY a")


@pytest.fixture(params=["runs", "raises"])
def ends(request: pytest.FixtureRequest) -> type[Exception] | None:
    """How the inner block ends."""
    return ZeroDivisionError if request.param == "raises" else None


async def test_the_inner_block_is_current_also_for_the_outer_transaction(place, ends):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            await tx.execute(INSERT, (1,))
            try:
                async with tx.transaction() as step:
                    await step.execute(INSERT, (2,))
                    assert await tx.query_value("SELECT count(*) FROM t") == 2
                    # The form of asyncpg and of Django.
                    await tx.execute(INSERT, (3,))
                    await tx.executemany(INSERT, [(4,)])
                    await tx.executescript("INSERT INTO t VALUES (5)")
                    await tx.batch([(INSERT, (6,))])
                    async with tx.stream("SELECT a FROM t") as stream:
                        assert [row async for row in stream] == [(n,) for n in range(1, 7)]
                    async with tx.transaction():
                        await tx.execute(INSERT, (7,))
                        await step.execute(INSERT, (8,))
                    with pytest.raises(ZeroDivisionError):
                        async with tx.transaction():
                            await step.execute(INSERT, (9,))
                            raise ZeroDivisionError
                    assert await tx.query_value("SELECT count(*) FROM t") == 8
                    if ends:
                        raise ends
            except ZeroDivisionError:
                pass
            await tx.execute(INSERT, (10,))
        assert await rows(db) == ([1, 10] if ends else [*range(1, 9), 10])


async def test_tasks_that_the_inner_block_starts_are_in_it(place, ends):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            try:
                async with tx.transaction():
                    await asyncio.gather(*(tx.execute(INSERT, (n,)) for n in range(5)))
                    await asyncio.wait_for(tx.execute(INSERT, (5,)), 60)
                    if ends:
                        raise ends
            except ZeroDivisionError:
                pass
        assert await rows(db) == ([] if ends else [*range(6)])


async def test_of_concurrent_blocks_the_later_one_is_refused_and_the_earlier_one_is_kept(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        is_open, may_end = asyncio.Event(), asyncio.Event()

        async def first(tx: flatwater.Transaction) -> None:
            async with tx.transaction() as step:
                await step.execute(INSERT, (1,))
                is_open.set()
                await may_end.wait()
                await tx.execute(INSERT, (2,))

        async def later(tx: flatwater.Transaction) -> None:
            async with tx.transaction() as step:
                await step.execute(INSERT, (3,))

        async with db.transaction() as tx:
            task = asyncio.create_task(first(tx))
            await is_open.wait()
            calls = [later(tx), tx.execute(INSERT, (4,)), tx.query("SELECT a FROM t"), tx.executemany(INSERT, [(5,)])]
            for call in calls:
                with pytest.raises(flatwater.ProgrammingError, match=OTHER):
                    await call
            with pytest.raises(flatwater.ProgrammingError, match=OTHER):
                async with tx.batches("SELECT a FROM t") as batches:
                    await batches.next_batch()
            may_end.set()
            await task
            await later(tx)
            await tx.execute(INSERT, (6,))
        assert await rows(db) == [1, 2, 3, 6]


async def test_gather_of_blocks_keeps_those_that_are_not_refused(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")

        async def step(tx: flatwater.Transaction, n: int) -> int:
            async with tx.transaction() as step:
                await step.execute(INSERT, (n,))
                await asyncio.sleep(0)
                await tx.execute(INSERT, (n + 10,))
            return n

        async with db.transaction() as tx:
            done = await asyncio.gather(*(step(tx, n) for n in range(5)), return_exceptions=True)
            kept = [n for n in done if isinstance(n, int)]
            assert kept and all(isinstance(one, (int, flatwater.ProgrammingError)) for one in done)
        assert await rows(db) == sorted([*kept, *(n + 10 for n in kept)])


async def test_the_end_of_an_outer_block_undoes_what_another_task_has_open_in_it_which_learns_of_that(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        is_open, may_end = asyncio.Event(), asyncio.Event()

        async def inner(step: flatwater.Transaction) -> None:
            async with step.transaction() as innermost:
                await innermost.execute(INSERT, (1,))
                is_open.set()
                await may_end.wait()

        async with db.transaction() as tx:
            async with tx.transaction() as step:
                task = asyncio.create_task(inner(step))
                await is_open.wait()
            may_end.set()
            with pytest.raises(flatwater.ProgrammingError, match="nested transaction is finished"):
                await task
            await tx.execute(INSERT, (2,))
        assert await rows(db) == [2]


async def test_an_outer_transaction_that_is_undone_inside_of_the_inner_block_ends_both(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            async with tx.transaction() as step:
                await step.execute(INSERT, (1,))
                await tx.rollback()
                await step.rollback()
                await db.execute(INSERT, (2,))
            assert not tx.in_transaction
        assert await rows(db) == [2]


async def test_a_task_that_outlives_the_inner_block_is_in_the_outer_one(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            has_ended = asyncio.Event()

            async def later() -> None:
                await has_ended.wait()
                await tx.execute(INSERT, (1,))

            async with tx.transaction():
                task = asyncio.create_task(later())
            has_ended.set()
            await task
        assert await rows(db) == [1]


async def test_transactions_of_two_databases_nest_in_each_other(tmp_path):
    async with flatwater.connect(tmp_path / "a.db") as a, flatwater.connect(tmp_path / "b.db") as b:
        for db in (a, b):
            await db.execute("CREATE TABLE t (a)")
        async with a.transaction() as in_a, b.transaction() as in_b:
            async with in_a.transaction():
                with pytest.raises(ZeroDivisionError):
                    async with in_b.transaction():
                        await in_a.execute(INSERT, (1,))
                        await in_b.execute(INSERT, (2,))
                        raise ZeroDivisionError
                await in_b.execute(INSERT, (3,))
        assert (await rows(a), await rows(b)) == ([1], [3])


def test_threads_have_nested_blocks_of_the_same_kind(place):
    with blocking.connect(place) as db:
        db.execute("CREATE TABLE t (a)")
        with db.transaction() as tx:
            with pytest.raises(ZeroDivisionError), tx.transaction() as step:
                tx.execute(INSERT, (1,))
                with tx.transaction():
                    step.execute(INSERT, (2,))
                raise ZeroDivisionError
            with tx.transaction() as step:
                step.execute(INSERT, (3,))
                assert tx.query_value("SELECT count(*) FROM t") == 1
                with tx.stream("SELECT a FROM t") as stream:
                    assert list(stream) == [(3,)]
                with tx.transaction():
                    tx.execute(INSERT, (4,))
            tx.execute(INSERT, (5,))
        with db.transaction() as tx:
            with tx.transaction():
                tx.execute(INSERT, (6,))
                tx.rollback()
            assert not tx.in_transaction
        assert db.query_values("SELECT a FROM t ORDER BY a") == [3, 4, 5]
