"""What the lanes call, and what all peers of this folder share.

Every connection is in autocommit, so a write is durable when it is answered, and a transaction is BEGIN IMMEDIATE to
COMMIT. A peer on the calling thread has coroutines that never suspend, which costs well below a microsecond a call.
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

    # It works on the calling thread only: lanes with tasks are not for it.
    one_thread = False

    def __init__(self, database):
        self.database = database

    async def many(self, sql, rows):
        """One statement for each row, in one transaction."""
        await self.begin()
        await self.each(sql, rows)
        await self.commit()

    async def begin(self):
        await self.execute("BEGIN IMMEDIATE")

    async def commit(self):
        await self.execute("COMMIT")


class Synchronous(Peer):
    """Calls that sqlite3 and APSW spell alike."""

    one_thread = True

    async def execute(self, sql, params=()):
        self.database.execute(sql, params)

    async def each(self, sql, rows):
        self.database.executemany(sql, rows)

    async def query(self, sql, params=()):
        return self.database.execute(sql, params).fetchall()

    async def close(self):
        self.database.close()
