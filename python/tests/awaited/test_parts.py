"""Lists of long results, which are made while the query still runs."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sqlite3

import pytest

import flatwater
from flatwater import blocking

NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {})"
ENDLESS = "SELECT count(*) FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c)"
# The first part is complete, and there is never a second one.
GOES_ON = f"{NUMBERS.format(5_000)} SELECT n FROM c UNION ALL {ENDLESS}"
# The first part has 1,536 cells, each other one 3,072.
LENGTHS = [0, 1, 511, 512, 513, 767, 768, 769, 1_535, 1_536, 1_537, 2_560, 4_607, 4_608, 4_609, 10_000]


@dataclasses.dataclass
class Triple:
    n: int
    text: str
    real: float


def of_width(width: int, length: int) -> str:
    columns = ["n", "'text ' || n AS text", "n / 2.0 AS real"][:width]
    return f"{NUMBERS.format(max(length, 1))} SELECT {', '.join(columns)} FROM c WHERE {int(length > 0)}"


@pytest.mark.parametrize("width", [1, 2, 3])
async def test_a_list_has_each_row_once_and_in_order_whatever_its_length(width, file):
    plain = sqlite3.connect(":memory:")
    async with flatwater.connect(file) as db:
        for length in LENGTHS:
            sql = of_width(width, length)
            expected = plain.execute(sql).fetchall()
            assert len(expected) == length
            assert await db.query(sql, into=tuple) == expected
            assert await db.query_values(sql) == [row[0] for row in expected]
            names = ["n", "text", "real"][:width]
            assert await db.query(sql, into=dict) == [dict(zip(names, row)) for row in expected]
            async with db.snapshot() as snapshot, db.transaction() as tx:
                assert await snapshot.query(sql, into=tuple) == await tx.query(sql, into=tuple) == expected
        if width == 3:
            assert await db.query(sql, into=Triple) == [Triple(*row) for row in expected]
    with blocking.connect(file) as db:
        for length in LENGTHS:
            sql = of_width(width, length)
            assert db.query(sql, into=tuple) == plain.execute(sql).fetchall()
    plain.close()


async def test_long_texts_arrive_in_parts_of_few_rows(file):
    texts = f"{NUMBERS.format(300)} SELECT n, hex(zeroblob(n * 50)) FROM c"
    async with flatwater.connect(file) as db:
        rows = await db.query(texts, into=tuple)
        assert rows == [(n, "0" * n * 100) for n in range(1, 301)]


class Seen:
    """Notes the rows that are made, and fails at one of them."""

    def __init__(self, fails_at: int = -1) -> None:
        self.last = 0
        self.fails_at = fails_at

    def __call__(self, n: int) -> int:
        self.last = n
        return n // (n != self.fails_at)

    async def reach(self, row: int) -> None:
        while self.last < row:
            await asyncio.sleep(0)


async def works(db: flatwater.Database) -> None:
    """The only reader is free, and its next result is whole."""
    assert await db.query_values(f"{NUMBERS.format(5_000)} SELECT n FROM c") == list(range(1, 5_001))


async def test_rows_are_made_while_the_query_runs_and_a_cancelled_one_frees_its_reader(file):
    async with flatwater.connect(file, readers=1) as db:
        seen = Seen()
        task = asyncio.create_task(db.query(GOES_ON, into=seen))
        # All parts but the last, in which the query is stuck.
        await seen.reach(4_608)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen.last == 4_608
        await works(db)


async def test_a_list_is_cancelled_while_it_is_made_and_its_query_runs(file):
    numbers = f"{NUMBERS.format(300_000)} SELECT n FROM c UNION ALL {ENDLESS}"
    async with flatwater.connect(file, readers=1) as db:
        seen = Seen()
        task = asyncio.create_task(db.query(numbers, into=seen))
        await seen.reach(100_000)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert seen.last < 300_000
        await works(db)


async def test_a_timeout_ends_a_query_of_which_rows_are_there(file):
    async with flatwater.connect(file, readers=1) as db:
        seen = Seen()
        with pytest.raises(flatwater.Timeout):
            await db.query(GOES_ON, into=seen, timeout=0.2)
        await works(db)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(db.query(GOES_ON, into=seen), 0.2)
        await works(db)


@pytest.mark.parametrize("row", [1, 1_536, 1_537, 4_000])
async def test_a_class_that_fails_ends_the_query(row, file):
    async with flatwater.connect(file, readers=1) as db:
        seen = Seen(fails_at=row)
        with pytest.raises(ZeroDivisionError):
            await db.query(GOES_ON, into=seen)
        assert seen.last == row
        await works(db)
    with blocking.connect(file, readers=1) as db, pytest.raises(ZeroDivisionError):
        db.query(GOES_ON, into=Seen(fails_at=row))


class Rung(Exception):
    """The alarm rang."""


def ring(*_: object) -> None:
    raise Rung


async def test_a_signal_interrupts_a_thread_that_waits_for_a_long_list(file):
    # The reader is faster, so that there always is a next part. No code of Python runs meanwhile.
    columns = ", ".join(f"n + {column} AS c{column}" for column in range(60))
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with blocking.connect(file, readers=1) as db:
            with pytest.raises(Rung):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                db.query(f"{NUMBERS.format(-1)} SELECT {columns} FROM c", into=dict, timeout=10)
            assert db.query_values(f"{NUMBERS.format(5_000)} SELECT n FROM c") == list(range(1, 5_001))
    finally:
        signal.signal(signal.SIGALRM, before)


async def test_two_columns_of_one_name_end_the_query(file):
    async with flatwater.connect(file, readers=1) as db:
        with pytest.raises(flatwater.ProgrammingError, match="two columns are named"):
            await db.query(f"{NUMBERS.format(5_000)} SELECT n, n FROM c UNION ALL SELECT 0, ({ENDLESS})", into=dict)
        await works(db)


async def test_an_error_after_the_first_rows_is_raised_and_nothing_is_returned(file):
    fails = f"{NUMBERS.format(5_000)} SELECT n FROM c UNION ALL SELECT abs(-9223372036854775807 - 1)"
    async with flatwater.connect(file, readers=1) as db:
        for into in [tuple, dict, Seen()]:
            with pytest.raises(flatwater.OperationalError, match="integer overflow"):
                await db.query(fails, into=into)
            await works(db)
    with blocking.connect(file) as db, pytest.raises(flatwater.OperationalError, match="integer overflow"):
        db.query(fails, into=tuple)


async def test_rows_of_a_write_come_when_it_is_committed(file):
    numbers = f"{NUMBERS.format(10_000)} SELECT n FROM c"
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (n PRIMARY KEY CHECK (n < 10000))")
        seen = Seen()
        insert = f"INSERT INTO t SELECT n FROM ({numbers}) WHERE n < ? RETURNING n"
        with pytest.raises(flatwater.IntegrityError):
            await db.query(insert, (10_001,), into=seen)
        assert seen.last == 0
        assert await db.query(insert, (10_000,), into=tuple) == [(n,) for n in range(1, 10_000)]


async def test_a_result_in_parts_is_one_query_for_loggers(file):
    async with flatwater.connect(file) as db:
        logged: list[flatwater.StatementEvent] = []
        db.add_statement_listener(logged.append)
        await db.query(of_width(3, 10_000), into=tuple)
        await asyncio.sleep(0)
        assert [(query.rows, query.ran_on) for query in logged] == [(10_000, "reader")]
        assert db.stats()["calls"] == {"query": db.stats()["calls"]["query"]}


async def test_many_lists_at_once_share_the_readers_and_the_loop(file, other_task):
    """Lists that were made whole would give the other task a turn each at most, however long they are. How many turns
    there are in a list depends on the machine, so the lists grow until there must be some."""
    async with flatwater.connect(file, readers=2) as db:
        for size in [10_000, 40_000, 160_000]:
            async with other_task() as other:
                lists = await asyncio.gather(*(db.query(of_width(3, size + n), into=tuple) for n in range(20)))
            assert [len(rows) for rows in lists] == [size + n for n in range(20)]
            assert all(rows[-1][0] == len(rows) for rows in lists)
            if other.turns > 40:
                return
    raise AssertionError(f"the loop is not shared: {other.turns} turns")
