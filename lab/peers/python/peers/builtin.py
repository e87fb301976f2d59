"""The peer `py-sqlite3`: the module that comes with Python, on the calling thread."""

import platform
import sqlite3

from peers.base import BUSY_SECONDS, STATEMENT_CACHE, Synchronous, as_json, settings


class Sqlite3(Synchronous):
    module = "sqlite3"
    has_functions = True
    version = f"Python {platform.python_version()}"

    @classmethod
    async def open(cls, path, synchronous):
        options = dict(timeout=BUSY_SECONDS, isolation_level=None, cached_statements=STATEMENT_CACHE)
        database = sqlite3.connect(path, **options)
        database.executescript(settings(synchronous))
        return cls(database)

    async def named(self, sql):
        cursor = self.database.cursor()
        cursor.row_factory = sqlite3.Row
        return cursor.execute(sql).fetchall()

    async def json(self, sql):
        cursor = self.database.execute(sql)
        return as_json([column[0] for column in cursor.description], cursor.fetchall())

    async def total_changes(self):
        return self.database.total_changes
