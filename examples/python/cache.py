"""A cache of values by key, each for a time: for what is slow to make, and may be made again.

It shows a cache that all processes of a file share. A value that is missing is made once in a process, however many ask
for it. What has expired is never returned, and is deleted by a sweep, in parts that keep no writer waiting.

    python examples/python/cache.py [cache.db]
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import flatwater

CACHE = """
CREATE TABLE cache (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,        -- JSON
    expires REAL NOT NULL       -- In seconds.
) STRICT, WITHOUT ROWID;
CREATE INDEX cache_expires ON cache (expires);
"""
GET = "SELECT value FROM cache WHERE key = ? AND expires > unixepoch('subsec')"
SET = """
INSERT INTO cache VALUES (?, ?, unixepoch('subsec') + ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires
"""
SWEEP = """
DELETE FROM cache WHERE key IN (SELECT key FROM cache WHERE expires <= unixepoch('subsec') ORDER BY expires LIMIT ?)
"""


class Cache:
    """The values of a database."""

    def __init__(self, db: flatwater.Database) -> None:
        self.db = db
        # What is being made, by key.
        self._making: dict[str, asyncio.Task[Any]] = {}

    async def get(self, key: str) -> Any:
        """Returns the value, or None."""
        row = await self.db.query_optional(GET, (key,))
        return None if row is None else json.loads(row["value"])

    async def set(self, key: str, value: Any, seconds: float) -> None:
        """Stores a value, which must have a form in JSON, for a time."""
        await self.db.execute(SET, (key, json.dumps(value), seconds))

    async def delete(self, key: str) -> None:
        """Forgets a value."""
        await self.db.execute("DELETE FROM cache WHERE key = ?", (key,))

    async def get_or_make(self, key: str, seconds: float, make: Callable[[], Awaitable[Any]]) -> Any:
        """Returns the value, which is made and stored if it is not there."""
        value = await self.get(key)
        if value is not None:
            return value
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.create_task(self._make(key, seconds, make))
            making.add_done_callback(lambda _: self._making.pop(key, None))
        # Who gives up waiting does not end it for others.
        return await asyncio.shield(making)

    async def _make(self, key: str, seconds: float, make: Callable[[], Awaitable[Any]]) -> Any:
        value = await make()
        await self.set(key, value, seconds)
        return value

    async def sweep(self, at_once: int = 500) -> int:
        """Deletes what has expired, so many at a time, and returns their number."""
        swept, changes = 0, at_once
        while changes == at_once:
            changes = (await self.db.execute(SWEEP, (at_once,))).changes
            swept += changes
        return swept


async def main(path: str) -> None:
    async def slow() -> dict[str, int]:
        print("made")
        return {"answer": 42}

    async with flatwater.connect(path, migrations=[("0001_cache", CACHE)]) as db:
        cache = Cache(db)
        print(await asyncio.gather(*(cache.get_or_make("answer", 60, slow) for _ in range(3))))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "cache.db"))
