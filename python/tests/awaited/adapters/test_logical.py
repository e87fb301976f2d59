"""What becomes of the transaction of a logical connection, and of its reads."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sqlite3
import threading

import pytest
from logical_connections import INSERT, LARGE, has_its_own, made, until, values

import flatwater
import flatwater.aiosqlite as aiosqlite
from flatwater._native import TransactionGuard

# The idle limit.


@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
@pytest.mark.parametrize("end", ["commit", "execute", "rollback"])
async def test_the_end_of_an_idle_transaction_is_told_once(file, own, end):
    await (await made(file)).close()
    async with aiosqlite.connect(file, tuning={"transaction_idle": 0.5}) as db:
        if own:
            await db.execute("CREATE TEMP TABLE own (a)")
        assert has_its_own(db) is own
        await db.execute(INSERT, (1,))
        await until(lambda: not db.in_transaction)
        call = {"commit": db.commit, "rollback": db.rollback, "execute": lambda: db.execute(INSERT, (2,))}[end]
        if end == "rollback":
            await call()
        else:
            with pytest.raises(sqlite3.OperationalError, match="idle|not used"):
                await call()
        assert not db.in_transaction
        await db.commit()
        assert await values(db) == []


async def test_the_idle_limit_is_five_minutes(file):
    async with await made(file) as db:
        assert db._core._place.options["tuning"]["transaction_idle"] == 300


# Cancellation.


async def test_a_cancelled_call_that_waits_does_nothing(file):
    one, other = await made(file), await made(file, timeout=3600)
    await one.execute(INSERT, (1,))
    waits = asyncio.ensure_future(other.execute(INSERT, (2,)))
    behind = asyncio.ensure_future(other.execute(INSERT, (3,)))
    await asyncio.sleep(0)
    waits.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waits
    await one.commit()
    await behind
    await other.commit()
    assert await values(one) == [1, 3]
    await one.close()
    await other.close()


@pytest.mark.parametrize("own", [False, True])
async def test_a_write_that_is_cancelled_while_its_transaction_begins_holds_the_writer_for_nobody(file, own):
    db = await made(file, tuning={"inline": False})
    other = await made(file, timeout=3600)
    if own:
        await db.execute("CREATE TEMP TABLE temporary (a)")
    kept = []
    for turns in range(150):
        begins = asyncio.ensure_future(db.execute(INSERT, (1,)))
        for _ in range(turns):
            await asyncio.sleep(0)
        begins.cancel()
        await asyncio.wait([begins])
        # Nor does an exception that somebody keeps.
        kept.append(begins)
        if not db.in_transaction:
            await other.execute(INSERT, (2,))
            await other.rollback()
        await db.rollback()
    await db.close()
    await other.close()


async def test_a_transaction_that_begins_when_it_was_given_up_is_rolled_back(file):
    async with await made(file) as db, await made(file, timeout=3600) as other:
        guard = TransactionGuard()
        guard.abandon()
        with pytest.raises(flatwater.ProgrammingError, match="the transaction is finished"):
            await db._core.on._begin(None, guard)
        await other.execute(INSERT, (1,))
        await other.commit()


async def test_a_write_that_runs_is_waited_for_and_its_transaction_stays_open(file):
    async with await made(file) as db:
        await db.execute(INSERT, (1,))
        runs = asyncio.ensure_future(db.execute(f"INSERT INTO t SELECT x FROM ({LARGE})"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for _ in range(3):
            runs.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await runs
        assert db.in_transaction
        assert (await db.execute_fetchall("SELECT count(*) FROM t")) == [(200001,)]
        await db.commit()
        assert (await db.execute_fetchall("SELECT count(*) FROM t")) == [(200001,)]


async def test_a_transaction_survives_its_task(file):
    async with await made(file) as db:

        async def dies() -> None:
            await db.execute(INSERT, (1,))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await asyncio.create_task(dies())
        assert db.in_transaction
        await db.commit()
        assert await values(db) == [1]


async def test_dropping_a_connection_rolls_back_with_a_warning(file):
    other = await made(file, timeout=3600)
    db = await made(file)
    await db.execute(INSERT, (1,))
    with pytest.warns(ResourceWarning, match="was deleted before being closed"):
        del db
        gc.collect()
    await other.execute(INSERT, (2,))
    await other.commit()
    assert await values(other) == [2]
    await other.close()


# Reads.


async def test_a_half_read_cursor_blocks_no_writer_and_reads_on_from_its_snapshot(file):
    async with await made(file) as db, await made(file, timeout=3600) as other:
        await db.executescript(f"CREATE TABLE large AS {LARGE}")
        cursor = await db.execute("SELECT x FROM large ORDER BY x")
        assert await cursor.fetchone() == (1,)
        await other.execute("DELETE FROM large")
        await other.commit()
        await db.execute(INSERT, (1,))
        await db.commit()
        assert len(await cursor.fetchall()) == 199_999
        assert await db.execute_fetchall("SELECT count(*) FROM large") == [(0,)]


async def test_in_a_transaction_a_result_is_read_at_once_and_a_commit_waits_for_no_cursor(file):
    async with await made(file) as db, await made(file, timeout=3600) as other:
        await db.execute(INSERT, (1,))
        cursor = await db.execute(LARGE)
        assert await cursor.fetchone() == (1, "text")
        await db.commit()
        await other.execute(INSERT, (2,))
        await other.commit()
        assert len(await cursor.fetchall()) == 199_999


async def test_a_snapshot_that_was_given_up_raises_at_the_next_fetch(file):
    await (await made(file)).close()
    async with aiosqlite.connect(file, tuning={"stream_idle": 0.01}) as db:
        pause, told = 0.05, None
        while told is None:
            try:
                cursor = await db.execute(LARGE)
                assert await cursor.fetchone() == (1, "text")
            except sqlite3.OperationalError as error:
                assert "no rows were fetched" in str(error), error
                continue  # This machine was busy for as long.
            await asyncio.sleep(pause)
            try:
                # It had the rows in time.
                assert len(await cursor.fetchall()) == 199_999
                pause *= 2
            except sqlite3.Error as error:
                told = error
        assert isinstance(told, sqlite3.OperationalError), told
        assert await db.execute_fetchall("SELECT 1") == [(1,)]


async def test_tasks_may_read_one_cursor(file):
    async with await made(file) as db:
        cursor = await db.execute(LARGE)
        parts = await asyncio.gather(*(cursor.fetchmany(60_000) for _ in range(4)))
        assert [len(part) for part in parts] == [60_000, 60_000, 60_000, 20_000]
        assert sorted(row[0] for part in parts for row in part) == list(range(1, 200_001))


async def test_a_large_result_is_made_in_slices(file, other_task):
    async with await made(file) as db:
        cursor = await db.execute(LARGE)
        async with other_task() as other:
            assert len(await cursor.fetchall()) == 200_000
            assert other.turns > 20


async def test_reads_of_an_idle_connection_do_not_wait_for_each_other(file):
    async with await made(file) as db:
        slow = asyncio.ensure_future(db.execute_fetchall(f"SELECT count(*) FROM ({LARGE}) a, ({LARGE}) b"))
        await asyncio.sleep(0)
        assert await db.execute_fetchall("SELECT 1") == [(1,)]
        assert not slow.done()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow


@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
async def test_a_statement_is_interrupted(file, own):
    async with await made(file) as db:
        if own:
            await db.execute("PRAGMA cache_size = 7")
        runs = asyncio.ensure_future(db.execute(f"SELECT count(*) FROM ({LARGE}) a, ({LARGE}) b"))
        while not runs.done():
            await asyncio.sleep(0.001)
            await db.interrupt()
        with pytest.raises(sqlite3.OperationalError, match="interrupted") as raised:
            await runs
        assert raised.value.sqlite_errorname == "SQLITE_INTERRUPT"
        assert await db.execute_fetchall("SELECT 1") == [(1,)]


async def test_an_insert_answers_its_own_rowid_and_not_that_of_another_task(file):
    async with await made(file, tuning={"inline": False}) as db:
        rows = await asyncio.gather(*(db.execute_insert(INSERT, (n,)) for n in range(20)))
        assert [rowid for (rowid,) in rows] == [
            rowid for (rowid,) in await db.execute_fetchall("SELECT rowid FROM t ORDER BY a")
        ]


async def test_a_setting_that_commits_is_refused_where_it_would_hold_the_loop_for_itself(file):
    async with aiosqlite.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        await db.execute("INSERT INTO t VALUES (1)")
        entered, go_on = threading.Event(), threading.Event()
        async with aiosqlite.connect(file) as other:
            await other.create_function("held", 0, lambda: (entered.set(), go_on.wait(30))[1])
            await other.execute("BEGIN")
            held = asyncio.create_task(other.execute_fetchall("SELECT held()"))
            await asyncio.to_thread(entered.wait)
            with pytest.raises(flatwater.ProgrammingError, match="would wait for itself"):
                other.isolation_level = None
            assert other.isolation_level == "" and other.in_transaction
            go_on.set()
            assert await held == [(1,)]
            other.isolation_level = None
            assert not other.in_transaction and other.isolation_level is None
        db.isolation_level = None
        assert not db.in_transaction


async def test_a_later_call_waits_for_rows_that_are_still_taken(file, other_task):
    async with aiosqlite.connect(file) as db, other_task() as other:
        await db.execute("CREATE TABLE t (a)")
        taken = 0

        def rows():
            nonlocal taken
            while other.turns < 3:
                taken += 1
                yield (taken,)

        many = asyncio.create_task(db.executemany("INSERT INTO t VALUES (?)", rows()))
        await asyncio.sleep(0)
        assert await db.execute_fetchall("SELECT count(*) FROM t") == [(taken,)]
        await many


async def test_a_list_of_rows_is_that_of_the_call(file, other_task):
    async with aiosqlite.connect(file) as db, other_task() as other:
        await db.execute("CREATE TABLE t (a)")
        rows = [(n,) for n in range(200_000)]
        many = asyncio.create_task(db.executemany("INSERT INTO t VALUES (?)", rows))
        await asyncio.sleep(0)
        rows.clear()
        await many
        assert other.turns and await db.execute_fetchall("SELECT count(*) FROM t") == [(200_000,)]


async def test_a_task_that_leaves_while_its_rows_are_taken_keeps_nobody_waiting(file):
    async with aiosqlite.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        many = asyncio.create_task(db.executemany("INSERT INTO t VALUES (?)", ((n,) for n in itertools.count())))
        await asyncio.sleep(0)
        later = asyncio.create_task(db.execute_fetchall("SELECT count(*) FROM t"))
        await asyncio.sleep(0)
        many.cancel()
        assert await later == [(0,)]


@pytest.mark.parametrize("kind", ["file", ":memory:", "sqlite3"])
async def test_a_target_of_a_backup_that_is_cancelled_lives_on_as_it_was(file, tmp_path, kind):
    path = ":memory:" if kind == ":memory:" else tmp_path / "target.db"
    async with aiosqlite.connect(file) as source:
        await source.execute("CREATE TABLE t (a)")
        await source.execute("INSERT INTO t VALUES (zeroblob(400000))")
        await source.commit()
        target = sqlite3.connect(path) if kind == "sqlite3" else await aiosqlite.connect(path)
        created = target.execute("CREATE TABLE old (a)")
        if kind != "sqlite3":
            await created
        began, cancelled = threading.Event(), threading.Event()

        def progress(*_):
            began.set()
            cancelled.wait(30)

        backup = asyncio.create_task(source.backup(target, pages=1, sleep=0, progress=progress))
        await asyncio.to_thread(began.wait)
        backup.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        cancelled.set()
        with pytest.raises(asyncio.CancelledError):
            await backup
        names = "SELECT name FROM sqlite_schema"
        if kind == "sqlite3":
            assert target.execute(names).fetchall() == [("old",)]
            target.close()
        else:
            assert await target.execute_fetchall(names) == [("old",)]
            await source.backup(target)
            assert await target.execute_fetchall(names) == [("t",)]
            await target.close()
