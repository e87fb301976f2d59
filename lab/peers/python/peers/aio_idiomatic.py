"""The peer `py-aiosqlite-idiomatic`: aiosqlite as its documentation shows it, with a cursor for each query and a commit
after each write.
"""

import sqlite3

import aiosqlite

from peers.aio import Aiosqlite
from peers.base import BUSY_SECONDS, STATEMENT_CACHE, settings


class Idiomatic(Aiosqlite):
    def __init__(self, database):
        super().__init__(database)
        self.in_transaction = False

    @classmethod
    async def open(cls, path, synchronous):
        database = await aiosqlite.connect(path, timeout=BUSY_SECONDS, cached_statements=STATEMENT_CACHE)
        await database.executescript(settings(synchronous))
        return cls(database)

    async def execute(self, sql, params=()):
        await self.database.execute(sql, params)
        if not self.in_transaction:
            await self.database.commit()

    async def query(self, sql, params=()):
        async with self.database.execute(sql, params) as cursor:
            return await cursor.fetchall()

    async def one(self, sql, params=()):
        async with self.database.execute(sql, params) as cursor:
            return await cursor.fetchone()

    async def named(self, sql):
        async with self.database.execute(sql) as cursor:
            cursor.row_factory = sqlite3.Row
            return await cursor.fetchall()

    async def begin(self):
        await self.database.execute("BEGIN IMMEDIATE")
        self.in_transaction = True

    async def open_snapshot(self):
        await self.database.execute("BEGIN")
        self.in_transaction = True

    async def close_snapshot(self):
        await self.commit()

    async def commit(self):
        await self.database.commit()
        self.in_transaction = False
