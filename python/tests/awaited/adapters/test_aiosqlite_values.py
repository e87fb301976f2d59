"""Values and rows as a program of aiosqlite relies on them: the same tests for both modules."""

from __future__ import annotations

import datetime
import sqlite3
import uuid
from collections.abc import Iterator
from typing import Any

import aiosqlite as theirs
import pytest

import flatwater.aiosqlite as ours

INSERT = "INSERT INTO t VALUES (?)"


@pytest.fixture(params=[ours, theirs], ids=["ours", "theirs"])
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


class Point:
    def __conform__(self, protocol: object) -> str | None:
        return "a point" if protocol is sqlite3.PrepareProtocol else None


@pytest.fixture
def adapters() -> Iterator[None]:
    before = sqlite3.adapters.copy(), sqlite3.converters.copy()
    sqlite3.register_adapter(uuid.UUID, str)
    sqlite3.register_adapter(datetime.datetime, lambda value: value.isoformat(" "))
    sqlite3.register_converter("thing", lambda value: b"made of " + value)
    yield
    for kept, now in zip(before, (sqlite3.adapters, sqlite3.converters), strict=True):
        now.clear()
        now.update(kept)


async def test_values_are_stored_as_sqlite3_stores_them(module, place, adapters):
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    async with module.connect(place) as db:
        given = (float("nan"), True, moment, uuid.UUID(int=1), Point(), bytearray(b"b"), memoryview(b"m"), 1 << 62, 0.5)
        [row] = await db.execute_fetchall(f"SELECT {', '.join('?' * len(given))}", given)
        assert row[:3] == (None, 1, "2026-01-02 03:04:05+00:00")
        assert row[3:] == (str(uuid.UUID(int=1)), "a point", b"b", b"m", 1 << 62, 0.5)
        [row] = await db.execute_fetchall("SELECT :a, @b, $c", {"a": 1, "b": 2, "c": 3, "d": object()})
        assert row == (1, 2, 3)
        with pytest.raises(sqlite3.ProgrammingError):
            await db.execute("SELECT :a, :b", {"a": 1})
        with pytest.raises(sqlite3.ProgrammingError, match="Incorrect number of bindings supplied"):
            await db.execute("SELECT ?, ?", (1,))
        with pytest.raises(OverflowError):
            await db.execute("SELECT ?", (1 << 63,))
        with pytest.raises(sqlite3.Error):
            await db.execute("SELECT ?", (object(),))


async def test_converters_are_those_of_sqlite3(module, place, adapters):
    kinds = sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES
    async with module.connect(place, detect_types=kinds) as db:
        await db.execute("CREATE TABLE t (a thing, b THING(5), c)")
        await db.execute("INSERT INTO t VALUES ('x', NULL, 7)")
        async with db.execute('SELECT a, b, c, c AS "c [thing]", a || 1 FROM t') as cursor:
            assert [column[0] for column in cursor.description] == ["a", "b", "c", "c", "a || 1"]
            assert await cursor.fetchall() == [(b"made of x", None, 7, b"made of 7", "x1")]
        # An empty value is none to `sqlite3`, and a type needs no blank before it.
        async with db.execute('SELECT \'\' AS "e [thing]", x\'\' AS "f[thing]", 1.5 AS "g[thing]"') as cursor:
            assert [column[0] for column in cursor.description] == ["e", "f", "g"]
            assert await cursor.fetchall() == [(None, None, b"made of 1.5")]


async def test_rows_are_what_a_factory_makes(module, place):
    async with module.connect(place) as db:
        sql = "SELECT 1 AS one, 'x' AS \"Two words\" UNION ALL SELECT 2, 'y'"
        for factory in (module.Row, sqlite3.Row):
            db.row_factory = factory
            first, second = await db.execute_fetchall(sql)
            assert isinstance(first, factory) and isinstance(first, sqlite3.Row)
            assert (first["ONE"], first[1], first["two WORDS"], first[-1]) == (1, "x", "x", "x")
            assert (first.keys(), tuple(second), dict(second)["one"]) == (["one", "Two words"], (2, "y"), 2)
            assert first != second and first == (await db.execute_fetchall(sql))[0]
            with pytest.raises(IndexError):
                first["three"]
        db._conn.row_factory = lambda cursor, row: {column[0]: value for column, value in zip(cursor.description, row)}
        assert (await db.execute_fetchall(sql))[1] == {"one": 2, "Two words": "y"}
        async with db.execute(sql) as cursor:
            cursor.row_factory = lambda cursor, row: module.Row(cursor, row)["one"]
            assert [row async for row in cursor] == [1, 2]


async def test_a_text_is_what_the_factory_makes_of_its_bytes(module, place):
    async with module.connect(place) as db:
        sql = "SELECT 'a\u00e9', 1, x'00', NULL"
        db.text_factory = bytes
        assert await db.execute_fetchall(sql) == [("a\u00e9".encode(), 1, b"\0", None)]
        db.text_factory = lambda text: text.decode().upper()
        assert await db.execute_fetchall(sql) == [("A\u00c9", 1, b"\0", None)]
        db.text_factory = str
        with pytest.raises(sqlite3.OperationalError):
            await db.execute_fetchall("SELECT CAST(x'ff' AS TEXT)")
