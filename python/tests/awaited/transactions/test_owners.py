"""Which task a transaction belongs to, and for how long: until it has ended, whoever ends it."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

import flatwater
from flatwater import blocking

WAITS = "inside its own transaction"


async def test_a_transaction_that_has_ended_belongs_to_no_task(place):
    async with flatwater.connect(place) as db:
        await db.executescript("CREATE TABLE t (a); CREATE TABLE one (a UNIQUE)")
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(flatwater.IntegrityError):
                await tx.execute("INSERT OR ROLLBACK INTO one VALUES (1), (1)")
            await db.execute("INSERT INTO t VALUES (2)")
            # What it asks for is so.
            await tx.rollback()
            await tx.rollback()
        with pytest.raises(flatwater.ProgrammingError, match="SQLite rolled back the transaction"):
            async with db.transaction() as tx:
                with pytest.raises(flatwater.IntegrityError):
                    await tx.execute("INSERT OR ROLLBACK INTO one VALUES (1), (1)")
                async with db.transaction() as another:
                    with pytest.raises(flatwater.ProgrammingError, match=WAITS):
                        await db.execute("INSERT INTO t VALUES (3)")
                    await another.execute("INSERT INTO t VALUES (4)")
        # What the block undid may be undone again, and what it kept may not.
        await tx.rollback()
        with pytest.raises(flatwater.ProgrammingError, match="finished"):
            await another.rollback()
        assert await db.query_values("SELECT a FROM t") == [2, 4]


async def test_a_transaction_that_was_idle_for_too_long_belongs_to_no_task(place):
    async with flatwater.connect(place, tuning={"transaction_idle": 0.05}) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            while tx.in_transaction:
                await asyncio.sleep(0.001)
            await db.execute("INSERT INTO t VALUES (1)")
            await tx.rollback()
        assert await db.query_values("SELECT a FROM t") == [1]


async def test_a_block_whose_commit_failed_is_undone(place):
    async with flatwater.connect(place) as db:
        await db.executescript(
            "CREATE TABLE p (id INTEGER PRIMARY KEY);CREATE TABLE c (p REFERENCES p DEFERRABLE INITIALLY DEFERRED)"
        )
        tx = db.transaction()
        with pytest.raises(flatwater.IntegrityError):
            async with tx:
                await tx.execute("INSERT INTO c VALUES (1)")
        await tx.rollback()


async def test_a_transaction_that_is_dropped_belongs_to_no_task(place):
    async with flatwater.connect(place, tuning={"transaction_idle": 3600}) as db:
        await db.execute("CREATE TABLE t (a)")
        tx = db.transaction()
        await tx.__aenter__()
        await tx.execute("INSERT INTO t VALUES (1)")
        del tx
        await db.execute("INSERT INTO t VALUES (2)")
        assert await db.query_values("SELECT a FROM t") == [2]


async def test_a_task_that_is_abandoned_in_its_block_takes_its_transaction_along(place):
    async with flatwater.connect(place, tuning={"transaction_idle": 3600}) as db:
        await db.execute("CREATE TABLE t (a)")

        async def work(inside: asyncio.Event) -> None:
            async with db.transaction() as tx, tx.transaction() as nested:
                await nested.execute("INSERT INTO t VALUES (1)")
                inside.set()
                await asyncio.get_running_loop().create_future()

        inside = asyncio.Event()
        loop = asyncio.get_running_loop()
        told: list[str] = []
        loop.set_exception_handler(lambda _, context: told.append(context["message"]))
        task = asyncio.create_task(work(inside))
        await inside.wait()
        gone = weakref.ref(task)
        del task
        while gone() is not None:
            gc.collect()
            await asyncio.sleep(0)
        await db.execute("INSERT INTO t VALUES (2)")
        assert await db.query_values("SELECT a FROM t") == [2]
        assert told == ["Task was destroyed but it is pending!"]


async def test_a_transaction_belongs_to_its_task_whichever_handle_is_used(file):
    async with flatwater.connect(file) as db, flatwater.connect(file) as another:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(flatwater.ProgrammingError, match=WAITS):
                await another.execute("INSERT INTO t VALUES (2)")
            with blocking.connect(file) as threads, pytest.raises(flatwater.ProgrammingError, match=WAITS):
                threads.execute("INSERT INTO t VALUES (3)")
        assert await another.query_values("SELECT a FROM t") == [1]


async def test_every_call_that_would_wait_for_the_transaction_of_its_task_is_refused(place, tmp_path):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO t VALUES (1)")
            calls = [
                db.execute("DELETE FROM t"),
                db.executemany("INSERT INTO t VALUES (?)", [(1,)]),
                db.executescript("DELETE FROM t"),
                db.batch(["DELETE FROM t"]),
                db.query("DELETE FROM t RETURNING a"),
                db.migrate([("0001", "DELETE FROM t")]),
                db.checkpoint(),
            ]
            if place == ":memory:":
                calls += [db.query("SELECT 1"), db.backup(tmp_path / "copy.db"), db.batches("SELECT 1").__anext__()]
            for call in calls:
                with pytest.raises(flatwater.ProgrammingError, match=f"{WAITS}|async with"):
                    await call
        assert await db.query_values("SELECT a FROM t") == [1]
