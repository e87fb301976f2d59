"""A connection of one's own, awaited; `flatwater.blocking` where it differs."""

import asyncio
import gc
import sqlite3
from pathlib import Path

import pytest

import flatwater
from flatwater import blocking

INSERT = "INSERT INTO t VALUES (?)"
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with blocking.connect(tmp_path / "app.db") as db:
        db.execute("CREATE TABLE t (a)")
    return tmp_path / "app.db"


async def test_what_a_pooled_connection_refuses_is_allowed(path: Path) -> None:
    async with flatwater.connect(path) as db, db.connection() as own:
        await own.execute("CREATE TEMP TABLE tmp (a)")
        await own.execute("BEGIN")
        assert own.in_transaction
        await own.execute("SAVEPOINT a")
        assert (await own.execute(INSERT, (1,))).last_insert_rowid == 1
        await own.execute("ROLLBACK TO a")
        await own.executemany(INSERT, [(2,), (3,)])
        await own.execute("COMMIT")
        assert not own.in_transaction
        assert await own.query_values("SELECT a FROM t") == [2, 3] == await db.query_values("SELECT a FROM t")
        assert own.total_changes == 3
        [one] = await own.batch([("INSERT INTO t VALUES (?) RETURNING a", (4,))])
        assert one.changes == 1
        assert one.rows is not None
        assert one.rows[0][0] == 4
        await own.executescript("BEGIN; DELETE FROM t; COMMIT")
        assert await db.query_value("SELECT count(*) FROM t") == 0


async def test_options_are_of_one_connection(path: Path) -> None:
    async with flatwater.connect(path) as db:
        async with db.connection(busy_timeout=0.01, foreign_keys=False) as own, db.transaction():
            assert await own.query_value("PRAGMA foreign_keys") == 0
            with pytest.raises(flatwater.OperationalError, match="database is locked") as locked:
                await own.execute(INSERT, (1,))
            assert locked.value.sqlite_errorname == "SQLITE_BUSY"
            assert not own.in_transaction
        async with db.connection() as other:
            assert await other.query_value("PRAGMA foreign_keys") == 1


async def test_any_task_goes_on_with_a_transaction(path: Path) -> None:
    async with flatwater.connect(path) as db, db.connection() as own:
        await asyncio.create_task(own.execute("BEGIN"))
        await asyncio.gather(*(own.execute(INSERT, (n,)) for n in range(5)))
        await asyncio.create_task(own.execute("COMMIT"))
        assert await db.query_values("SELECT a FROM t") == [0, 1, 2, 3, 4]


async def test_a_closed_one_says_so_and_one_that_is_dropped_warns(path: Path) -> None:
    async with flatwater.connect(path) as db:
        own = db.connection()
        await own.execute("BEGIN IMMEDIATE")
        await own.close()
        await own.close()
        with pytest.raises(flatwater.ProgrammingError, match="closed"):
            await own.execute("SELECT 1")
        dropped = db.connection()
        await dropped.execute("BEGIN IMMEDIATE")
        await dropped.execute(INSERT, (1,))
        with pytest.warns(ResourceWarning, match="unclosed connection"):
            del dropped
            gc.collect()
        await db.execute(INSERT, (2,))
        assert await db.query_values("SELECT a FROM t") == [2]


async def test_a_statement_is_interrupted(path: Path) -> None:
    async with flatwater.connect(path) as db, db.connection() as own:
        running = asyncio.create_task(own.query(ENDLESS))
        while not running.done():
            own.interrupt()
            await asyncio.sleep(0.001)
        with pytest.raises(flatwater.OperationalError, match="interrupted"):
            await running
        assert await own.query_value("SELECT 1") == 1


async def test_functions_are_of_one_connection(path: Path) -> None:
    async with flatwater.connect(path) as db, db.connection() as own:
        own.create_function("twice", 1, lambda value: value * 2)
        own.create_collation("backwards", lambda one, other: (one < other) - (one > other))
        assert await own.query_value("SELECT twice(21)") == 42
        texts = 'SELECT value FROM json_each(\'["a", "c", "b"]\') ORDER BY value COLLATE backwards'
        assert await own.query_values(texts) == ["c", "b", "a"]
        with pytest.raises(flatwater.OperationalError, match="no such function"):
            await db.query_value("SELECT twice(21)")
        own.create_function("fails", 0, lambda: 1 // 0)
        with pytest.raises(flatwater.OperationalError) as failed:
            await own.query("SELECT fails()")
        assert isinstance(failed.value.__cause__, ZeroDivisionError)
        own.create_function("twice", 1, None)
        with pytest.raises(flatwater.OperationalError, match="no such function"):
            await own.query_value("SELECT twice(21)")


async def test_an_authorizer_decides_what_statements_may_do(path: Path) -> None:
    async with flatwater.connect(path) as db, db.connection() as own:
        assert await own.query_value("SELECT count(*) FROM t") == 0
        asked: list[tuple[object, ...]] = []

        def authorizer(*event: object) -> int:
            asked.append(event)
            return sqlite3.SQLITE_DENY if event[0] == sqlite3.SQLITE_INSERT else sqlite3.SQLITE_OK

        own.set_authorizer(authorizer)
        assert await own.query_values("SELECT a FROM t") == []
        assert (sqlite3.SQLITE_READ, "t", "a", "main", None) in asked
        with pytest.raises(flatwater.DatabaseError, match="not authorized"):
            await own.execute(INSERT, (1,))
        own.set_authorizer(lambda *_: 1 // 0)
        with pytest.raises(flatwater.DatabaseError, match="not authorized"):
            await own.query("SELECT a FROM t")
        own.set_authorizer(lambda *event: sqlite3.SQLITE_IGNORE if event[0] == sqlite3.SQLITE_READ else 0)
        assert await own.query_value("SELECT max(a) FROM (SELECT a FROM t UNION ALL SELECT 1)") == 1
        own.set_authorizer(None)
        await own.execute(INSERT, (1,))
        await db.execute(INSERT, (2,))


async def test_a_progress_handler_is_called_and_ends_a_statement(path: Path) -> None:
    async with flatwater.connect(path) as db, db.connection() as own:
        calls = 0

        def handler() -> bool:
            nonlocal calls
            calls += 1
            return calls > 5

        own.set_progress_handler(handler, 100)
        with pytest.raises(flatwater.OperationalError, match="interrupted"):
            await own.query(ENDLESS)
        assert calls == 6
        own.set_progress_handler(lambda: 1 // 0, 1)
        with pytest.raises(flatwater.OperationalError, match="interrupted"):
            await own.query(ENDLESS)
        own.set_progress_handler(None, 1)
        with pytest.raises(flatwater.Timeout):
            await own.query(ENDLESS, timeout=0.05)


async def test_statements_are_traced_with_their_values(path: Path) -> None:
    async with flatwater.connect(path) as db, db.connection() as own:
        traced: list[str] = []
        own.set_trace_callback(traced.append)
        await own.execute("BEGIN")
        await own.execute(INSERT, ("it's",))
        await own.execute("COMMIT")
        assert traced == ["BEGIN", "INSERT INTO t VALUES ('it''s')", "COMMIT"]
        own.set_trace_callback(None)
        await own.execute(INSERT, (1,))
        assert len(traced) == 3


async def test_names_that_it_does_not_have(path: Path) -> None:
    async with flatwater.connect(path) as db, db.connection() as own:
        with pytest.raises(AttributeError, match="COMMIT"):
            own.commit  # type: ignore[attr-defined] # noqa: B018
        with pytest.raises(AttributeError):
            own.enable_load_extension  # type: ignore[attr-defined] # noqa: B018
        with pytest.raises(flatwater.NotSupportedError):
            own.load_extension("x")


def test_without_a_loop(path: Path) -> None:
    with blocking.connect(path) as db, db.connection() as own:
        own.execute("BEGIN")
        own.executemany(INSERT, ((n,) for n in range(3)))
        assert own.in_transaction
        own.execute("ROLLBACK")
        assert own.query_value("SELECT count(*) FROM t") == 0
        assert isinstance(own, blocking.Connection)
        with pytest.raises(AttributeError, match="COMMIT"):
            own.commit  # type: ignore[attr-defined] # noqa: B018
