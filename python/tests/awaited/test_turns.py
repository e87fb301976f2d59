"""A loop over what is there at once lets other tasks run, whatever it is that is there."""

import contextlib
import sqlite3
import threading

import pytest

import flatwater
from flatwater import aiosqlite, blocking

ROWS = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT {}) SELECT n FROM n"


class Watched:
    """An await. What it yields without a future is a turn that it gives to others; all else is a wait."""

    def __init__(self, turns, of):
        self._turns = turns
        self._of = of

    def __await__(self):
        steps = self._of.__await__()
        while True:
            try:
                waits_for = steps.send(None)
            except StopIteration as done:
                return done.value
            before = self._turns.other.turns
            yield waits_for
            if waits_for is None:
                assert self._turns.other.turns > before
                self._turns.given += 1


class Turns:
    """The turns that the awaits of a loop give to another task."""

    def __init__(self, other):
        self.other = other
        self.given = 0

    async def until_many(self, step):
        """Repeats the step until it has given many turns."""
        self.given = 0
        for _ in range(1_000_000):
            await Watched(self, step())
            if self.given >= 10:
                return
        raise AssertionError("the other task starves")


@pytest.fixture
def turns(other_task):
    """Turns, and another task that gets them: `async with turns() as turns`."""

    @contextlib.asynccontextmanager
    async def make():
        async with other_task() as other:
            yield Turns(other)

    return make


@contextlib.contextmanager
def changing(file):
    """Changes rows in another thread."""
    is_over = threading.Event()

    def write():
        with blocking.connect(file) as db:
            while not is_over.is_set():
                db.execute("UPDATE t SET a = a + 1")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


async def test_a_loop_over_live_results(file, turns):
    async with flatwater.connect(file) as db, turns() as others:
        await db.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 0)")
        with changing(file):
            live = db.live("SELECT id, a FROM t")
            async with live, live.changes() as changes:
                await others.until_many(live.__anext__)
                await others.until_many(changes.__anext__)


async def test_a_loop_over_small_results_in_parts(place, turns):
    async with flatwater.connect(place) as db, turns() as others:

        async def batches():
            async with db.batches("SELECT 1") as parts:
                assert [len(part) async for part in parts] == [1]

        async def stream():
            async with db.stream("SELECT 1") as rows:
                assert [row[0] async for row in rows] == [1]

        await others.until_many(batches)
        await others.until_many(stream)
        async with db.batches("SELECT 1") as parts:
            await parts.next_batch()
            await others.until_many(parts.next_batch)


async def test_a_loop_over_the_rows_of_a_stream(place, turns):
    async with flatwater.connect(place) as db, turns() as others:
        async with db.stream(ROWS.format(10_000_000)) as rows:
            await others.until_many(rows.__anext__)


async def test_a_loop_over_problems_and_over_the_lines_of_a_dump(turns):
    async with flatwater.connect(":memory:") as db, turns() as others:
        await db.executescript(f"CREATE TABLE t (a); INSERT INTO t {ROWS.format(9000)}")

        async def dump():
            async for _ in db.iterdump():
                pass

        async def check():
            async for _ in db.integrity_check():
                pass

        await others.until_many(dump)
        await others.until_many(check)


async def test_a_loop_of_calls_that_fail_at_once(file, turns):
    async with turns() as others:
        async with flatwater.connect(file) as db:

            async def refused():
                with pytest.raises(flatwater.ProgrammingError, match="cannot be bound"):
                    await db.execute("SELECT ?", (object(),))

            await others.until_many(refused)
            async with db.transaction() as tx:
                pass

            async def over():
                with pytest.raises(flatwater.ProgrammingError, match="finished"):
                    await tx.rollback()

            await others.until_many(over)

        async def closed():
            with pytest.raises(flatwater.ProgrammingError):
                await db.execute("SELECT 1")

        await others.until_many(closed)


async def test_a_loop_of_short_transactions_and_snapshots(file, turns):
    async with flatwater.connect(file) as db, turns() as others:
        await db.execute("CREATE TABLE t (a)")

        async def transaction():
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (1)")

        await others.until_many(transaction)

        async def snapshot():
            async with db.snapshot() as snapshot:
                await snapshot.query("SELECT a FROM t LIMIT 1")

        await others.until_many(snapshot)
        async with db.connection() as own:

            async def by_text():
                await own.execute("BEGIN")
                await own.execute("INSERT INTO t VALUES (1)")
                await own.execute("COMMIT")

            await others.until_many(by_text)


async def test_a_loop_over_the_rows_of_a_cursor(file, turns):
    async with aiosqlite.connect(file) as db, turns() as others:
        cursor = await db.execute("SELECT 1")

        async def fetchone():
            nonlocal cursor
            if await cursor.fetchone() is None:
                cursor = await db.execute(ROWS.format(30_000))

        async def fetchmany():
            nonlocal cursor
            if not await cursor.fetchmany(3):
                cursor = await db.execute(ROWS.format(30_000))

        await others.until_many(fetchone)
        await others.until_many(fetchmany)
        async for chunk in chunks(db):
            await others.until_many(chunk)


async def chunks(db):
    """Loops over rows, with chunks that are small and large."""
    for db._iter_chunk_size in (10, 100_000):
        cursor = await db.execute(ROWS.format(100_000))
        rows = aiter(cursor)
        yield rows.__anext__


async def test_a_loop_of_work_that_has_nothing_to_wait_for(file, turns):
    async with aiosqlite.connect(file) as db, turns() as others:
        await others.until_many(db.commit)
        await others.until_many(lambda: db.execute(""))
        await db.execute("BEGIN")

        async def fails():
            with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
                await db.execute("BEGIN")

        await others.until_many(fails)
