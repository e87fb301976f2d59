"""A queue of jobs in a table: claimed by one worker each, tried again later if they fail, and kept as dead at last.

It shows a queue without polling: a live query wakes a worker when a job comes, whichever process added it, and a timer
when one is due. A job that its worker does not end in time is claimed again, so a worker that dies loses none, and a
job may run twice. `jobs.py` has worker processes.

    python examples/python/work_queue.py [queue.db]
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import flatwater

JOBS = """
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    payload TEXT NOT NULL,                              -- JSON
    due REAL NOT NULL DEFAULT (unixepoch('subsec')),    -- When it may be claimed, in seconds.
    tries INTEGER NOT NULL DEFAULT 0,
    error TEXT,                                         -- Why the last try failed.
    is_dead INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX jobs_due ON jobs (due) WHERE NOT is_dead;
"""
ADD = "INSERT INTO jobs (payload, due) VALUES (?, unixepoch('subsec') + ?)"
NEXT = "SELECT min(due) FROM jobs WHERE NOT is_dead"
CLAIM = """
UPDATE jobs SET tries = tries + 1, due = unixepoch('subsec') + ?
WHERE id = (SELECT id FROM jobs WHERE NOT is_dead AND due <= unixepoch('subsec') ORDER BY due LIMIT 1)
RETURNING id, payload, tries
"""
# Who has claimed it since has another number of tries.
DONE = "DELETE FROM jobs WHERE id = ? AND tries = ?"
FAILED = """
UPDATE jobs SET error = ?, due = unixepoch('subsec') + ?, is_dead = tries >= ? WHERE id = ? AND tries = ?
"""

Handle = Callable[[Any, int], Awaitable[None]]


async def add(on: flatwater.Database | flatwater.Transaction, payload: Any, delay: float = 0) -> None:
    """Adds a job, in a transaction or on the database, that is due after so many seconds."""
    await on.execute(ADD, (json.dumps(payload), delay))


def growing(tries: int) -> float:
    """How many seconds a job waits after so many tries."""
    return 2.0**tries


class Worker:
    """Does jobs. `handle` gets the payload, and how many times it was tried."""

    def __init__(
        self,
        db: flatwater.Database,
        handle: Handle,
        *,
        lease: float = 30,
        most: int = 5,
        backoff: Callable[[int], float] = growing,
    ) -> None:
        self.db = db
        self.handle = handle
        self.lease = lease
        self.most = most
        self.backoff = backoff

    async def one(self) -> bool:
        """Does one job that is due. Returns False if there is none."""
        job = await self.db.query_optional(CLAIM, (self.lease,))
        if job is None:
            return False
        id_, payload, tries = job
        try:
            await self.handle(json.loads(payload), tries)
        except Exception as error:
            await self.db.execute(FAILED, (repr(error), self.backoff(tries), self.most, id_, tries))
        else:
            await self.db.execute(DONE, (id_, tries))
        return True

    async def run(self) -> None:
        """Does what is due, and sleeps until something else is. Cancel its task to end it."""
        async with self.db.live(NEXT) as news:
            told = asyncio.ensure_future(anext(aiter(news)))
            try:
                while True:
                    while await self.one():
                        pass
                    due = await self.db.query_value(NEXT)
                    wait = None if due is None else max(due - time.time(), 0.001)
                    await asyncio.wait([told], timeout=wait)
                    if told.done():
                        told.result()
                        told = asyncio.ensure_future(anext(aiter(news)))
            finally:
                told.cancel()
                with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                    await told


async def main(path: str) -> None:
    async def hello(payload: Any, tries: int) -> None:
        print(f"hello {payload['name']}, try {tries}")

    async with flatwater.connect(path, migrations=[("0001_jobs", JOBS)]) as db:
        worker = asyncio.create_task(Worker(db, hello).run())
        for name in ("Ada", "Eve"):
            await add(db, {"name": name})
        async with db.live("SELECT count(*) FROM jobs") as results:
            async for [[left]] in results:
                if left == 0:
                    break
        worker.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "queue.db"))
