"""Statement listeners, and the records of the logger "flatwater"."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import logging
import sqlite3
import threading
import weakref

import pytest

import flatwater
from flatwater._told import logging as records

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


async def logged(db, count):
    """Adds a logger. Returns its list, and what waits until that is so long."""
    queries = []
    db.add_statement_listener(queries.append)

    async def wait():
        await until(lambda: len(queries) >= count)
        await asyncio.sleep(0)
        return queries

    return queries, wait


async def test_each_call_is_logged_once_with_its_numbers(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a)")
        _, wait = await logged(db, 7)
        await db.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (3,)])
        await db.query("SELECT a FROM t")
        await db.query_one("SELECT a FROM t")
        await db.batch(["INSERT INTO t VALUES (4)", "DELETE FROM t WHERE a = 1"])
        async with db.transaction() as tx:
            await tx.execute("UPDATE t SET a = a + 1")
        queries = await wait()
        assert [(query.operation, query.sql, query.rows, query.changes) for query in queries] == [
            ("executemany", "INSERT INTO t VALUES (?)", None, 3),
            ("query", "SELECT a FROM t", 3, None),
            ("query_one", "SELECT a FROM t", 1, None),
            ("batch", "INSERT INTO t VALUES (4); DELETE FROM t WHERE a = 1", 0, 2),
            ("begin", "BEGIN IMMEDIATE", None, None),
            ("execute", "UPDATE t SET a = a + 1", None, 3),
            ("commit", "COMMIT", None, None),
        ]
        assert [query.in_transaction for query in queries] == [False] * 5 + [True] * 2
        assert not any(query.error or query.is_slow for query in queries)
        for query in queries:
            assert query.ran_on in ("caller", "reader", "writer", "group")
            assert 0 < query.total and query.queue + query.lock + query.run <= query.total
        assert repr(queries[1]).startswith('<flatwater.StatementEvent query "SELECT a FROM t": ')
        if place != ":memory:":
            assert str(queries[0].path).endswith("test.db")


async def test_a_stream_is_logged_when_it_is_left(file):
    async with flatwater.connect(file) as db:
        queries, wait = await logged(db, 1)
        async with db.stream("SELECT value FROM json_each(?)", ["[1, 2, 3]"]) as rows:
            assert [row[0] async for row in rows] == [1, 2, 3]
            assert not queries
        (query,) = await wait()
        assert (query.operation, query.rows, query.error) == ("batches", 3, None)


async def test_failed_and_cancelled_calls_are_logged_with_the_kind_of_their_error(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a UNIQUE)")
        await db.execute("INSERT INTO t VALUES ('secret')")
        _, wait = await logged(db, 4)
        with pytest.raises(flatwater.IntegrityError):
            await db.execute("INSERT INTO t VALUES (?)", ("secret",))
        with pytest.raises(flatwater.OperationalError):
            await db.query("SELECT * FROM nowhere")
        with pytest.raises(flatwater.Timeout):
            await db.query(ENDLESS, timeout=0.01)
        task = asyncio.create_task(db.query(ENDLESS))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        queries = await wait()
        assert [query.error for query in queries] == ["constraint", "sql", "timeout", "cancelled"]
        assert not any("secret" in f"{query!r} {query.sql}" for query in queries)


async def test_a_logger_is_called_by_the_loop_with_the_context_of_the_task(place):
    user = contextvars.ContextVar("user")
    async with flatwater.connect(place) as db:
        called = []
        db.add_statement_listener(lambda query: called.append((threading.get_ident(), user.get())))

        async def ask(name):
            user.set(name)
            await db.query("SELECT 1")

        await asyncio.gather(ask("Ada"), ask("Eve"))
        await until(lambda: len(called) == 2)
        assert sorted(called) == [(threading.get_ident(), "Ada"), (threading.get_ident(), "Eve")]


async def test_a_logger_that_was_removed_is_not_called_any_more(place):
    async with flatwater.connect(place) as db:
        calls = []

        def once(query):
            calls.append("once")
            db.remove_statement_listener(once)

        def second(query):
            calls.append("second")

        for logger in [once, second, once]:
            db.add_statement_listener(logger)
        for _ in range(3):
            await db.query("SELECT 1")
        await until(lambda: calls.count("second") == 3)
        assert calls.count("once") == 1
        # The call of the logger is on its way, and nobody has it called any more.
        await db.query("SELECT 1")
        db.remove_statement_listener(second)
        db.remove_statement_listener(second)
        await db.query("SELECT 1")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(calls) == 4


async def test_a_logger_that_raises_harms_nothing_and_is_reported(place, caplog):
    async with flatwater.connect(place) as db:
        queries = []

        def broken(query):
            raise ValueError("planted")

        db.add_statement_listener(broken)
        db.add_statement_listener(queries.append)
        assert await db.query_value("SELECT 7") == 7
        await until(lambda: queries)
        (record,) = [record for record in caplog.records if "a statement listener raised" in record.getMessage()]
        assert record.name == "flatwater"
        assert "planted" in str(record.exc_info[1])


async def test_a_logger_is_a_plain_function(place):
    async with flatwater.connect(place) as db:

        async def logger(query):
            raise AssertionError

        for wrong in [logger, None, "print"]:
            with pytest.raises(TypeError, match="a plain function"):
                db.add_statement_listener(wrong)
        assert await db.query_value("SELECT 1") == 1


async def test_a_logger_that_refers_to_its_database_does_not_keep_it(place):
    db = await flatwater.connect(place)
    db.add_statement_listener(functools.partial(print, db))
    await db.query("SELECT 1")
    await db.close()
    await asyncio.sleep(0)
    known = weakref.ref(db)
    del db
    gc.collect()
    assert known() is None


def test_a_logger_of_several_loops_is_called_in_each(file):
    async def ask(db, thread):
        for _ in range(100):
            await db.query("SELECT ?", (thread,))

    async def main():
        async with flatwater.connect(file) as db:
            called = []
            db.add_statement_listener(lambda query: called.append(threading.get_ident()))
            tasks = [asyncio.to_thread(asyncio.run, ask(db, thread)) for thread in range(4)]
            await asyncio.gather(*tasks)
            assert len(called) == 400 and threading.get_ident() not in called

    asyncio.run(main())


def test_without_a_loop_a_logger_is_called_before_the_call_returns(place, caplog):
    from flatwater import blocking

    with blocking.connect(place) as db:
        queries = []
        db.add_statement_listener(queries.append)
        db.execute("CREATE TABLE t (a)")
        assert [query.operation for query in queries] == ["execute"]
        with pytest.raises(flatwater.OperationalError):
            db.query("SELECT * FROM nowhere")
        assert [query.error for query in queries] == [None, "sql"]
        # What a logger asks of the database is not logged.
        db.add_statement_listener(lambda query: db.query_value("SELECT 1"))
        db.query("SELECT a FROM t")
        assert len(queries) == 3 and not caplog.records


async def test_a_slow_call_is_logged_as_a_warning(file, caplog):
    async with flatwater.connect(file, slow_statement=0) as db:
        await db.query("SELECT ?", ("secret",))
        await until(lambda: caplog.records)
        record = caplog.records[0]
        assert (record.name, record.levelno, record.thread) == (
            "flatwater.statement",
            logging.WARNING,
            threading.get_ident(),
        )
        assert record.getMessage().startswith("a slow call: ") and "secret" not in record.getMessage()
        assert record.fields["db.query.text"] == "SELECT ?" and record.fields["db.response.returned_rows"] == 1
        assert isinstance(record.fields["total_us"], int) and record.fields["in_transaction"] is False


async def test_the_level_says_what_is_logged(file, caplog):
    def names():
        return {(record.name, record.getMessage().partition(":")[0]) for record in caplog.records}

    external = ("flatwater", "checkpoints are left to another program")
    async with flatwater.connect(file, checkpoint="external") as db:
        await db.execute("CREATE TABLE t (a)")
    assert not names()
    caplog.set_level(logging.INFO, "flatwater.statement")
    caplog.set_level(logging.DEBUG, "flatwater")
    async with flatwater.connect(file, checkpoint="external") as db:
        await db.execute("INSERT INTO t VALUES (1)")
        await until(lambda: external in names())
    assert not any(name == "flatwater.statement" for name, _ in names())
    caplog.set_level(logging.DEBUG, "flatwater.statement")
    async with flatwater.connect(file) as db:
        await db.execute("INSERT INTO t VALUES (2)")
        await until(lambda: ("flatwater.statement", "a call") in names())


async def test_a_second_library_is_logged(file, caplog):
    async with flatwater.connect(file, tuning={"allow_second_sqlite": True}) as db:
        await db.execute("CREATE TABLE t (a)")
        other = sqlite3.connect(file)
        try:
            other.execute("SELECT * FROM t").fetchall()
            async with flatwater.connect(file, tuning={"allow_second_sqlite": True}) as again:
                await again.execute("INSERT INTO t VALUES (1)")
                await until(lambda: any("another SQLite library" in record.getMessage() for record in caplog.records))
        finally:
            other.close()


async def test_a_database_that_is_dropped_open_is_logged(place, caplog):
    db = await flatwater.connect(place)
    with pytest.warns(ResourceWarning):
        del db
        gc.collect()
    (record,) = [record for record in caplog.records if "dropped while it was open" in record.getMessage()]
    assert record.name == "flatwater" and record.levelno == logging.WARNING


def test_without_a_loop_records_come_with_the_calls(file, caplog):
    from flatwater import blocking

    with blocking.connect(file, slow_statement=0) as db:
        db.query("SELECT 1")
        assert any("SELECT 1" in record.getMessage() for record in caplog.records)


def test_events_that_were_lost_are_counted(caplog):
    records.write([], 3)
    assert "3 events were not logged" in caplog.text
