"""Calls: that they are coroutines, when they begin, and how they end."""

from __future__ import annotations

import asyncio
import collections.abc
import gc
import os
import subprocess
import sys
import threading
import warnings

import pytest

import flatwater

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


async def test_a_call_is_a_coroutine(place):
    async with flatwater.connect(place) as db:
        call = db.query_value("SELECT 1")
        assert isinstance(call, collections.abc.Coroutine)
        assert asyncio.iscoroutine(call)
        assert (call.__name__, call.cr_running, call.cr_frame) == ("query_value", False, None)
        assert "query_value" in repr(call)
        assert await call == 1


async def test_a_call_begins_when_it_is_awaited(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        second = db.execute("INSERT INTO t VALUES (2)")
        await db.execute("INSERT INTO t VALUES (1)")
        await second
        assert await db.query("SELECT a FROM t ORDER BY rowid") == [(1,), (2,)]


async def test_a_call_that_is_never_awaited_warns_and_does_nothing(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        with pytest.warns(RuntimeWarning, match="flatwater.execute' was never awaited"):
            db.execute("INSERT INTO t VALUES (1)")
            gc.collect()
        assert await db.query_value("SELECT count(*) FROM t") == 0


async def test_a_call_that_is_closed_does_not_warn(place):
    async with flatwater.connect(place) as db:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            db.query_value("SELECT 1").close()


async def test_a_call_is_awaited_once(place):
    async with flatwater.connect(place) as db:
        call = db.query_value("SELECT 1")
        assert await call == 1
        with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
            await call


async def test_a_call_in_flight_is_not_awaited_twice(file):
    async with flatwater.connect(file) as db:
        call = db.query_value(ENDLESS)
        first = asyncio.create_task(call)
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="is being awaited already"):
            await call
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first


async def test_calls_work_with_gather_tasks_and_wait_for(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        done = await asyncio.gather(*(db.execute("INSERT INTO t VALUES (?)", (n,)) for n in range(300)))
        assert [one.changes for one in done] == [1] * 300
        assert await asyncio.wait_for(db.query_value("SELECT count(*) FROM t"), 60) == 300
        task = asyncio.create_task(db.query_value("SELECT sum(a) FROM t"))
        assert await task == sum(range(300))


async def test_an_argument_that_is_wrong_is_raised_by_the_await(place):
    async with flatwater.connect(place) as db:
        call = db.query_value("SELECT ?", (object(),))
        with pytest.raises(flatwater.ProgrammingError, match="a value of type object cannot be bound"):
            await call


async def test_a_call_that_is_cancelled_before_it_began_does_nothing(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        task = asyncio.create_task(db.execute("INSERT INTO t VALUES (1)"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await db.query_value("SELECT count(*) FROM t") == 0


async def test_cancelling_ends_a_read_that_runs(file):
    async with flatwater.connect(file, readers=1) as db:
        task = asyncio.create_task(db.query_value(ENDLESS))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await db.query_value("SELECT 1") == 1


async def test_a_timeout_of_the_loop_ends_a_read_that_runs(file):
    async with flatwater.connect(file, readers=1) as db:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(db.query_value(ENDLESS), 0.01)
        assert await db.query_value("SELECT 1") == 1


async def test_a_timeout_of_the_call_ends_a_read_that_runs(file):
    async with flatwater.connect(file) as db:
        with pytest.raises(flatwater.Timeout) as caught:
            await db.query_value(ENDLESS, timeout=0.01)
        assert isinstance(caught.value, TimeoutError)
        assert (caught.value.kind, caught.value.applied, caught.value.retryable) == ("timeout", "no", True)


async def test_a_write_that_waits_is_withdrawn_when_its_task_is_cancelled(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            task = asyncio.create_task(db.execute("INSERT INTO t VALUES (1)"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await tx.execute("INSERT INTO t VALUES (2)")
        assert await db.query("SELECT a FROM t") == [(2,)]


async def test_a_write_that_runs_is_waited_for_when_its_task_is_cancelled(file):
    """Whatever the cancellation meets, the write is done when the task goes on, or it never will be."""
    slow = "INSERT INTO t SELECT count(*) FROM c"
    numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 300000)"
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        for pause in [0, 0.001, 0.005, 0.02, 0.05]:
            before = await db.query_value("SELECT count(*) FROM t")
            task = asyncio.create_task(db.execute(f"{numbers} {slow}"))
            await asyncio.sleep(pause)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            after = await db.query_value("SELECT count(*) FROM t")
            await db.execute("INSERT INTO t VALUES (0)")
            assert await db.query_value("SELECT count(*) FROM t") == after + 1
            assert after in (before, before + 1)


HOLDS = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


async def test_a_write_that_waits_for_the_lock_of_another_process_is_ended(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(file)], **pipes) as other:
        assert other.stdout.readline() == b"held\n"
        async with flatwater.connect(file, busy_timeout=3600) as db:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(db.execute("INSERT INTO t VALUES (1)"), 0.05)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(db.transaction().__aenter__(), 0.05)
            with pytest.raises(flatwater.Timeout):
                await db.execute("INSERT INTO t VALUES (1)", timeout=0.05)
            other.communicate()
            await db.execute("INSERT INTO t VALUES (2)")
            assert await db.query("SELECT a FROM t") == [(2,)]


async def test_a_tight_loop_of_awaits_lets_other_tasks_run(place, other_task):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        for _ in range(10):
            await db.query_optional("SELECT id FROM t WHERE id = 1")
        async with other_task() as other:
            while other.turns < 20:
                await db.query_optional("SELECT id FROM t WHERE id = 1")


async def test_several_loops_in_several_threads_share_one_database(file):
    db = await flatwater.connect(file)
    await db.execute("CREATE TABLE t (a)")

    def thread(number):
        async def work():
            for n in range(50):
                await asyncio.gather(*(db.execute("INSERT INTO t VALUES (?)", (number,)) for _ in range(4)))
                assert await db.query_value("SELECT count(*) >= ? FROM t WHERE a = ?", (4 * (n + 1), number))

        asyncio.run(work())

    await asyncio.gather(*(asyncio.to_thread(thread, number) for number in range(4)))
    assert await db.query_value("SELECT count(*) FROM t") == 800
    await db.close()


def test_loops_that_end_leave_no_descriptor_behind(file):
    async def use():
        async with flatwater.connect(file) as db:
            await db.execute("CREATE TABLE IF NOT EXISTS t (a)")

    def descriptors():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("descriptors cannot be counted here")
    for _ in range(3):
        asyncio.run(use())
    before = descriptors()
    for _ in range(20):
        asyncio.run(use())
    assert descriptors() <= before + 2


def test_loops_of_many_threads_come_and_go(file):
    """Each makes its mailbox while others do, and end."""
    from flatwater import blocking

    with blocking.connect(file, tuning={"inline": False}) as opened:
        opened.execute("CREATE TABLE t (a)")

        def thread():
            async def work():
                async with flatwater.connect(file, tuning={"inline": False}) as db:
                    await db.execute("INSERT INTO t VALUES (1)")

            for _ in range(20):
                asyncio.run(work())

        threads = [threading.Thread(target=thread) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert opened.query_value("SELECT count(*) FROM t") == 80


async def test_a_task_may_be_cancelled_at_any_point(file):
    """Whatever point it is, the next call works, and nothing that was cancelled is half done."""
    async with flatwater.connect(file, tuning={"inline": False}) as db:
        await db.execute("CREATE TABLE t (a)")

        async def work():
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (1)")
                await tx.executemany("INSERT INTO t VALUES (?)", [(2,), (3,)])
                async with tx.transaction() as nested:
                    await nested.execute("INSERT INTO t VALUES (4)")
                async with tx.stream("SELECT a FROM t") as rows:
                    async for _ in rows:
                        pass

        for turns in range(40):
            task = asyncio.create_task(work())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert await db.query_value("SELECT count(*) % 4 FROM t") == 0
        done = await asyncio.wait_for(work(), 60)
        assert done is None
        assert db.stats()["writes_waiting"] == 0
