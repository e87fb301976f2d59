"""`executemany` that fails in the middle: the same tests for aiosqlite itself and for `flatwater.aiosqlite`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import aiosqlite as theirs
import pytest

import flatwater.aiosqlite as ours

INSERT = "INSERT INTO t VALUES (?)"


def raises_at_the_third() -> Iterator[Any]:
    yield (1,)
    yield (2,)
    raise ZeroDivisionError


class NoParameters:
    """Cannot be stored."""


FAILING: dict[str, tuple[Callable[[], Any], type[BaseException]]] = {
    "constraint": (lambda: [(1,), (2,), (1,), (3,)], sqlite3.IntegrityError),
    "count": (lambda: [(1,), (2,), (3, 4), (5,)], sqlite3.ProgrammingError),
    "value": (lambda: [(1,), (2,), (NoParameters(),), (3,)], sqlite3.Error),
    "row": (lambda: [(1,), (2,), 3, (4,)], sqlite3.ProgrammingError),
    "integer": (lambda: [(1,), (2,), (2**64,), (3,)], OverflowError),
    "text": (lambda: [(1,), (2,), ("\ud800",), (3,)], UnicodeEncodeError),
    "iterator": (raises_at_the_third, ZeroDivisionError),
}


@pytest.fixture(params=["ours", "own", "theirs"])
def connections(request: pytest.FixtureRequest) -> Any:
    async def connect(place: Any, **options: Any) -> Any:
        db = await (theirs if request.param == "theirs" else ours).connect(place, **options)
        await db.execute("CREATE TABLE IF NOT EXISTS t (a UNIQUE)")
        if request.param == "own":
            await db.execute("CREATE TEMP TABLE own (a)")
        return db

    return connect


async def values(db: Any) -> list[Any]:
    return [row[0] for row in await db.execute_fetchall("SELECT a FROM t ORDER BY a")]


@pytest.mark.parametrize("level", ["", None])
@pytest.mark.parametrize("failing", FAILING)
async def test_the_rows_before_one_that_fails_stay(connections, file, level, failing):
    rows, raised = FAILING[failing]
    db, other = await connections(file, isolation_level=level), await connections(file)
    cursor = await db.cursor()
    with pytest.raises(raised):
        await cursor.executemany(INSERT, rows())
    assert db.in_transaction is (level is not None)
    assert await values(db) == [1, 2]
    assert await values(other) == ([] if db.in_transaction else [1, 2])
    assert (db.total_changes, cursor.rowcount, cursor.lastrowid) == (2, -1, None)
    assert await db.execute_fetchall("SELECT last_insert_rowid(), total_changes()") == [(2, 2)]
    # The transaction goes on.
    await db.execute(INSERT, (9,))
    await db.commit()
    assert await values(other) == [1, 2, 9]
    await db.close()
    await other.close()


async def test_a_row_that_takes_the_transaction_along_takes_those_before_it(connections, file):
    db = await connections(file)
    await db.execute(INSERT, (0,))
    with pytest.raises(sqlite3.IntegrityError):
        await db.executemany("INSERT OR ROLLBACK INTO t VALUES (?)", [(1,), (1,)])
    assert not db.in_transaction and await values(db) == []
    await db.commit()
    await db.executemany(INSERT, [(5,)])
    await db.commit()
    assert await values(db) == [5]
    await db.close()


async def test_a_savepoint_undoes_the_rows_that_stayed(connections, file):
    db = await connections(file, isolation_level=None)
    await db.execute("SAVEPOINT outer")
    await db.executemany(INSERT, [(0,)])
    await db.execute("SAVEPOINT s")
    with pytest.raises(sqlite3.IntegrityError):
        await db.executemany(INSERT, [(1,), (1,)])
    assert await values(db) == [0, 1]
    await db.execute("ROLLBACK TO s")
    assert await values(db) == [0]
    await db.execute("RELEASE outer")
    assert not db.in_transaction and await values(db) == [0]
    await db.close()


async def test_what_many_rows_change_is_told(connections, file):
    db = await connections(file)
    told = "SELECT last_insert_rowid(), changes(), total_changes()"
    for sql, rows, expected in (
        (INSERT, [(1,), (2,), (3,)], (3, 1, 3)),
        ("UPDATE t SET a = a + ? WHERE a > 1", [(10,), (10,)], (3, 2, 7)),
        ("DELETE FROM t WHERE a = ?", [(1,), (99,)], (3, 0, 8)),
    ):
        await db.executemany(sql, rows)
        assert await db.execute_fetchall(told) == [expected], sql
        await db.commit()
        assert await db.execute_fetchall(told) == [expected], sql
    await db.close()
