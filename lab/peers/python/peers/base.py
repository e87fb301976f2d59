"""What the lanes call, and what all peers of this folder share.

Every connection is in autocommit, so a write is durable when it is answered, and a transaction is BEGIN IMMEDIATE to
COMMIT. A peer on the calling thread has coroutines that never suspend, which costs well below a microsecond a call; for
lanes that tell less than that apart, `one` and `write` are its own functions.
"""

import json

STATEMENT_CACHE = 128
BUSY_SECONDS = 30


def settings(synchronous):
    """The settings all peers share."""
    return (
        f"PRAGMA journal_mode = wal; PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = on; "
        "PRAGMA cache_size = -16384; PRAGMA mmap_size = 0;"
    )


def as_json(names, rows):
    """Rows as a JSON array of objects in UTF-8."""
    return json.dumps([dict(zip(names, row)) for row in rows], separators=(",", ":")).encode()


class Peer:
    """What the lanes call; `database` is the library's own connection."""

    # What a program imports.
    module = ""
    # It works on the calling thread only: lanes with tasks are not for it, and `one` and `write` are not awaited.
    one_thread = False
    # The library has rows that are read by name.
    has_names = True
    # Its connection has `create_function` of the sqlite3 module, not awaited.
    has_functions = False

    def __init__(self, database):
        self.database = database

    def one(self, sql, params=()):
        """The first row of a query, by the library's call for it."""
        raise NotImplementedError

    def write(self, sql, params=()):
        """A write that is durable when it is answered, by the library's call for it."""
        return self.execute(sql, params)

    def rows(self, sql, params=()):
        """All rows of a query as the library has them by default."""
        return self.query(sql, params)

    async def many(self, sql, rows):
        """One statement for each row, in one transaction."""
        await self.begin()
        await self.each(sql, rows)
        await self.commit()

    async def begin(self):
        await self.execute("BEGIN IMMEDIATE")

    async def commit(self):
        await self.execute("COMMIT")

    async def open_snapshot(self):
        await self.execute("BEGIN")

    async def close_snapshot(self):
        await self.execute("COMMIT")

    async def savepoint(self):
        await self.execute("SAVEPOINT step")

    async def release(self):
        await self.execute("RELEASE step")


class Synchronous(Peer):
    """Calls that sqlite3 and APSW spell alike."""

    one_thread = True

    def one(self, sql, params=()):
        return self.database.execute(sql, params).fetchone()

    def write(self, sql, params=()):
        self.database.execute(sql, params)

    async def execute(self, sql, params=()):
        self.database.execute(sql, params)

    async def each(self, sql, rows):
        self.database.executemany(sql, rows)

    async def query(self, sql, params=()):
        return self.database.execute(sql, params).fetchall()

    async def close(self):
        self.database.close()
