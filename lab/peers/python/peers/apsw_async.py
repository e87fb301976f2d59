"""The peer `py-apsw-async`: APSW's own asyncio connection, which is a thread of its own."""

import platform

import apsw

from peers.base import BUSY_SECONDS, STATEMENT_CACHE, Peer, as_json, settings


class ApswAsync(Peer):
    module = "apsw"
    has_names = False
    version = f"apsw {apsw.apsw_version()}, Python {platform.python_version()}"

    @classmethod
    async def open(cls, path, synchronous):
        database = await apsw.Connection.as_async(path, statementcachesize=STATEMENT_CACHE)
        await database.set_busy_timeout(BUSY_SECONDS * 1000)
        await (await database.execute(settings(synchronous))).fetchall()
        return cls(database)

    async def execute(self, sql, params=()):
        await self.database.execute(sql, params)

    async def each(self, sql, rows):
        await self.database.executemany(sql, rows)

    async def query(self, sql, params=()):
        return await (await self.database.execute(sql, params)).fetchall()

    async def one(self, sql, params=()):
        return await (await self.database.execute(sql, params)).fetchone()

    async def json(self, sql):
        cursor = await self.database.execute(sql)
        return as_json([column[0] for column in cursor.get_description()], await cursor.fetchall())

    async def total_changes(self):
        return await self.database.total_changes()

    async def close(self):
        await self.database.aclose()
