"""A program that writes all the time, and says which rows were acknowledged: `app.py DATABASE`.

It is to be killed at any moment. Litestream runs beside it (README.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys

import flatwater

TASKS = 20


async def order(db: flatwater.Database) -> None:
    while True:
        done = await db.execute(
            "INSERT INTO orders (note) VALUES (hex(randomblob(1000)))"
        )
        # What follows is said only of rows that are committed.
        print(
            "acknowledged",
            done.last_insert_rowid,
            db.stats()["wal"]["resets"],
            flush=True,
        )


async def main(path: str) -> None:
    async with flatwater.connect(path) as db:
        await db.execute(
            "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY AUTOINCREMENT, note TEXT NOT NULL)"
        )
        orders = asyncio.gather(*(order(db) for _ in range(TASKS)))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, orders.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await orders


asyncio.run(main(sys.argv[1]))
