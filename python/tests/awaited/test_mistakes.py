"""What people write who come from other libraries, or forget an `await`."""

from __future__ import annotations

import asyncio
import collections.abc
import datetime
import sqlite3

import pytest

import flatwater
from flatwater import blocking

COUNT = "SELECT 1 AS one, 'x' AS word"


async def warm(db: flatwater.Database) -> None:
    """The text runs on the caller's thread from now on, so that its result is there at once."""
    for _ in range(20):
        await db.query(COUNT)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_a_loop_over_a_call_that_was_not_awaited_is_an_error(file):
    async with flatwater.connect(file) as db:
        await warm(db)
        with pytest.raises(TypeError, match="not iterable: it was not awaited"):
            for _ in db.query(COUNT):
                pass
        with pytest.raises(TypeError, match="not iterable: it was not awaited"):
            list(db.query(COUNT))
        with pytest.raises(TypeError, match="not iterable: it was not awaited"):
            1 in db.query_values(COUNT)  # noqa: B015
        with pytest.raises(TypeError, match="stream.*it was not awaited"):
            async for _ in db.query(COUNT):
                pass
        with pytest.raises(TypeError, match="not subscriptable: it was not awaited"):
            db.query(COUNT)[0]
        with pytest.raises(TypeError, match=r"no len\(\): it was not awaited"):
            len(db.query(COUNT))
        # As any coroutine.
        assert db.query(COUNT)
        with pytest.warns(RuntimeWarning, match="never awaited"), pytest.raises(TypeError):
            list(db.query(COUNT))


async def test_a_call_is_resumed_by_hand_as_a_coroutine_is(file):
    async with flatwater.connect(file) as db:
        await warm(db)

        class Awaits:
            def __init__(self, call: flatwater.Call) -> None:
                self.call = call

            def __await__(self):
                return (yield from self.call.__await__())

        assert await Awaits(db.query(COUNT)) == [(1, "x")]
        assert await asyncio.create_task(Awaits(db.query(COUNT)).call) == [(1, "x")]
        # It waits for a thread, so the task that awaits is suspended, and can be cancelled.
        endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"

        async def await_by_hand() -> None:
            await Awaits(db.query(endless))

        task = asyncio.create_task(await_by_hand())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(flatwater.Timeout):
            await Awaits(db.query(endless, timeout=0.05))

        class Sends(Awaits):
            def __await__(self):
                resumed = self.call.__await__()
                assert isinstance(resumed, collections.abc.Iterator) and iter(resumed) is resumed
                try:
                    while True:
                        yield resumed.send(None)
                except StopIteration as done:
                    return done.value

        assert await Sends(db.query(COUNT)) == [(1, "x")]
        with pytest.raises(flatwater.Timeout):
            await Sends(db.query(endless, timeout=0.05))
        never = db.query(COUNT)
        never.__await__().close()
        with pytest.raises(ValueError, match="stop"):
            db.query(COUNT).__await__().throw(ValueError("stop"))
        assert issubclass(flatwater.Call, collections.abc.Coroutine)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_forms_of_other_libraries_are_answered_with_what_to_write(file):
    async with flatwater.connect(file) as db:
        with pytest.raises(TypeError, match="awaited, not entered.*await db.query"):
            async with db.execute("SELECT 1"):
                pass
        with pytest.raises(AttributeError, match="was not awaited"):
            db.query(COUNT).fetchall  # noqa: B018
        with pytest.raises(AttributeError, match="no attribute 'other'$"):
            db.query(COUNT).other  # noqa: B018
        done = await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        for name, hint in [("lastrowid", "last_insert_rowid"), ("rowcount", "changes"), ("fetchall", "db.query")]:
            with pytest.raises(AttributeError, match=f"{name}.*{hint}"):
                getattr(done, name)
        rows = await db.query(COUNT)
        for name, hint in [("fetchall", "list.rows"), ("fetchone", "rows.0"), ("description", "columns")]:
            with pytest.raises(AttributeError, match=f"{name}.*{hint}"):
                getattr(rows, name)
        with pytest.raises(AttributeError, match="get.*dict.row"):
            rows[0].get  # noqa: B018
        for block in [db.transaction(), db.snapshot(), db.stream(COUNT), db.batches(COUNT)]:
            with pytest.raises(TypeError, match="cannot be awaited: it is a block, `async with db"):
                await block
        with pytest.raises(AttributeError, match="fetchone.*async for"):
            db.stream(COUNT).fetchone  # noqa: B018
        async with db.transaction() as tx:
            with pytest.raises(AttributeError, match="commit.*when its `async with` block ends"):
                tx.commit  # noqa: B018
            with pytest.raises(AttributeError, match="begin.*tx.transaction"):
                tx.begin  # noqa: B018
            with pytest.raises(AttributeError, match="create_collation.*db.create_collation"):
                tx.create_collation  # noqa: B018
        for name in ["in_transaction", "load_extension", "set_progress_handler", "stop"]:
            with pytest.raises(AttributeError, match=f"{name}': "):
                getattr(db, name)
    with blocking.connect(file) as db:
        for name in ["commit", "fetchall"]:
            with pytest.raises(AttributeError, match=f"{name}'") as error:
                getattr(db, name)
            assert "await" not in str(error.value) and "async" not in str(error.value)
        with pytest.raises(AttributeError, match="fetchmany.*for rows in batches"):
            db.batches(COUNT).fetchmany  # noqa: B018


async def test_a_setting_of_another_library_is_refused_with_what_reading_it_raises(file):
    def check(*objects):
        for one in objects:
            for name in ["row_factory", "isolation_level", "arraysize", "anything"]:
                with pytest.raises(AttributeError) as read:
                    getattr(one, name)
                with pytest.raises(AttributeError) as written:
                    setattr(one, name, None)
                assert str(written.value) == str(read.value) and name in str(read.value)
                with pytest.raises(AttributeError):
                    delattr(one, name)
            # A double for a test.
            if hasattr(one, "execute"):
                one.execute = lambda: 5
                assert one.execute() == 5
                del one.execute
                assert callable(one.execute)

    async with flatwater.connect(file) as db, db.snapshot() as snapshot:
        connecting = flatwater.connect(file)
        check(connecting)
        connecting.close()
        check(db, snapshot, db.transaction(), db.stream(COUNT), db.batches(COUNT))
        with pytest.raises(AttributeError, match="row_factory.*into=dict"):
            db.row_factory = None
    with blocking.connect(file) as db, db.snapshot() as snapshot:
        check(db, snapshot, db.transaction(), db.stream(COUNT), db.batches(COUNT))
        with pytest.raises(AttributeError, match="isolation_level.*`with db.transaction"):
            db.isolation_level = None


async def test_rows_are_sequences_and_parameters(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a, b)")
        rows = await db.query("SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, 'y' UNION ALL SELECT 2, 'y'")
        assert isinstance(rows, collections.abc.Sequence) and isinstance(rows[0], collections.abc.Sequence)
        assert (rows.index((2, "y")), rows.count((2, "y")), rows.index((2, "y"), 2)) == (1, 2, 2)
        assert (rows[0].index("x"), rows[0].count(1), rows[0].count(7)) == (1, 1, 0)
        with pytest.raises(ValueError):
            rows.index((3, "z"))
        match rows[0]:
            case [one, word]:
                assert (one, word) == (1, "x")
            case _:
                pytest.fail("a row is no sequence")
        await db.execute("INSERT INTO t VALUES (?, ?)", rows[0])
        assert await db.executemany("INSERT INTO t VALUES (?, ?)", rows[1:]) == 2
        assert await db.executemany("INSERT INTO t VALUES (?, ?)", await db.query("SELECT * FROM t")) == 3
        assert await db.query("SELECT a, b FROM t ORDER BY rowid LIMIT 3") == rows
        plain = sqlite3.connect(":memory:")
        assert plain.execute("SELECT ? || ?", tuple(rows[0])).fetchone() == ("1x",)
        plain.close()


async def test_times_are_seconds_or_a_timedelta(file):
    tiny = datetime.timedelta(microseconds=1)
    async with flatwater.connect(file) as db:
        assert await db.query_value("SELECT 1", timeout=datetime.timedelta(minutes=1)) == 1
        with pytest.raises(flatwater.Timeout):
            await db.query("SELECT 1", timeout=datetime.timedelta(0))
        async with db.live("SELECT 1", debounce=tiny, throttle=tiny) as results:
            async for rows in results:
                assert rows == [(1,)]
                break
        for wrong in ["1", [1]]:
            with pytest.raises(TypeError, match="seconds or a timedelta"):
                await db.query("SELECT 1", timeout=wrong)
        with pytest.raises(ValueError, match="non-negative"):
            await db.query("SELECT 1", timeout=-1)


async def test_a_transaction_is_undone_before_its_block_ends(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO t VALUES (1)")
            async with tx.transaction() as nested:
                await nested.execute("INSERT INTO t VALUES (2)")
                await nested.rollback()
                await nested.rollback()
                with pytest.raises(flatwater.ProgrammingError):
                    await nested.execute("INSERT INTO t VALUES (3)")
            assert await tx.query_values("SELECT a FROM t") == [1]
            assert tx.in_transaction
        async with db.transaction() as tx:
            await tx.execute("DELETE FROM t")
            await tx.rollback()
            assert not tx.in_transaction
            with pytest.raises(flatwater.ProgrammingError):
                await tx.execute("DELETE FROM t")
            # The writer is free again, also for the task that had the transaction.
            await db.execute("INSERT INTO t VALUES (4)")
        assert await db.query_values("SELECT a FROM t") == [1, 4]
        with pytest.raises(ZeroDivisionError):
            async with db.transaction() as tx:
                await tx.rollback()
                raise ZeroDivisionError
        with pytest.raises(flatwater.ProgrammingError, match="not begun"):
            await db.transaction().rollback()
    with blocking.connect(file) as db:
        with db.transaction() as tx:
            tx.execute("DELETE FROM t")
            tx.rollback()
            db.execute("INSERT INTO t VALUES (5)")
        assert db.query_values("SELECT a FROM t") == [1, 4, 5]


async def test_errors_have_the_classes_of_the_standard_library(file):
    plain = sqlite3.connect(":memory:")
    plain.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        for sql in [
            "INSERT INTO t VALUES ('abc')",
            "SELECT length(zeroblob(2147483647) || 'x')",
            "SELECT 1 FROM nowhere",
        ]:
            with pytest.raises(sqlite3.Error) as theirs:
                plain.execute(sql).fetchall()
            with pytest.raises(flatwater.Error) as ours:
                await (db.execute(sql) if sql.startswith("INSERT") else db.query(sql))
            assert isinstance(ours.value, theirs.type), sql
    plain.close()


async def test_a_group_of_live_queries_takes_texts_and_pairs(file):
    async with flatwater.connect(file) as db:
        async with db.live_group(["SELECT 1", ("SELECT ?", (2,))]) as results:
            async for one, two in results:
                assert (one, two) == ([(1,)], [(2,)])
                break


def test_the_package_says_which_versions_it_is_of():
    assert flatwater.__version__.count(".") == 2
    assert tuple(map(int, flatwater.sqlite_version.split("."))) >= (3, 51, 3)


def test_what_waits_has_prepared_statements_and_ends_what_it_reads(file):
    with blocking.connect(file, tuning={"extra_readers": 1}) as db:
        db.execute("CREATE TABLE t (a)")
        insert = db.prepare("INSERT INTO t VALUES (?)")
        assert insert.execute((1,)).changes == 1 and insert.executemany((n,) for n in range(2, 5001)) == 4999
        find = db.prepare("SELECT a FROM t WHERE a <= ? ORDER BY a")
        assert find.query((2,)) == [(1,), (2,)] and find.query_one((2,)) == find.query_optional((2,)) == (1,)
        assert (find.query_value((9,)), find.query_values((2,))) == (1, [1, 2])
        assert (find.query_optional((0,), into=dict), find.query_optional_value((0,))) == (None, None)
        with pytest.raises(flatwater.RowNotFound):
            find.query_one((0,))
        assert find.query_json((1,), arrays=True) == "[[1]]" and "SELECT a" in repr(find)
        with pytest.raises(flatwater.OperationalError, match="no such table"):
            db.prepare("SELECT * FROM nowhere")
        # There is one more reader, and whoever does not give it back keeps the next one waiting.
        for _ in range(3):
            batches = db.batches("SELECT a FROM t ORDER BY a", timeout=60)
            first = batches.next_batch()
            assert first is not None and first[0] == (1,)
            batches.close()
            assert batches.next_batch() is None
            rows = db.stream("SELECT a FROM t ORDER BY a", timeout=60)
            for row in rows:
                assert row == (1,)
                rows.close()
            assert list(rows) == []
        with pytest.raises(flatwater.Timeout):
            list(db.stream("SELECT a FROM t", timeout=0))
