"""What programs written for aiosqlite do. Each workload answers the microseconds of one operation.

Both sides are in WAL mode with `synchronous = NORMAL`. Owns the workloads on the surface of aiosqlite.
"""

import asyncio
import importlib
from contextlib import asynccontextmanager
from time import perf_counter

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL, value REAL NOT NULL)"
INSERT = "INSERT INTO t (name, value) VALUES (?, ?)"
ROWS = 1_000


@asynccontextmanager
async def opened(side, file, **options):
    """A connection of a side."""
    if side == "flatwater":
        module, options = importlib.import_module("flatwater.aiosqlite"), {**options, "durability": "normal"}
    else:
        module = importlib.import_module("aiosqlite")
    async with module.connect(file, **options) as db:
        if side == "aiosqlite":
            await db.execute("PRAGMA journal_mode = WAL")
            await db.execute("PRAGMA synchronous = NORMAL")
        yield db


@asynccontextmanager
async def filled(side, file):
    """A connection to a table with rows."""
    async with opened(side, file) as db:
        await db.execute(TABLE)
        await db.executemany(INSERT, [(f"name {row}", row * 1.5) for row in range(ROWS)])
        await db.commit()
        yield db


def expect(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


async def total(db):
    async with db.execute("SELECT count(*), sum(value) FROM t") as cursor:
        return await cursor.fetchone()


async def fetchone(side, file, count):
    """SELECT of one row, fetchone"""
    count *= 200
    async with filled(side, file) as db:
        began = perf_counter()
        for at in range(count):
            async with db.execute("SELECT id, name FROM t WHERE id = ?", (at % ROWS + 1,)) as cursor:
                expect(await cursor.fetchone(), (at % ROWS + 1, f"name {at % ROWS}"))
        return (perf_counter() - began) / count * 1e6


async def insert(side, file, count):
    """INSERT of one row in a transaction"""
    count *= 200
    async with opened(side, file) as db:
        await db.execute(TABLE)
        began = perf_counter()
        for at in range(count):
            await db.execute(INSERT, (f"name {at}", 1.0))
        spent = perf_counter() - began
        await db.commit()
        expect(await total(db), (count, float(count)))
        return spent / count * 1e6


async def update(side, file, count):
    """UPDATE of one row, commit"""
    count *= 100
    async with filled(side, file) as db:
        before = (await total(db))[1]
        began = perf_counter()
        for at in range(count):
            await db.execute("UPDATE t SET value = value + 1 WHERE id = ?", (at % ROWS + 1,))
            await db.commit()
        spent = perf_counter() - began
        expect(await total(db), (ROWS, before + count))
        return spent / count * 1e6


async def fetchall(side, file, count):
    """SELECT of 1,000 rows, fetchall"""
    count *= 20
    async with filled(side, file) as db:
        began = perf_counter()
        for _ in range(count):
            async with db.execute("SELECT id, name, value FROM t") as cursor:
                expect(len(await cursor.fetchall()), ROWS)
        return (perf_counter() - began) / count * 1e6


async def transactions(side, file, count):
    """a transaction of 30 connections with 10 each"""
    async with filled(side, file) as db:
        before = (await total(db))[1]

        async def work(number):
            async with opened(side, file, isolation_level=None, timeout=60) as own:
                for _ in range(10):
                    await own.execute("BEGIN IMMEDIATE")
                    async with own.execute("SELECT value FROM t WHERE id = ?", (number + 1,)) as cursor:
                        [value] = await cursor.fetchone()
                    await own.execute("UPDATE t SET value = ? WHERE id = ?", (value + 1, number + 1))
                    await own.commit()

        began = perf_counter()
        await asyncio.gather(*(work(number) for number in range(30)))
        spent = perf_counter() - began
        expect(await total(db), (ROWS, before + 300))
        return spent / 300 * 1e6


WORKLOADS = {work.__name__: work for work in (fetchone, insert, update, fetchall, transactions)}
