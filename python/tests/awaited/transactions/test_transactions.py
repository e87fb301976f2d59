"""Transactions, nested ones, and snapshots."""

from __future__ import annotations

import asyncio

import pytest

import flatwater


async def test_a_transaction_commits_at_its_end_and_rolls_back_on_an_error(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO t VALUES (1)")
            assert await tx.query_value("SELECT count(*) FROM t") == 1
            assert tx.in_transaction
        assert not tx.in_transaction
        with pytest.raises(ZeroDivisionError):
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (2)")
                raise ZeroDivisionError
        assert await db.query("SELECT a FROM t") == [(1,)]


async def test_a_nested_transaction_is_undone_alone(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(ZeroDivisionError):
                async with tx.transaction() as nested:
                    await nested.execute("INSERT INTO t VALUES (2)")
                    raise ZeroDivisionError
            async with tx.transaction() as nested:
                await nested.execute("INSERT INTO t VALUES (3)")
        assert await db.query("SELECT a FROM t") == [(1,), (3,)]


async def test_a_transaction_whose_task_is_cancelled_is_rolled_back(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        inside = asyncio.Event()

        async def work():
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (1)")
                inside.set()
                await asyncio.sleep(3600)

        task = asyncio.create_task(work())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await db.execute("INSERT INTO t VALUES (2)")
        assert await db.query("SELECT a FROM t") == [(2,)]


async def test_a_transaction_that_waits_for_another_can_be_cancelled(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")

        async def work():
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (1)")

        async with db.transaction():
            task = asyncio.create_task(work())
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await work()
        assert await db.query("SELECT a FROM t") == [(1,)]


async def test_the_task_of_a_transaction_does_not_wait_for_itself(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            with pytest.raises(flatwater.ProgrammingError, match="inside its own transaction"):
                await db.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(flatwater.ProgrammingError, match="inside its own transaction"):
                async with db.transaction():
                    pass
            await tx.execute("INSERT INTO t VALUES (2)")
            other = asyncio.create_task(db.execute("INSERT INTO t VALUES (3)"))
        await other
        assert await db.query("SELECT a FROM t") == [(2,), (3,)]


async def test_a_transaction_is_used_within_its_block(place):
    async with flatwater.connect(place) as db:
        tx = db.transaction()
        with pytest.raises(flatwater.ProgrammingError, match="this is not open"):
            await tx.execute("CREATE TABLE t (a)")
        async with tx:
            await tx.execute("CREATE TABLE t (a)")
        with pytest.raises(flatwater.ProgrammingError, match="finished"):
            await tx.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(flatwater.ProgrammingError, match="used once"):
            async with tx:
                pass


async def test_an_idle_transaction_is_rolled_back_and_says_so(place):
    async with flatwater.connect(place, tuning={"transaction_idle": 0.05}) as db:
        await db.execute("CREATE TABLE t (a)")
        with pytest.raises(flatwater.OperationalError, match="was not used for") as caught:
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (1)")
                while tx.in_transaction:
                    await asyncio.sleep(0.01)
                await tx.execute("INSERT INTO t VALUES (2)")
        assert (caught.value.kind, caught.value.retryable, caught.value.applied) == ("expired", False, None)
        assert await db.query_value("SELECT count(*) FROM t") == 0


async def test_a_deferred_constraint_fails_the_commit(place):
    async with flatwater.connect(place) as db:
        await db.executescript(
            "CREATE TABLE p (id INTEGER PRIMARY KEY);CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)"
        )
        with pytest.raises(flatwater.IntegrityError):
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO c VALUES (1)")
        assert await db.query_value("SELECT count(*) FROM c") == 0


async def test_a_snapshot_sees_one_point_in_time_and_does_not_write(file):
    async with flatwater.connect(file) as db:
        await db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        async with db.snapshot() as snapshot:
            await db.execute("INSERT INTO t VALUES (2)")
            assert await snapshot.query_value("SELECT count(*) FROM t") == 1
            with pytest.raises(flatwater.ProgrammingError):
                await snapshot.execute("INSERT INTO t VALUES (3)")
        assert await db.query_value("SELECT count(*) FROM t") == 2
