"""The peer `py-aiosqlite`: asyncio over a thread of its own with Python's sqlite3."""

import platform
import sqlite3

import aiosqlite

from peers.base import BUSY_SECONDS, STATEMENT_CACHE, Peer, as_json, settings


class Aiosqlite(Peer):
    module = "aiosqlite"
    version = f"aiosqlite {aiosqlite.__version__}, Python {platform.python_version()}"

    @classmethod
    async def open(cls, path, synchronous):
        options = dict(timeout=BUSY_SECONDS, isolation_level=None, cached_statements=STATEMENT_CACHE)
        database = await aiosqlite.connect(path, **options)
        await database.executescript(settings(synchronous))
        return cls(database)

    async def execute(self, sql, params=()):
        await self.database.execute(sql, params)

    async def each(self, sql, rows):
        await self.database.executemany(sql, rows)

    async def query(self, sql, params=()):
        return await self.database.execute_fetchall(sql, params)

    async def one(self, sql, params=()):
        return next(iter(await self.database.execute_fetchall(sql, params)), None)

    async def named(self, sql):
        self.database.row_factory = sqlite3.Row
        try:
            return await self.database.execute_fetchall(sql)
        finally:
            self.database.row_factory = None

    async def json(self, sql):
        async with self.database.execute(sql) as cursor:
            return as_json([column[0] for column in cursor.description], await cursor.fetchall())

    async def total_changes(self):
        return self.database.total_changes

    async def close(self):
        await self.database.close()
