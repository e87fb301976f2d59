"""The peer `py-flatwater`: Flatwater's Python package, built from this working tree.

A call answers the library's own coroutine, where the lanes need nothing else.
"""

import importlib.metadata
import platform

import flatwater

from peers.base import Peer

DURABILITY = {"NORMAL": "normal", "FULL": "full"}


class Flatwater(Peer):
    module = "flatwater"
    has_functions = True
    version = f"flatwater {importlib.metadata.version('flatwater')}, Python {platform.python_version()}"

    def __init__(self, database):
        super().__init__(database)
        # What runs statements now: the database, or the innermost open transaction.
        self.on = database
        self.transactions = []

    @classmethod
    async def open(cls, path, synchronous):
        return cls(await flatwater.connect(path, durability=DURABILITY[synchronous]))

    def execute(self, sql, params=()):
        return self.on.execute(sql, params)

    def each(self, sql, rows):
        return self.on.executemany(sql, rows)

    many = each

    def query(self, sql, params=()):
        return self.on.query(sql, params, into=tuple)

    def one(self, sql, params=()):
        return self.on.query_one(sql, params, into=tuple)

    def rows(self, sql, params=()):
        return self.on.query(sql, params)

    named = rows

    async def json(self, sql):
        return (await self.on.query_json(sql)).encode()

    async def begin(self):
        self.transactions.append(self.on.transaction())
        self.on = await self.transactions[-1].__aenter__()

    async def commit(self):
        ended = self.transactions.pop()
        self.on = self.transactions[-1] if self.transactions else self.database
        await ended.__aexit__(None, None, None)

    async def open_snapshot(self):
        self.transactions.append(self.on.snapshot())
        self.on = await self.transactions[-1].__aenter__()

    close_snapshot = commit
    savepoint = begin
    release = commit

    async def total_changes(self):
        # The count is the writer's own, and a query outside of a transaction runs on a reader.
        async with self.database.transaction() as transaction:
            return await transaction.query_value("SELECT total_changes()")

    async def close(self):
        await self.database.close()
