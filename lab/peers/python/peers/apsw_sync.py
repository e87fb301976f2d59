"""The peer `py-apsw`: APSW with the SQLite in its wheel, on the calling thread."""

import platform

import apsw

from peers.base import BUSY_SECONDS, STATEMENT_CACHE, Synchronous, as_json, settings


class Apsw(Synchronous):
    module = "apsw"
    has_names = False
    version = f"apsw {apsw.apsw_version()}, Python {platform.python_version()}"

    @classmethod
    async def open(cls, path, synchronous):
        database = apsw.Connection(path, statementcachesize=STATEMENT_CACHE)
        database.set_busy_timeout(BUSY_SECONDS * 1000)
        # A cursor stops at each row that a statement answers.
        database.execute(settings(synchronous)).fetchall()
        return cls(database)

    async def json(self, sql):
        cursor = self.database.execute(sql)
        return as_json([column[0] for column in cursor.get_description()], cursor.fetchall())

    async def total_changes(self):
        return self.database.total_changes()
