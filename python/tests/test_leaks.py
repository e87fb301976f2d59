"""Nothing is left behind by many operations: no object, no reference, no memory.

Each operation runs `FLATWATER_LEAK_OPERATIONS` times, after as many that fill the caches, which have limits.
Decided by counts: of Python's memory blocks, of references to what the operation was given, and of the bytes that the
C library has given out. With a large number, `FLATWATER_TEST_SECONDS` is to be larger too.
"""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import gc
import math
import os
import sys
import tempfile
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow
import pytest

import flatwater
from flatwater import blocking

OPERATIONS = int(os.environ.get("FLATWATER_LEAK_OPERATIONS", "1000"))
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
LONG = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 2000) SELECT n, n AS m FROM c"
# Objects that are made anew, so that they are shared with nothing else.
SQL = " ".join(["SELECT", "?", "AS", "given,", "a", "FROM", "t"])
NONE = " ".join([SQL, "LIMIT", "0"])
INSERT = " ".join(["INSERT", "OR", "REPLACE", "INTO", "t", "VALUES", "(?,", "?)"])
VALUE = int("1" * 15)
TEXT = "x" * 40
ROW = (VALUE, TEXT)
NAMED = {"one": VALUE, "two": TEXT}
SHARED = [None, SQL, NONE, INSERT, VALUE, TEXT, ROW, NAMED]


@dataclasses.dataclass
class User:
    given: int
    a: int


class Heap(ctypes.Structure):
    """What `mallinfo2` of the C library returns."""

    names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = [(name, ctypes.c_size_t) for name in names]


def heap_bytes() -> int:
    """Bytes that the C library has given out, where it counts them."""
    try:
        count = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return 0
    count.restype = Heap
    heap = count()
    return int(heap.uordblks + heap.hblkhd)


class Counts:
    """What there is at one moment."""

    def __init__(self, db: object) -> None:
        gc.collect()
        shared = [
            *SHARED,
            db,
            User,
            flatwater.Row,
            flatwater.Rows,
            flatwater.Columns,
            asyncio.current_task(),
            asyncio.get_running_loop(),
        ]
        self.references = [sys.getrefcount(one) for one in shared]
        self.objects = len(gc.get_objects())
        self.blocks = sys.getallocatedblocks()
        self.bytes = heap_bytes()

    def grown_since(self, before: Counts) -> str | None:
        """Says what has grown by more than a part of the operations, if anything has."""
        few = OPERATIONS // 4
        references = [now - then for then, now in zip(before.references, self.references)]
        if max(references) >= few:
            return f"references: {references}"
        if self.objects - before.objects >= few:
            return f"{self.objects - before.objects} objects"
        if self.blocks - before.blocks >= few:
            return f"{self.blocks - before.blocks} blocks"
        # The smallest piece of memory is 32 bytes; what is cached per thread is bounded.
        if self.bytes - before.bytes >= OPERATIONS * 16 + 1_000_000:
            return f"{self.bytes - before.bytes} bytes"
        return None


async def is_flat(db: object, operation: Callable[[], Awaitable[object]], looks: int = 2000) -> None:
    tasks = len(asyncio.all_tasks())
    for _ in range(OPERATIONS):
        await operation()
    # What was given up may still be on its way.
    await settled(db, tasks)
    before = Counts(db)
    for _ in range(OPERATIONS):
        await operation()
    await settled(db, tasks)
    grown = Counts(db).grown_since(before)
    # What a thread of the engine lets go of, such as a closed database, may be gone a moment later.
    while grown and looks:
        await asyncio.sleep(0.05)
        grown = Counts(db).grown_since(before)
        looks -= 1
    assert not grown, grown


async def settled(db: object, tasks: int) -> None:
    """Waits until calls that were given up are over: what is begun now comes after them. A loop over a stream that was
    left is ended by a task of the event loop."""
    gc.collect()
    if isinstance(db, flatwater.Database):
        await db.execute("DELETE FROM t")
        await db.execute("INSERT INTO t VALUES (1, 2)")
        async with db.snapshot() as snapshot:
            assert await snapshot.query_value("SELECT count(*) FROM t") == 1
    await asyncio.sleep(0)
    while len(asyncio.all_tasks()) > tasks:
        await asyncio.sleep(0)


async def fails(expected: type[BaseException], call: Awaitable[object]) -> None:
    with pytest.raises(expected):
        await call


async def cancelled(call: Any, turns: int) -> None:
    """Cancels a task after some turns of the loop, wherever it is by then."""
    task = asyncio.ensure_future(call)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass


async def streamed(db: flatwater.Database) -> None:
    async with db.stream(SQL, (VALUE,)) as rows:
        async for row in rows:
            assert row["given"] == VALUE


async def left(db: flatwater.Database) -> None:
    """A stream whose loop is left."""
    async with db.stream("SELECT value FROM json_each('[1,2,3]')") as rows:
        async for _ in rows:
            break


async def batches(db: flatwater.Database) -> None:
    async with db.batches(SQL, (VALUE,)) as batches:
        async for rows in batches:
            assert len(rows) == 1


async def alive(db: flatwater.Database) -> None:
    async with db.live("SELECT a, b FROM t WHERE ? = ?", ROW[:1] * 2) as results:
        async for rows in results:
            assert rows
            await db.execute("UPDATE t SET b = b + 1")
            assert await anext(aiter(results)) != rows
            break


async def changed(db: flatwater.Database) -> None:
    async with db.live("SELECT rowid, a, b FROM t").changes() as changes:
        async for _ in changes:
            break


async def grouped(db: flatwater.Database) -> None:
    async with db.live_group([("SELECT a FROM t", None), ("SELECT count(*) FROM t", None)]) as results:
        async for rows, counts in results:
            assert len(rows) == counts[0][0]
            break


async def committed(db: flatwater.Database) -> None:
    async with db.transaction() as tx:
        await tx.execute(INSERT, ROW)
        async with tx.transaction() as nested:
            await nested.query(SQL, (VALUE,))


async def rolled_back(db: flatwater.Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with db.transaction() as tx:
            await tx.execute(INSERT, ROW)
            raise ZeroDivisionError


async def abandoned(db: flatwater.Database) -> None:
    """A transaction whose block is cancelled."""

    async def body() -> None:
        async with db.transaction() as tx:
            await tx.execute(INSERT, ROW)
            await asyncio.sleep(60)

    await cancelled(body(), 3)


async def snapshot(db: flatwater.Database) -> None:
    async with db.snapshot() as snapshot:
        await snapshot.query(SQL, (VALUE,))


async def backed_up(db: flatwater.Database) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await db.backup(f"{folder}/copy.db")
        await fails(flatwater.ProgrammingError, db.backup(f"{folder}/copy.db"))


async def prepared(db: flatwater.Database) -> None:
    statement = await db.prepare(SQL)
    await statement.query((VALUE,))


async def waits_twice(db: flatwater.Database) -> None:
    """Two tasks at once: one of them waits for the other's commit."""
    await asyncio.gather(db.execute(INSERT, ROW), db.execute(INSERT, ROW))


async def never_awaited(db: flatwater.Database) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        db.execute(INSERT, ROW)


async def all_of(rows: flatwater.Rows) -> None:
    assert [tuple(row) for row in rows] == rows[:] and dict(rows[0])["given"] == VALUE
    assert hash(rows[0]) and repr(rows[0]) and list(rows[0].keys())


async def touched(db: flatwater.Database) -> None:
    await all_of(await db.query(SQL, (VALUE,)))


async def columns(db: flatwater.Database) -> None:
    """What libraries do that read Arrow, by the interface of C: streams that are read, left, and not taken."""
    made = await db.query_columns(LONG)
    assert len(made["n"]) == 2000 and made.to_dict() and repr(made)
    assert pyarrow.table(made).num_rows == 2000
    reader = pyarrow.RecordBatchReader.from_stream(made)
    kept = reader.read_next_batch().column(0)
    made.__arrow_c_stream__()
    del made, reader
    assert kept[0].as_py() == 1


async def answered_with_hints(db: flatwater.Database) -> None:
    with pytest.raises(AttributeError):
        db.commit  # type: ignore[attr-defined]
    await fails(flatwater.ProgrammingError, db.query(SQL, TEXT))
    with pytest.raises(TypeError):
        await flatwater.connect(":memory:", reeders=1)  # type: ignore[call-arg]


OPERATION: dict[str, Callable[[flatwater.Database], Awaitable[object]]] = {
    "execute": lambda db: db.execute(INSERT, ROW),
    "execute with names": lambda db: db.execute("INSERT OR REPLACE INTO t VALUES (:one, :two)", NAMED),
    "executemany": lambda db: db.executemany(INSERT, [ROW, ROW]),
    "executemany of names": lambda db: db.executemany("INSERT OR REPLACE INTO t VALUES (:one, :two)", (NAMED, NAMED)),
    "batch": lambda db: db.batch([(INSERT, ROW), "DELETE FROM t RETURNING a"]),
    "executescript": lambda db: db.executescript("DELETE FROM t; INSERT INTO t VALUES (1, 2)"),
    "query": touched,
    "query into tuples": lambda db: db.query(SQL, (VALUE,), into=tuple),
    "query into dicts": lambda db: db.query(SQL, (VALUE,), into=dict),
    "query into a class": lambda db: db.query(SQL, (VALUE,), into=User),
    "query into a long list": lambda db: db.query(LONG, into=tuple),
    "a long list that is cancelled": lambda db: cancelled(
        db.query(f"{LONG} UNION ALL SELECT ({ENDLESS}), 1", into=dict), 3
    ),
    "a long list that fails": lambda db: fails(
        flatwater.OperationalError, db.query(f"{LONG} UNION ALL SELECT abs(-9223372036854775807 - 1), 1", into=dict)
    ),
    "query_one": lambda db: db.query_one(SQL, (VALUE,)),
    "query_optional": lambda db: db.query_optional(NONE, (VALUE,)),
    "query_value": lambda db: db.query_value(SQL, (VALUE,)),
    "query_optional_value": lambda db: db.query_optional_value(NONE, (VALUE,)),
    "query_values": lambda db: db.query_values(SQL, (VALUE,)),
    "query_json": lambda db: db.query_json(SQL, (VALUE,)),
    "query_columns": columns,
    "columns that are refused": lambda db: fails(flatwater.ProgrammingError, db.query_columns("SELECT 1 AS a, 2 AS a")),
    "columns that are cancelled": lambda db: cancelled(db.query_columns(f"{LONG} UNION ALL SELECT ({ENDLESS}), 1"), 3),
    "Sql": lambda db: db.query(flatwater.Sql("SELECT a FROM t WHERE a IN ").bind_list([VALUE, TEXT])),
    "stream": streamed,
    "stream that is left": left,
    "batches": batches,
    "live": alive,
    "changes": changed,
    "live_group": grouped,
    "transaction": committed,
    "transaction that fails": rolled_back,
    "snapshot": snapshot,
    "prepare": prepared,
    "stats": lambda db: asyncio.sleep(0, db.stats()),
    "checkpoint": lambda db: db.checkpoint(),
    "backup": backed_up,
    "migrate": lambda db: db.migrate([("0001_u", "CREATE TABLE IF NOT EXISTS u (a)")]),
    "two at once": waits_twice,
    "an error of SQL": lambda db: fails(flatwater.OperationalError, db.query("SELECT nothing")),
    "a row that is not there": lambda db: fails(flatwater.RowNotFound, db.query_one(NONE, (VALUE,))),
    "a constraint": lambda db: fails(flatwater.IntegrityError, db.execute("INSERT INTO t VALUES (NULL, 1)")),
    "an error in a script": lambda db: fails(flatwater.OperationalError, db.executescript("SELECT 1; nothing")),
    "a value that is refused": lambda db: fails(flatwater.ProgrammingError, db.execute(INSERT, (VALUE, math.nan))),
    "a row that is refused": lambda db: fails(OverflowError, db.executemany(INSERT, [ROW, (VALUE, 2**63)])),
    "an iterable that fails": lambda db: fails(ZeroDivisionError, db.executemany(INSERT, (1 / 0 for _ in "x"))),
    "a class that fails": lambda db: fails(TypeError, db.query("SELECT a AS age FROM t", into=User)),
    "wrong arguments": answered_with_hints,
    "a timeout": lambda db: fails(flatwater.Timeout, db.query_value(ENDLESS, timeout=1e-5)),
    "never awaited": never_awaited,
    "closed": lambda db: asyncio.sleep(0, db.execute(INSERT, ROW).close()),
    "a task that is cancelled before it begins": lambda db: cancelled(db.execute(INSERT, ROW), 0),
    "a read that is cancelled": lambda db: cancelled(db.query_value(ENDLESS), 1),
    "a write that is cancelled": lambda db: cancelled(waits_twice(db), 2),
    "rows that are cancelled": lambda db: cancelled(db.executemany(INSERT, [ROW] * 3), 1),
    "a transaction that is cancelled": abandoned,
}


@pytest.mark.parametrize("name", OPERATION)
async def test_an_operation_leaves_nothing_behind(name, file):
    async with flatwater.connect(file, readers=2) as db:
        await db.executescript("CREATE TABLE t (a PRIMARY KEY NOT NULL, b); INSERT INTO t VALUES (1, 2)")
        await is_flat(db, lambda: OPERATION[name](db))


async def test_opening_and_closing_leaves_nothing_behind(tmp_path):
    async def opened() -> None:
        async with flatwater.connect(tmp_path / "a.db") as db:
            await db.query_value("SELECT 1")

    await is_flat(None, opened)


async def test_calls_that_wait_for_their_result_leave_nothing_behind(file):
    with blocking.connect(file) as db:
        db.executescript("CREATE TABLE t (a PRIMARY KEY NOT NULL, b); INSERT INTO t VALUES (1, 2)")

        async def waits() -> None:
            with db.transaction() as tx:
                tx.execute(INSERT, ROW)
            assert db.query(SQL, (VALUE,))[0][0] == VALUE
            with pytest.raises(flatwater.OperationalError):
                db.query("SELECT nothing")
            with db.stream(SQL, (VALUE,)) as rows:
                assert len(list(rows)) == 2

        await is_flat(db, waits)


async def test_a_leak_is_noticed(file):
    kept: list[object] = []

    async def leaks() -> None:
        kept.append([VALUE])

    with pytest.raises(AssertionError):
        await is_flat(None, leaks, looks=1)
