"""What the tests of logical connections have in common."""

from __future__ import annotations

import asyncio
from typing import Any

import flatwater.aiosqlite as aiosqlite
from flatwater._logical.own import Own

INSERT = "INSERT INTO t VALUES (?)"
# More than a cursor holds.
LARGE = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 200000) SELECT x, 'text' FROM n"


async def made(path: Any, **options: Any) -> aiosqlite.Connection:
    """A connection of a file with a table."""
    db = await aiosqlite.connect(path, **options)
    await db.execute("CREATE TABLE IF NOT EXISTS t (a)")
    return db


async def values(db: aiosqlite.Connection) -> list[Any]:
    return [row[0] for row in await db.execute_fetchall("SELECT a FROM t ORDER BY a")]


def has_its_own(db: aiosqlite.Connection) -> bool:
    return isinstance(db._core.mode, Own)


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.001)
