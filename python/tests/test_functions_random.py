"""Functions in Python beside everything else that a program does with a database at the same time: nothing waits for
itself, and every result is right."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
import time

import pytest
from conftest import Sum

import flatwater
from flatwater import blocking

ROWS = 40


class Planted(Exception):
    """Raised by a function."""


class Traffic:
    """A database, and what tasks and threads do with it."""

    def __init__(self, chance):
        self.chance = chance
        self.dropped = []

    def same(self, value):
        """Returns its argument, and does what any code may do: it allocates, collects, and lets others run."""
        turn = self.chance.randrange(400)
        if turn == 0:
            gc.collect()
        elif turn < 4:
            time.sleep(0)
        elif turn == 5:
            # The last references to blocks that are open are dropped on a thread of the database.
            self.dropped.clear()
        return value

    def fails(self, value):
        if self.chance.randrange(3) == 0:
            raise Planted
        return value

    def register(self, functions):
        functions.create_function("same", 1, self.same, deterministic=True)
        functions.create_function("fails", 1, self.fails)
        functions.create_window_function("sum_of", 1, Sum)
        functions.create_collation("downwards", lambda one, other: (one < other) - (one > other))

    async def transaction(self, db):
        async with db.transaction() as tx:
            before = await tx.query_value("SELECT sum_of(a) FROM t")
            for number in self.chance.sample(range(ROWS), 3):
                # Short statements, which run at once, between those with functions.
                assert await tx.query_value("SELECT id FROM t WHERE id = ?", (number,)) == number
                await tx.execute("UPDATE t SET a = same(a) + 1 WHERE id = ?", (number,))
                await tx.execute("UPDATE t SET a = a - 1 WHERE id = ?", (number,))
            if self.chance.randrange(2):
                async with tx.transaction() as inner:
                    await inner.execute("UPDATE t SET name = same(name)")
            assert await tx.query_value("SELECT sum_of(a) FROM t") == before

    async def statement(self, db):
        for _ in range(3):
            assert await db.query_value("SELECT id FROM t WHERE id = 7") == 7
            await db.execute("UPDATE plain SET a = a + 1")
            await db.execute("UPDATE t SET a = same(a) WHERE id = ?", (self.chance.randrange(ROWS),))

    async def failure(self, db):
        try:
            await db.execute("UPDATE t SET a = fails(a)")
        except flatwater.OperationalError as error:
            assert isinstance(error.__cause__, Planted)

    async def stream(self, db):
        async with db.stream("SELECT same(id) FROM t ORDER BY name COLLATE downwards, id") as rows:
            assert len([row async for row in rows]) == ROWS

    async def abandoned(self, db):
        stream = db.stream("SELECT same(id) FROM t")
        rows = aiter(await stream.__aenter__())
        await anext(rows)
        self.dropped.append((stream, rows))

    async def cancelled(self, db):
        task = asyncio.ensure_future(db.query("SELECT sum_of(same(one.a)) FROM t AS one, t AS two GROUP BY two.id"))
        await asyncio.sleep(self.chance.random() * 0.002)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def replaced(self, db):
        self.register(db)

    async def work(self, db, until):
        actions = [self.transaction, self.statement, self.failure, self.stream, self.cancelled, self.replaced]
        actions += [self.abandoned] * (db._path != ":memory:")
        while time.monotonic() < until:
            await self.chance.choice(actions)(db)

    def thread(self, path, until, failures):
        try:
            with blocking.connect(path, functions=self.register, readers=3) as db:
                while time.monotonic() < until:
                    assert db.query_value("SELECT count(same(id)) FROM t") == ROWS
                    db.execute("UPDATE t SET a = same(a) WHERE id = 3")
                    with db.transaction() as tx:
                        tx.execute("UPDATE t SET name = name WHERE same(id) = 5")
        except BaseException as error:
            failures.append(error)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(3))
async def test_functions_run_beside_everything_else(place, seed):
    traffic = Traffic(random.Random(seed))
    switches = sys.getswitchinterval()
    sys.setswitchinterval(0.00005)
    failures, until = [], time.monotonic() + 1.5
    try:
        async with flatwater.connect(place, functions=traffic.register, readers=3) as db:
            await db.executescript("""
                CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER CHECK (same(a) IS a), name TEXT);
                CREATE INDEX by_name ON t (name COLLATE downwards);
                CREATE INDEX by_same ON t (same(a));
                CREATE TABLE plain (a); INSERT INTO plain VALUES (0);
            """)
            await db.executemany("INSERT INTO t VALUES (?, ?, ?)", [(n, n, f"name {n}") for n in range(ROWS)])
            threads = [threading.Thread(target=traffic.thread, args=(place, until, failures)) for _ in range(2)]
            for thread in threads * (place != ":memory:"):
                thread.start()
            await asyncio.gather(*(traffic.work(db, until) for _ in range(5)))
            for thread in threads * (place != ":memory:"):
                await asyncio.to_thread(thread.join)
            traffic.dropped.clear()
            assert await db.query_value("SELECT sum_of(a) FROM t") == sum(range(ROWS))
            assert await db.query_value("PRAGMA integrity_check") == "ok"
            assert db.stats()["replaced_connections"] == 0
            # The `sqlite3` module, which checks the file, has none of the functions.
            await db.execute("DROP TABLE t")
    finally:
        sys.setswitchinterval(switches)
    assert not failures
