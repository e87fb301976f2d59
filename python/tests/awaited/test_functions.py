"""SQL functions and collations in Python: their values, when calls have them, and what becomes of failures."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import sys
import threading
import time
import traceback

import pytest
from conftest import Sum

import flatwater
from flatwater import blocking


def reversed_order(one, other):
    return (one < other) - (one > other)


class Stop(BaseException):
    """No `Exception`."""


async def test_values_come_and_go_unchanged(place):
    values = [None, 1, -(2**63), 2**63 - 1, 1.5, float("inf"), "", "text", "\u00e4\U0001f600", b"", b"\0\xff", "a\0b"]
    seen = []

    def same(value):
        seen.append(value)
        return value

    async with flatwater.connect(place) as db:
        db.create_function("same", 1, same)
        for value in values:
            found = await db.query_value("SELECT same(?)", (value,))
            assert (type(found), found) == (type(value), value)
        assert [(type(one), one) for one in seen] == [(type(one), one) for one in values]
        db.create_function("every", -1, lambda *values: len(values))
        assert await db.query_one("SELECT every(), every(1), every(1, 2, 3)") == (0, 1, 3)


async def test_what_may_be_a_parameter_may_be_a_result(place):
    noon = datetime.datetime(2024, 2, 29, 12, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    for options, stored in [({}, "2024-02-29 10:00:00"), ({"datetimes": "sqlite3"}, "2024-02-29 12:00:00+02:00")]:
        async with flatwater.connect(
            place, functions=lambda functions: functions.create_function("early", 0, lambda: noon), **options
        ) as db:
            for name, result, expected in [
                ("truth", True, 1),
                ("memory", bytearray(b"ab"), b"ab"),
                ("view", memoryview(b"ab"), b"ab"),
                ("at", noon, stored),
                ("no_number", float("nan"), None),
            ]:
                db.create_function(name, 0, lambda result=result: result)
                assert await db.query_value(f"SELECT {name}()") == expected
            assert await db.query_value("SELECT early()") == stored


@pytest.mark.parametrize(
    ("result", "cause"),
    [(2**63, OverflowError), ("\ud800", UnicodeEncodeError), ([1], flatwater.ProgrammingError), (1j, flatwater.Error)],
)
async def test_a_result_that_cannot_be_stored_fails_the_statement(place, result, cause):
    async with flatwater.connect(place) as db:
        db.create_function("odd", 0, lambda: result)
        with pytest.raises(
            flatwater.OperationalError, match="the result of the function odd cannot be stored"
        ) as raised:
            await db.query("SELECT odd()")
        assert isinstance(raised.value.__cause__, cause)


async def test_a_text_that_is_not_utf_8_is_not_passed_on(place):
    async with flatwater.connect(place) as db:
        db.create_function("read", 2, lambda one, other: None)
        with pytest.raises(flatwater.OperationalError, match="its argument 2 is not UTF-8") as raised:
            await db.query("SELECT read(1, CAST(x'ff' AS TEXT))")
        assert isinstance(raised.value.__cause__, UnicodeDecodeError)


async def test_aggregates_and_window_functions_are_called_as_by_sqlite3(place):
    async with flatwater.connect(place) as db:
        db.create_aggregate("total_of", 1, Sum)
        db.create_window_function("moving", 1, Sum)
        await db.executescript("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, 'x'), (4, 'y'), (8, 'y')")
        assert await db.query_value("SELECT total_of(a) FROM t") == 15
        assert await db.query("SELECT b, total_of(a) FROM t GROUP BY b", into=tuple) == [("x", 3), ("y", 12)]
        assert await db.query_value("SELECT total_of(a) FROM t WHERE a > 9") is None, "no row, no instance"
        window = "SELECT moving(a) OVER (ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t"
        assert await db.query_values(window) == [1, 3, 6, 12]
        assert await db.query_value("SELECT moving(a) FROM t") == 15


async def test_a_collation_orders_texts(place):
    async with flatwater.connect(place) as db:
        db.create_collation("downwards", reversed_order)
        await db.executescript("CREATE TABLE t (a COLLATE downwards UNIQUE); INSERT INTO t VALUES ('a'), ('c'), ('b')")
        assert await db.query_values("SELECT a FROM t ORDER BY a") == ["c", "b", "a"]
        assert await db.query_values("SELECT a FROM t WHERE a > 'b'") == ["a"]
        await db.execute("DROP TABLE t")


async def test_each_call_that_begins_later_has_it(place):
    async with flatwater.connect(place, readers=4) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            for number in range(5):
                db.create_function("version", 0, lambda number=number: number)
                reads = [db.query_value("SELECT version()") for _ in range(8)]
                if place != ":memory:":
                    assert await asyncio.gather(*reads) == [number] * 8
                else:
                    for read in reads:
                        read.close()
                assert await tx.query_value("SELECT version()") == number
                await tx.execute("INSERT INTO t VALUES (version())")
        assert await db.query_values("SELECT a FROM t ORDER BY a") == [0, 1, 2, 3, 4]
        db.create_function("version", 0, None)
        with pytest.raises(flatwater.OperationalError, match="version"):
            await db.query("SELECT version()")


async def test_what_is_created_again_is_the_same(file):
    def setup(functions):
        functions.create_function("same", 1, str, deterministic=True)
        functions.create_aggregate("total_of", 1, Sum)

    async with flatwater.connect(file, functions=setup) as db:
        await db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        async with db.live("SELECT total_of(a) FROM t") as results:
            assert (await anext(results))[0][0] == 1
            before = db.stats()["live"]["everything"]
            for _ in range(5):
                async with flatwater.connect(file, functions=setup) as again:
                    await again.query("SELECT same(a) FROM t")
            assert db.stats()["live"]["everything"] == before, "no function changed, and so no result"
            db.create_function("another", 0, int)
            assert db.stats()["live"]["everything"] == before + 1
            await db.execute("UPDATE t SET a = 2")
            assert (await anext(results))[0][0] == 2
        # The same class in another way is another function.
        db.create_window_function("total_of", 1, Sum)
        assert await db.query_values("SELECT total_of(a) OVER () FROM t") == [2]
        with pytest.raises(flatwater.OperationalError, match="non-deterministic"):
            db.create_function("same", 1, str)
            await db.execute("CREATE INDEX i ON t (same(a))")


async def test_what_is_removed_must_be_there(place):
    async with flatwater.connect(place) as db:
        db.create_aggregate("total_of", 1, Sum)
        db.create_collation("downwards", reversed_order)
        db.create_aggregate("total_of", 1, None)
        db.create_collation("downwards", None)
        with pytest.raises(flatwater.ProgrammingError, match="no function total_of with 1 arguments"):
            db.create_window_function("total_of", 1, None)
        with pytest.raises(flatwater.ProgrammingError, match="no collation downwards"):
            db.create_collation("downwards", None)


async def test_names_arguments_and_code_are_checked(place):
    async with flatwater.connect(place) as db:
        for name, narg in [("", 1), ("a\0b", 1), ("a" * 256, 1), ("f", -2), ("f", 1001)]:
            with pytest.raises(flatwater.ProgrammingError):
                db.create_function(name, narg, len)
        for name, narg in [(1, 1), ("f", "1"), ("f", None)]:
            with pytest.raises(TypeError):
                db.create_function(name, narg, len)
        for create in [db.create_function, db.create_aggregate, db.create_window_function]:
            with pytest.raises(TypeError, match="f must be something that can be called, not int"):
                create("f", 1, 1)
        with pytest.raises(TypeError, match="c must be something"):
            db.create_collation("c", "binary")
        with pytest.raises(flatwater.ProgrammingError, match="nocase is a collation of SQLite"):
            db.create_collation("NOCASE", reversed_order)
    with pytest.raises(flatwater.ProgrammingError, match="closed"):
        db.create_function("f", 1, len)


@pytest.mark.parametrize("error", [ValueError, KeyError, Stop, SystemExit, KeyboardInterrupt])
async def test_an_exception_is_the_cause_of_the_error_of_its_statement(place, error):
    def fails(value):
        if value == "secret":
            raise error(value)
        return value

    async with flatwater.connect(place) as db:
        db.create_function("fails", 1, fails)
        await db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES ('a'), ('secret')")
        calls = [
            lambda: db.query("SELECT fails(a) FROM t"),
            lambda: db.query("SELECT fails(a) FROM t", into=tuple),
            lambda: db.execute("UPDATE t SET a = fails(a) || 'x'"),
            lambda: db.executemany("INSERT INTO t VALUES (fails(?))", [("b",), ("secret",)]),
            lambda: db.executescript("INSERT INTO t VALUES (1); UPDATE t SET a = fails(a)"),
            lambda: db.batch(["INSERT INTO t VALUES (2)", "UPDATE t SET a = fails(a)"]),
        ]
        for call in calls:
            for _ in range(3):
                with pytest.raises(flatwater.OperationalError) as raised:
                    await call()
                said = f"the function fails raised {error.__qualname__}"
                assert said in str(raised.value) and "secret" not in str(raised.value)
                cause = raised.value.__cause__
                assert type(cause) is error and cause.args == ("secret",)
                assert any(frame.name == "fails" for frame in traceback.extract_tb(cause.__traceback__))
        with pytest.raises(flatwater.OperationalError, match="no such table") as raised:
            await db.query("SELECT * FROM missing")
        assert raised.value.__cause__ is None
        assert await db.query_values("SELECT a FROM t ORDER BY a") == ["a", "secret"], "nothing of them is left"
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO t VALUES ('b')")
            with pytest.raises(flatwater.OperationalError) as raised:
                await tx.execute("UPDATE t SET a = fails(a) || 'x'")
            assert type(raised.value.__cause__) is error
        assert await db.query_values("SELECT a FROM t ORDER BY a") == ["a", "b", "secret"]
        assert db.stats()["replaced_connections"] == 0


@pytest.mark.parametrize("method", ["__init__", "step", "inverse", "value", "finalize"])
async def test_an_exception_in_any_method_of_an_aggregate_is_the_cause(place, method):
    def fails(self, *_):
        raise ArithmeticError(method)

    one = type("One", (Sum,), {method: fails})
    async with flatwater.connect(place) as db:
        db.create_window_function("one", 1, one)
        await db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)")
        # Of a window SQLite ignores the error of `finalize`, whose result it does not need.
        over = "" if method == "finalize" else "OVER (ORDER BY a ROWS BETWEEN CURRENT ROW AND CURRENT ROW)"
        window = f"SELECT one(a) {over} FROM t"
        for _ in range(3):
            with pytest.raises(flatwater.OperationalError, match="the window function one raised Arithmetic") as raised:
                await db.query(window)
            assert raised.value.__cause__.args == (method,)
        db.create_aggregate("half", 1, type("Half", (), {"step": lambda self, value: None}))
        with pytest.raises(flatwater.OperationalError, match="the aggregate half raised AttributeError") as raised:
            await db.query("SELECT half(a) FROM t")
        assert "finalize" in str(raised.value.__cause__)


async def test_an_exception_in_a_collation_fails_the_statement_and_changes_nothing(place):
    def careful(one, other):
        if "secret" in (one, other):
            raise LookupError(one, other)
        return (one > other) - (one < other)

    async with flatwater.connect(place) as db:
        db.create_collation("careful", careful)
        await db.executescript("CREATE TABLE t (a COLLATE careful UNIQUE); INSERT INTO t VALUES ('a'), ('z')")
        for sql in ["INSERT INTO t VALUES ('secret') RETURNING a", "SELECT a FROM t WHERE a = 'secret'"]:
            with pytest.raises(flatwater.OperationalError, match="the collation careful raised LookupError") as raised:
                await db.query(sql)
            assert type(raised.value.__cause__) is LookupError
        db.create_collation("odd", lambda one, other: "less")
        with pytest.raises(flatwater.OperationalError, match="the collation odd raised TypeError") as raised:
            await db.query("SELECT a FROM t ORDER BY a || '' COLLATE odd")
        assert "returns an int, not str" in str(raised.value.__cause__)
        db.create_collation("huge", lambda one, other: 10**30 * reversed_order(one, other))
        assert await db.query_values("SELECT a FROM t ORDER BY a || '' COLLATE huge") == ["z", "a"]
        assert await db.query_values("SELECT a FROM t ORDER BY a") == ["a", "z"]
        await db.execute("DROP TABLE t")


async def test_a_function_cannot_call_the_database(place):
    refused = []

    def calls():
        for attempt in [
            lambda: asyncio.run(db.query_value("SELECT 1")),
            lambda: asyncio.run(db.execute("CREATE TABLE never (a)")),
            lambda: flatwater._native.wait(db.query_value("SELECT 1")),
            lambda: db.create_function("another", 0, lambda: 1),
        ]:
            try:
                attempt()
            except flatwater.ProgrammingError as error:
                refused.append(str(error))
        return len(refused)

    async with flatwater.connect(place) as db:
        db.create_function("calls", 0, calls)
        found = await db.query_value("SELECT calls()")
        assert found == len(refused) == 4, refused
        assert all("a function" in error for error in refused), refused
        assert await db.query_value("SELECT count(*) FROM sqlite_schema") == 0


async def test_a_function_that_waits_does_not_hold_the_loop(place, other_task):
    threads, released = set(), threading.Event()

    def waits(value):
        threads.add(threading.get_ident())
        released.wait()
        return value

    async with flatwater.connect(place) as db, other_task() as other:
        for deterministic in [True, False]:
            db.create_function("waits", 1, waits, deterministic=deterministic)
            released.clear()
            call = asyncio.ensure_future(db.query_value("SELECT waits(7)"))
            turns = other.turns
            while other.turns < turns + 100:
                await asyncio.sleep(0)
            assert not call.done()
            released.set()
            assert await call == 7
        for _ in range(30):
            await db.query_value("SELECT waits(7)")
        assert threading.get_ident() not in threads


async def test_a_function_in_a_write_a_transaction_or_batches_never_runs_on_the_loops_thread(place):
    threads = set()

    def here(value):
        threads.add(threading.get_ident())
        return value

    async with flatwater.connect(place) as db, db.connection() as own:
        db.create_function("here", 1, here, deterministic=True)
        await db.executescript("CREATE TABLE t (a CHECK (here(a) > 0)); CREATE INDEX i ON t (here(a))")
        for number in range(1, 30):
            await db.execute("INSERT INTO t VALUES (?)", (number,))
            await own.query_value("SELECT here(?)", (number,))
            async with db.batches("SELECT here(?)", (number,)) as batches:
                assert [len(batch) async for batch in batches] == [1]
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (?)", (number,))
                await tx.query_value("SELECT count(*) FROM t WHERE here(a) = ?", (number,))
                await tx.query_value("SELECT here(?)", (number,))
        assert threading.get_ident() not in threads
        await db.execute("DROP TABLE t")


class Here:
    """Returns its argument, and notes how often it was called on the thread that made it, and on others."""

    def __init__(self):
        self.own, self.here, self.elsewhere = threading.get_ident(), 0, 0

    def __call__(self, value):
        if threading.get_ident() == self.own:
            self.here += 1
        else:
            self.elsewhere += 1
        return value

    async def until(self, db, sql="SELECT here(?)"):
        """Calls until one runs on this thread. Returns the number of calls before."""
        before, calls = self.here, 0
        while True:
            assert await db.query_value(sql, (7,)) == 7
            if self.here > before:
                return calls
            calls += 1

    async def once_here(self, db, call):
        """Makes the call, in which it is called once, until that was on this thread: a busy machine may send it on."""
        while True:
            await self.until(db)
            here, elsewhere = self.here, self.elsewhere
            await call()
            assert self.here + self.elsewhere == here + elsewhere + 1
            if self.here > here:
                return


async def test_a_deterministic_function_runs_on_the_loops_thread_once_its_reads_were_short(file):
    async with flatwater.connect(file) as db:
        for _ in range(3):
            here = Here()
            db.create_function("here", 1, here, deterministic=True)
            assert await here.until(db) >= 8, "nothing is known of another one"
        other = Here()
        db.create_function("other", 1, other)
        for _ in range(30):
            await db.query_value("SELECT here(other(?))", (7,))
        assert other.here == 0
    async with flatwater.connect(file, tuning={"inline": False}) as db:
        here = Here()
        db.create_function("here", 1, here, deterministic=True)
        for _ in range(30):
            await db.query_value("SELECT here(?)", (7,))
        assert here.here == 0


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_an_exception_on_the_loops_thread_is_the_cause_and_the_function_is_not_called_again(file, error):
    class Fails(Here):
        def __call__(self, value):
            super().__call__(value)
            if value == "secret":
                raise error(value)
            return value

    here = Fails()
    async with flatwater.connect(file) as db:
        db.create_function("here", 1, here, deterministic=True)

        async def fails():
            with pytest.raises(flatwater.OperationalError) as raised:
                await db.query("SELECT here(?)", ("secret",))
            assert str(raised.value) == f"the function here raised {error.__qualname__}"
            cause = raised.value.__cause__
            assert type(cause) is error and cause.args == ("secret",)
            assert traceback.extract_tb(cause.__traceback__)[-1].name == "__call__"

        for _ in range(3):
            await here.once_here(db, fails)


async def test_a_function_on_the_loops_thread_cannot_call_the_database(file):
    refused, call = [], None

    class Calls(Here):
        def __call__(self, value):
            super().__call__(value)
            if value == "calls" and threading.get_ident() == self.own:
                for attempt in [
                    lambda: db.query_value("SELECT 1").send(None),
                    lambda: db.execute("CREATE TABLE never (a)").send(None),
                    lambda: other.query_value("SELECT here(1)").send(None),
                    lambda: flatwater._native.wait(db.query_value("SELECT 1")),
                    lambda: db.create_function("another", 0, lambda: 1),
                    lambda: call.send(None),
                ]:
                    try:
                        attempt()
                    except (flatwater.ProgrammingError, ValueError) as error:
                        refused.append(str(error))
            return value

    here = Calls()
    async with flatwater.connect(file) as db, flatwater.connect(file.with_name("other.db")) as other:
        db.create_function("here", 1, here, deterministic=True)

        async def calls():
            nonlocal call
            call = db.query_value("SELECT here(?)", ("calls",))
            assert await call == "calls"

        await here.once_here(db, calls)
        assert len(refused) == 6, refused
        assert all("a function" in error for error in refused[:5]), refused
        assert refused[5] == "coroutine already executing"
        assert await db.query_value("SELECT count(*) FROM sqlite_schema") == 0
        await here.until(db)


async def test_a_function_that_was_slow_once_on_the_loops_thread_runs_on_another_one_next(file):
    class Slow(Here):
        seconds = 0.0

        def __call__(self, value):
            end = time.perf_counter() + self.seconds
            while time.perf_counter() < end:
                pass
            return super().__call__(value)

    here = Slow()
    async with flatwater.connect(file) as db:
        db.create_function("here", 1, here, deterministic=True)
        count = here.here
        while here.here == count:
            here.seconds = 0.0
            await here.until(db)
            count, here.seconds = here.here, 0.005
            await db.query_value("SELECT here(?)", (7,))
        count = here.here
        for _ in range(20):
            # Each is slow, and so is their average.
            assert await db.query_value("SELECT here(?)", (7,)) == 7
        assert here.here == count
        here.seconds = 0.0
        await here.until(db)


async def test_a_wait_for_the_interpreter_is_no_time_of_the_function(file):
    """A thread of the database that calls it waits until the loop, which computes, must let it run: for 5 ms. If that
    counted, some forty calls without a wait would have to follow before one runs on the loop's thread, each time; a
    thread that a busy machine stops in the function costs as many, now and then."""

    async def compute():
        while True:
            end = time.perf_counter() + 0.01
            while time.perf_counter() < end:
                pass
            await asyncio.sleep(0)

    async with flatwater.connect(file) as db:
        calls = 20
        while calls >= 20:
            here = Here()
            db.create_function("here", 1, here, deterministic=True)
            task = asyncio.create_task(compute())
            while here.elsewhere < 20:
                assert await db.query_value("SELECT here(?)", (7,)) == 7
            task.cancel()
            calls = await here.until(db)


async def test_while_a_function_runs_on_a_loops_thread_another_thread_polls_calls(file):
    """The interpreter lets the other thread run in the middle of the function, which goes on only when that has polled
    calls of every kind: nothing that these need is held meanwhile."""
    entered, left, failures = threading.Event(), threading.Event(), []

    class Waits(Here):
        def __call__(self, value):
            if value == "waits":
                entered.set()
                left.wait()
            return super().__call__(value)

    here = Waits()

    async def others(db):
        async with flatwater.connect(file, readers=4) as again:
            for on in [db, again]:
                assert await on.query_value("SELECT here(?)", (7,)) == 7
                await on.execute("INSERT INTO t VALUES (here(?))", (7,))
                async with on.transaction() as tx:
                    await tx.execute("INSERT INTO t VALUES (?)", (7,))
                    assert await tx.query_value("SELECT here(?)", (7,)) == 7
                async with on.batches("SELECT here(a) FROM t") as batches:
                    assert [len(batch) async for batch in batches]
                async with on.snapshot() as snapshot:
                    await snapshot.query("SELECT here(a) FROM t")
                async with on.live("SELECT here(a) FROM t") as results:
                    await anext(results)
                on.create_function("another", 1, Here(), deterministic=True)
                assert await on.query_value("SELECT another(?)", (7,)) == 7
                assert on.stats()["inline"]["reads"] > 0

    def other_thread(db):
        entered.wait()
        try:
            asyncio.run(others(db))
        except BaseException as error:
            failures.append(error)
        left.set()

    async with flatwater.connect(file, readers=4) as db:
        await db.execute("CREATE TABLE t (a)")
        db.create_function("here", 1, here, deterministic=True)
        count = here.here
        while here.here == count:
            await here.until(db)
            count = here.here
            entered.clear()
            left.clear()
            thread = threading.Thread(target=other_thread, args=(db,))
            thread.start()
            assert await db.query_value("SELECT here(?)", ("waits",)) == "waits"
            thread.join()
            assert not failures


async def test_the_loops_of_two_threads_call_the_same_function(file):
    """The interpreter changes threads as often as it can, also in the middle of the function."""
    interval = sys.getswitchinterval()
    owns = set()

    def twice(value):
        owns.add(threading.get_ident())
        return sum([value for _ in range(2)])

    async def calls(db):
        for n in range(500):
            assert await db.query_value("SELECT twice(a) FROM t WHERE id = ?", (n % 10,)) == 2 * (n % 10)
            if n % 100 == 0:
                await db.execute("UPDATE t SET a = twice(a) / 2 WHERE id = ?", (n % 10,))

    async with flatwater.connect(file) as db:
        db.create_function("twice", 1, twice, deterministic=True)
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        await db.executemany("INSERT INTO t VALUES (?, ?)", [(n, n) for n in range(10)])
        sys.setswitchinterval(1e-6)
        try:
            await asyncio.gather(calls(db), *(asyncio.to_thread(lambda: asyncio.run(calls(db))) for _ in range(2)))
        finally:
            sys.setswitchinterval(interval)
        before = db.stats()["inline"]["reads"]
        await calls(db)
        assert threading.get_ident() in owns and db.stats()["inline"]["reads"] > before


@pytest.mark.parametrize("ends", ["deadline", "cancel"])
@pytest.mark.parametrize("sql", ["SELECT waits(a) FROM t", "UPDATE t SET a = waits(a) RETURNING a"])
async def test_a_deadline_and_a_cancel_end_a_statement_between_two_calls(place, sql, ends):
    called, released, calls = threading.Event(), threading.Event(), []

    def waits(value):
        calls.append(value)
        called.set()
        released.wait()
        # All rows take much longer than the deadline, or a cancellation, needs to arrive.
        time.sleep(0.001)
        return value

    async with flatwater.connect(place) as db:
        db.create_function("waits", 1, waits)
        await db.execute("CREATE TABLE t (a)")
        await db.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(100_000)])
        limit = 0.05
        while True:
            call = asyncio.ensure_future(db.query(sql, timeout=limit if ends == "deadline" else None))
            while not called.is_set() and not call.done():
                await asyncio.sleep(0.001)
            if called.is_set():
                break
            # It was too late before it ran.
            limit *= 2
        if ends == "cancel":
            call.cancel()
        released.set()
        with pytest.raises(flatwater.Timeout if ends == "deadline" else asyncio.CancelledError):
            await call
        assert await db.query_value("SELECT sum(a) FROM t") == sum(range(100_000))
        assert len(calls) < 100_000


async def test_a_schema_with_functions_works_and_says_what_is_missing(file):
    def setup(functions):
        functions.create_function("words", 1, lambda text: len(text.split()), deterministic=True)
        functions.create_collation("downwards", reversed_order)

    migrations = [
        ("1", "CREATE TABLE t (a TEXT COLLATE downwards CHECK (words(a) < 4), n AS (words(a)) STORED)"),
        ("2", "INSERT INTO t (a) VALUES ('one'), ('one two'); CREATE INDEX i ON t (words(a), a)"),
    ]
    async with flatwater.connect(file, functions=setup, migrations=migrations) as db:
        assert await db.query("SELECT a, n FROM t ORDER BY a", into=tuple) == [("one two", 2), ("one", 1)]
        with pytest.raises(flatwater.IntegrityError, match="CHECK"):
            await db.execute("INSERT INTO t (a) VALUES ('one two three four')")
        again = await flatwater.connect(file, functions=setup, migrations=migrations)
        assert await again.query_value("SELECT n FROM t WHERE words(a) = 2") == 2
        await again.close()
        db.create_function("any", 1, lambda value: value)
        with pytest.raises(flatwater.OperationalError, match="non-deterministic functions prohibited"):
            await db.execute("CREATE INDEX j ON t (any(a))")
    async with flatwater.connect(file) as db:
        assert await db.query_value("SELECT count(*) FROM t") == 2
        with pytest.raises(flatwater.OperationalError) as raised:
            await db.execute("INSERT INTO t (a) VALUES ('x')")
        assert "`db.create_function`" in raised.value.hint and "`functions`" in raised.value.hint
        db.create_function("words", 1, lambda text: len(text.split()), deterministic=True)
        db.create_collation("downwards", reversed_order)
        await db.execute("DROP TABLE t")


async def test_on_connect_has_functions_and_says_what_sets_the_rest(place):
    called = []

    def setup(functions):
        called.append(functions)
        functions.create_function("f", 0, lambda: 1)
        with pytest.raises(flatwater.ProgrammingError, match="nothing to remove"):
            functions.create_function("f", 0, None)
        functions.create_aggregate("total_of", 1, Sum)
        functions.create_window_function("moving", 1, Sum)
        for name, hint in [("execute", "`on_open`"), ("load_extension", "option `load_extension`")]:
            with pytest.raises(AttributeError, match=hint):
                getattr(functions, name)

    async with flatwater.connect(place, functions=setup) as db:
        assert len(called) == 1
        assert await db.query_one("SELECT total_of(3), moving(4)") == (3, 4)
    with pytest.raises(TypeError, match="functions"):
        flatwater.connect(place, functions="setup")
    with pytest.raises(ZeroDivisionError):
        flatwater.connect(place, functions=lambda functions: 1 / 0)


async def test_a_live_query_follows_its_functions(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        db.create_function("version", 0, lambda: 1)
        async with db.live("SELECT version(), count(*) FROM t") as results:
            assert list(await anext(results)) == [(1, 0)]
            db.create_function("version", 0, lambda: 2)
            async for rows in results:
                if rows[0][0] == 2:
                    break


def test_the_two_apis_have_the_same_methods():
    for name in ["create_function", "create_aggregate", "create_window_function", "create_collation"]:
        assert getattr(flatwater.Database, name) is getattr(blocking.Database, name)
        assert getattr(flatwater.Functions, name).__doc__
    assert str(inspect.signature(flatwater.Functions.create_function)).startswith("(self, name")
