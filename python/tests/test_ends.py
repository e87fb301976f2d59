"""Programs that end with everything under way, and threads with loops and without on one database."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from textwrap import dedent

import pytest
from test_process import run

import flatwater
from flatwater import blocking

EVERYTHING = """
    import asyncio, atexit, datetime, os, signal, sys, threading, time, warnings, flatwater
    from flatwater import blocking
    # Of calls that were never awaited, of databases that are not closed, and from 3.12 on of threads at a fork.
    warnings.simplefilter("ignore")
    ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
    NUMBERS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 100000) SELECT n FROM c"
    file, loop, open_here = sys.argv[1], None, []

    def rows_of_parameters():
        while True:
            yield (3,)

    async def listen(results):
        async for _ in results:
            await asyncio.sleep(0)

    async def begin():
        global db
        db = await flatwater.connect(file, readers=2, tuning={"close_wait": 0.01, "transaction_idle": 0.5})
        await db.execute("CREATE TABLE IF NOT EXISTS t (a)")
        await db.execute("INSERT INTO t VALUES (1)")
        snapshot = db.snapshot()
        await snapshot.__aenter__()
        stream = db.stream(NUMBERS)
        rows = aiter(await stream.__aenter__())
        await anext(rows)
        batches = await db.batches(NUMBERS).__aenter__()
        await anext(aiter(batches))
        live = await db.live("SELECT count(*) FROM t").__aenter__()
        await anext(aiter(live))
        changes = await db.live("SELECT rowid, a FROM t").changes().__aenter__()
        half_made = asyncio.create_task(db.query(NUMBERS, into=tuple))
        while True:
            tx = db.transaction()
            await tx.__aenter__()
            try:
                await tx.execute("INSERT INTO t VALUES (2)")
                break
            except flatwater.Timeout:
                pass  # This machine was busy for as long as it may be idle.
        open_here.extend([snapshot, stream, rows, batches, live, changes, tx, db.execute("INSERT INTO t VALUES (4)")])
        tasks = [half_made, asyncio.create_task(listen(live)), asyncio.create_task(listen(changes))]
        tasks += [asyncio.create_task(call) for call in [
            db.query_value(ENDLESS), db.query_value(ENDLESS), db.query_value(ENDLESS),
            db.execute("INSERT INTO t VALUES (2)"), db.executemany("INSERT INTO t VALUES (?)", rows_of_parameters()),
            db.live("SELECT a FROM t").__aenter__(), tx.query_value(ENDLESS),
        ]]
        open_here.extend(tasks)
        for _ in range(50):
            await asyncio.sleep(0)

    def wait_for_ever():
        try:
            with blocking.connect(file, readers=2, tuning={"close_wait": 0.01, "transaction_idle": 0.5}) as other:
                other.query_value(ENDLESS)
        except flatwater.Error as error:
            assert "closed" in str(error)

    def read_on():
        other = blocking.connect(file, readers=2, tuning={"close_wait": 0.01, "transaction_idle": 0.5})
        try:
            while True:
                other.query("SELECT a FROM t")
                other.query_value("SELECT count(*) FROM t")
        except flatwater.Error as error:
            assert "closed" in str(error)

    def daemons():
        for target in [wait_for_ever, read_on, read_on]:
            threading.Thread(target=target, daemon=True).start()
"""

ENDINGS = {
    "it returns": "asyncio.run(begin())",
    "it exits": """
        async def main():
            await begin()
            sys.exit(0)
        asyncio.run(main())
    """,
    "it raises": """
        async def main():
            await begin()
            raise ZeroDivisionError
        try:
            asyncio.run(main())
        except ZeroDivisionError:
            pass
    """,
    "it is interrupted": """
        async def main():
            await begin()
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            pass
    """,
    "its loop is stopped and closed": """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(begin())
        loop.close()
    """,
    "its loop is stopped and left": """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(begin())
    """,
    "another loop closes the database": """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(begin())
        loop.close()
        async def close():
            await db.close()
        asyncio.run(close())
    """,
    "everything is dropped": """
        loop = asyncio.new_event_loop()
        loop.run_until_complete(begin())
        loop.close()
        open_here.clear()
        del db, loop
    """,
    "daemon threads are at work": """
        asyncio.run(begin())
        daemons()
        time.sleep(0.05)
    """,
    "daemon threads make calls": """
        def make_calls():
            other = blocking.connect(":memory:")
            while True:
                try:
                    other.query("SELECT ? AS a", (datetime.date(2024, 2, 29),), into=lambda a: a)
                    other.batch([("SELECT ?", [datetime.time()])])
                except flatwater.Error as error:
                    assert "closed" in str(error)
        for _ in range(3):
            threading.Thread(target=make_calls, daemon=True).start()
        asyncio.run(begin())
    """,
    "a daemon thread has the loop": """
        def thread():
            asyncio.run(forever())
        async def forever():
            await begin()
            begun.set()
            await asyncio.sleep(60)
        begun = threading.Event()
        threading.Thread(target=thread, daemon=True).start()
        begun.wait()
    """,
    "a thread ends after the main one": """
        def thread():
            threading.main_thread().join()
            with blocking.connect(file, readers=2, tuning={"close_wait": 0.01, "transaction_idle": 0.5}) as other:
                assert other.query_value("SELECT min(a) FROM t") == 1
        asyncio.run(begin())
        threading.Thread(target=thread).start()
    """,
    "something uses it at the end": """
        async def use():
            for call in [db.query("SELECT 1"), flatwater.connect(file), db.execute("INSERT INTO t VALUES (5)")]:
                try:
                    await call
                except flatwater.Error as error:
                    assert "closed" in str(error) or "options" in str(error), error
        atexit.register(lambda: asyncio.run(use()))
        asyncio.run(begin())
    """,
    "a child exits": """
        async def main():
            await begin()
            daemons()
            child = os.fork()
            if child == 0:
                sys.exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        asyncio.run(main())
    """,
    "a child goes on": """
        async def main():
            await begin()
            child = os.fork()
            if child == 0:
                refused = 0
                for call in [db.query("SELECT 1"), db.execute("SELECT 1"), db.close()]:
                    try:
                        await call
                    except flatwater.ProgrammingError as error:
                        refused += "forked" in str(error)
                del open_here[:]
                os._exit(refused - 3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        asyncio.run(main())
    """,
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_ends_with_everything_under_way(file, ending):
    if "fork" in ENDINGS[ending] and not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    code, _, errors = run(f"{dedent(EVERYTHING)}\n{dedent(ENDINGS[ending])}", file)
    assert code == 0, errors
    assert not any(word in errors for word in ("panic", "Fatal", "deadlock", "Traceback")), errors
    # What was acknowledged is there, and nothing of what was under way but whole writes.
    with blocking.connect(file) as db:
        found = db.query_values("SELECT a FROM t ORDER BY a")
    assert found.count(1) == 1 and set(found) <= {1, 2, 5} and found.count(2) <= 1, found


AT_EXIT = """
    import atexit, sys, threading
    # What is registered before flatwater is imported runs after its own handler.
    @atexit.register
    def afterwards():
        assert was_refused.wait(60), "the daemon thread is not refused"
        assert has_returned, "the exit did not wait for the code that a call ran"
    import flatwater
    from flatwater import blocking
    began, was_refused, has_returned = threading.Event(), threading.Event(), []
    file = sys.argv[1]

    def slow(value):
        began.set()
        was_refused.wait(60)
        return value

    def slow_call():
        with blocking.connect(file) as db:
            db.query("SELECT 1 AS value", into=slow)
            has_returned.append(True)

    def calls():
        db = blocking.connect(":memory:")
        refused = 0
        while True:
            try:
                db.query("SELECT ?", (b"",))
            except flatwater.ProgrammingError as error:
                assert error.kind == "closed" and "closed" in str(error), error
                refused += "interpreter ends" in str(error)
                if refused == 1000:
                    was_refused.set()

    threading.Thread(target=slow_call, daemon=True).start()
    began.wait()
    threading.Thread(target=calls, daemon=True).start()
"""


def test_the_exit_waits_for_calls_that_run_python_and_refuses_those_that_come_after_it(file):
    code, _, errors = run(dedent(AT_EXIT), file)
    assert code == 0 and not errors, errors


def test_loops_and_threads_share_one_database(file):
    """Four loops in threads and four threads without, which also cancel, fail and roll back."""
    with blocking.connect(file, readers=2) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, thread INT, n INT)")
    rounds = 40
    failures: list[BaseException] = []
    insert = "INSERT INTO t (thread, n) VALUES (?, ?)"
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"

    async def with_loop(number: int) -> None:
        chance = random.Random(number)
        async with flatwater.connect(file, readers=2) as db, db.live("SELECT count(*), max(id) FROM t") as results:
            counts = []

            async def listen() -> None:
                async for rows in results:
                    counts.append(rows[0][0])

            listening = asyncio.create_task(listen())
            for n in range(rounds):
                async with db.transaction() as tx:
                    await asyncio.gather(*(tx.execute(insert, (number, n)) for _ in range(2)))
                with pytest.raises(ZeroDivisionError):
                    async with db.transaction() as tx:
                        await tx.execute(insert, (number, -1))
                        raise ZeroDivisionError
                given_up = asyncio.create_task(db.query("SELECT * FROM t a, t b", into=tuple))
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                given_up.cancel()
                await asyncio.gather(given_up, return_exceptions=True)
                async with db.stream("SELECT n FROM t WHERE thread = ? ORDER BY id", (number,)) as rows:
                    assert [row[0] async for row in rows] == [one for one in range(n + 1) for _ in range(2)]
            while not counts:
                await asyncio.sleep(0.001)
            listening.cancel()
            assert counts == sorted(counts)

    def without_loop(number: int) -> None:
        with blocking.connect(file, readers=2) as db:
            for n in range(rounds):
                with db.transaction() as tx:
                    tx.executemany(insert, [(number, n), (number, n)])
                with pytest.raises(flatwater.IntegrityError):
                    db.execute("INSERT INTO t (id) SELECT max(id) FROM t")
                with pytest.raises(flatwater.Timeout):
                    db.query(endless, timeout=1e-4)
                found = db.query_values("SELECT n FROM t WHERE thread = ? ORDER BY id", (number,))
                assert found == [one for one in range(n + 1) for _ in range(2)]

    def thread(number: int) -> None:
        try:
            asyncio.run(with_loop(number)) if number % 2 else without_loop(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    with blocking.connect(file) as db:
        assert db.query("SELECT thread, count(*) FROM t GROUP BY thread") == [
            (number, 2 * rounds) for number in range(8)
        ]
