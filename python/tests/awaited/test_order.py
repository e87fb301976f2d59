"""A call takes its place in line, and what it was given, when it is made; what is changed afterwards is not seen."""

from __future__ import annotations

import array
import asyncio
from contextlib import asynccontextmanager

import pytest

import flatwater
from flatwater import blocking

# So many take longer than a slice.
MANY = 30_000
INSERT = "INSERT INTO t (a) VALUES (?)"


@asynccontextmanager
async def opened(file, within):
    """A database, or a transaction or a connection of it."""
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        if within == "database":
            yield db
        elif within == "transaction":
            async with db.transaction() as tx:
                yield tx
        else:
            async with db.connection() as connection:
                yield connection


WITHIN = pytest.mark.parametrize("within", ["database", "transaction", "connection"])


def calls(on, rows):
    """The same rows as calls of both kinds."""
    return {
        "executemany": lambda: on.executemany(INSERT, rows),
        "batch": lambda: on.batch([(INSERT, row) for row in rows]),
    }


@WITHIN
@pytest.mark.parametrize("kind", ["executemany", "batch"])
async def test_a_later_call_does_not_overtake_one_with_a_long_list(file, within, kind):
    async with opened(file, within) as on:
        rows = [(n,) for n in range(MANY)]
        await asyncio.gather(
            calls(on, rows)[kind](), on.execute(INSERT, (-1,)), on.executemany(INSERT, [(-2,)]), calls(on, rows)[kind]()
        )
        assert await on.query_values("SELECT a FROM t WHERE a < 0 ORDER BY id") == [-1, -2]
        assert await on.query_values("SELECT id FROM t WHERE a < 0") == [MANY + 1, MANY + 2]


async def test_a_commit_does_not_overtake_a_long_list_in_its_transaction(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        async with db.transaction() as tx:
            many = asyncio.create_task(tx.executemany(INSERT, [(n,) for n in range(MANY)]))
            await asyncio.sleep(0)
        assert await many == MANY == await db.query_value("SELECT count(*) FROM t")


async def test_a_long_list_is_taken_in_slices(file, other_task):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        rows = [(str(n),) for n in range(MANY)]
        async with other_task() as other:
            await db.executemany(INSERT, rows)
        assert other.turns > 3


async def test_a_list_that_is_given_up_keeps_nobody_waiting(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        rows = [(n,) for n in range(MANY)]
        many = asyncio.create_task(db.executemany(INSERT, rows))
        await asyncio.sleep(0)
        later = asyncio.create_task(db.execute(INSERT, (-1,)))
        await asyncio.sleep(0)
        many.cancel()
        await later
        assert await db.query_values("SELECT a FROM t") == [-1]
        given_up = asyncio.create_task(db.executemany(INSERT, rows))
        await asyncio.sleep(0)
        waits = asyncio.create_task(db.execute(INSERT, (-2,)))
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        assert waits.cancelled() and await given_up == MANY


async def test_a_list_that_fails_keeps_nobody_waiting(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        rows = [(n,) for n in range(MANY)] + [(object(),)]
        many, one = await asyncio.gather(
            db.executemany(INSERT, rows), db.execute(INSERT, (-1,)), return_exceptions=True
        )
        assert isinstance(many, flatwater.ProgrammingError) and f"(row {MANY})" in str(many)
        assert one.changes == 1


@pytest.mark.parametrize("within", ["database", "transaction"])
@pytest.mark.parametrize("count", [1, MANY])
@pytest.mark.parametrize("kind", ["executemany", "batch"])
@pytest.mark.parametrize("row", [list, dict, bytearray, memoryview, array.array])
async def test_what_is_changed_after_the_call_is_not_seen(file, within, count, kind, row):
    async with opened(file, within) as on:
        if row is list:
            rows = [["before"] for _ in range(count)]
        elif row is dict:
            rows = [{"a": "before"} for _ in range(count)]
        else:
            one = {bytearray: bytearray, array.array: lambda text: array.array("b", text)}.get(row, bytearray)(
                b"before"
            )
            rows = [(memoryview(one) if row is memoryview else one,) for _ in range(count)]
        insert = INSERT.replace("?", ":a") if row is dict else INSERT
        given = [(insert, one) for one in rows] if kind == "batch" else rows
        call = on.batch(given) if kind == "batch" else on.executemany(insert, given)
        for one in rows:
            if row is dict:
                one["a"] = "after"
            elif row is list:
                one[0] = "after"
            else:
                one[0][:] = array.array("b", b"after!") if row is array.array else b"after!"
        given.clear()
        await call
        before = "before" if row in (list, dict) else b"before"
        assert await on.query_one("SELECT count(*), min(a) = ?1 AND max(a) = ?1 FROM t", (before,)) == (count, 1)


@pytest.mark.parametrize("within", [False, True])
def test_a_thread_that_waits_takes_a_list_at_once(file, within):
    with blocking.connect(file) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        with db.transaction() as tx:
            rows = [[n] for n in range(MANY)]
            assert (tx if within else tx.transaction().__enter__()).executemany(INSERT, rows) == MANY
