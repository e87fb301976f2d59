"""Giving space back, checking a database, and a database as bytes."""

from __future__ import annotations

import os
import sqlite3

import pytest

import flatwater
from flatwater import blocking

ROWS = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, a NOT NULL);"
    "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 500)"
    " INSERT INTO t SELECT n, randomblob(2000) FROM n; DELETE FROM t WHERE id > 20"
)


async def free(db):
    return await db.query_value("PRAGMA freelist_count")


async def test_a_vacuum_gives_space_back(place):
    async with flatwater.connect(place) as db:
        await db.executescript(ROWS)
        assert await free(db) > 100
        assert await db.vacuum() is None
        assert (await free(db), await db.query_value("SELECT count(*) FROM t")) == (0, 20)
        with pytest.raises(flatwater.Timeout):
            await db.vacuum(timeout=0)
        with pytest.raises(flatwater.ProgrammingError, match="auto_vacuum") as raised:
            await db.incremental_vacuum(1)
        assert "`vacuum`" in str(raised.value.hint)
    if place != ":memory:":
        assert os.path.getsize(place) < 200_000


async def test_a_compact_copy_is_a_file_of_its_own(place, tmp_path):
    copy = tmp_path / "copy.db"
    async with flatwater.connect(place) as db:
        await db.executescript(ROWS)
        assert await db.vacuum_into(copy) is None
        assert await free(db) > 100
        with pytest.raises(flatwater.ProgrammingError, match="exists"):
            await db.vacuum_into(copy)
    plain = sqlite3.connect(copy)
    assert plain.execute("PRAGMA freelist_count").fetchall() == [(0,)]
    assert plain.execute("SELECT count(*) FROM t").fetchall() == [(20,)]
    plain.close()


async def test_pages_are_given_back_some_at_a_time(place):
    async with flatwater.connect(place, tuning={"auto_vacuum": "incremental"}) as db:
        await db.executescript(ROWS)
        pages = await free(db)
        assert await db.incremental_vacuum(7) == 7
        assert await db.incremental_vacuum() == pages - 7
        assert await free(db) == 0


async def test_a_check_yields_the_problems(file):
    async with flatwater.connect(file) as db:
        await db.executescript(ROWS)
        assert [problem async for problem in db.integrity_check()] == []
        with pytest.raises(flatwater.OperationalError, match="no such table"):
            _ = [problem async for problem in db.integrity_check(table="nowhere")]
    plain = sqlite3.connect(file)
    plain.executescript("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '')")
    plain.close()
    plain = sqlite3.connect(file)
    plain.executescript(
        "UPDATE t SET a = NULL; PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = replace(sql, 'a)', 'a NOT NULL)')"
    )
    plain.close()
    async with flatwater.connect(file) as db:
        problems = [problem async for problem in db.integrity_check()]
        assert problems == ["NULL value in t.a"] * 20
        assert [problem async for problem in db.integrity_check(table="t", quick=True)] == problems
        check = db.integrity_check(name="main")
        assert await anext(check) == "NULL value in t.a"
        await check.aclose()
        await db.execute("UPDATE t SET a = 1")
        assert [problem async for problem in db.integrity_check()] == []


async def test_bytes_are_the_database(place):
    async with flatwater.connect(place) as db:
        await db.executescript(ROWS)
        data = await db.serialize()
        assert isinstance(data, bytes)
    for given in (data, bytearray(data)):
        async with flatwater.connect(":memory:", tuning={"deserialize": given}) as copy:
            assert await copy.query_value("SELECT count(*) FROM t") == 20
            await copy.execute("DELETE FROM t")
    if hasattr(sqlite3.Connection, "deserialize"):
        plain = sqlite3.connect(":memory:")
        plain.deserialize(data)
        assert plain.execute("SELECT count(*) FROM t").fetchall() == [(20,)]
        async with flatwater.connect(":memory:", tuning={"deserialize": plain.serialize()}) as copy:
            assert await copy.query_value("SELECT count(*) FROM t") == 20
    with pytest.raises(flatwater.DatabaseError):
        await flatwater.connect(":memory:", tuning={"deserialize": b"no database" * 100})
    with pytest.raises(TypeError, match="bytes"):
        await flatwater.connect(":memory:", tuning={"deserialize": "text"})
    with pytest.raises(flatwater.ProgrammingError, match="in memory"):
        await flatwater.connect("app.db", tuning={"deserialize": data})


def test_the_same_calls_wait(place, tmp_path):
    with blocking.connect(place, tuning={"auto_vacuum": "incremental"}) as db:
        db.executescript(ROWS)
        assert db.incremental_vacuum(3) == 3
        assert db.vacuum() is None
        assert db.query_value("PRAGMA freelist_count") == 0
        assert db.vacuum_into(tmp_path / "copy.db") is None
        assert list(db.integrity_check()) == list(db.integrity_check(table="t", quick=True)) == []
        with blocking.connect(":memory:", tuning={"deserialize": db.serialize()}) as copy:
            assert copy.query_value("SELECT count(*) FROM t") == 20


async def test_a_file_of_strangers_is_only_read_and_ends(file):
    plain = sqlite3.connect(file)
    plain.executescript(
        "CREATE TABLE t (a); INSERT INTO t VALUES (5); CREATE VIEW endless AS"
        " WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    )
    plain.close()
    async with flatwater.connect(file, tuning={"untrusted": True, "step_limit": 100_000}) as db:
        assert await db.query_value("SELECT a FROM t") == 5
        with pytest.raises(flatwater.OperationalError, match="more than 100000 steps"):
            await db.query("SELECT * FROM endless")
        with pytest.raises(flatwater.ProgrammingError, match="read-only"):
            await db.execute("DELETE FROM t")
    for options in (
        {"read_only": False, "tuning": {"untrusted": True}},
        {"tuning": {"untrusted": True}, "read_only": False},
    ):
        async with flatwater.connect(file, **options) as db:
            await db.execute("UPDATE t SET a = 5")
    with blocking.connect(file, tuning={"untrusted": True}) as db:
        assert db.query_value("SELECT a FROM t") == 5


async def test_statistics_are_made_at_the_close_unless_a_program_turns_that_off(file):
    async with flatwater.connect(file, optimize_every=False) as db:
        await db.executescript("CREATE TABLE t (a UNIQUE); INSERT INTO t VALUES (1), (2)")
    async with flatwater.connect(file) as db:
        assert await db.query_value("SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'") == 0
        await db.execute("INSERT INTO t VALUES (3)")
    async with flatwater.connect(file, optimize_every=3600) as db:
        assert await db.query_value("SELECT count(*) FROM sqlite_stat1") == 1
