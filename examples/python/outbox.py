"""An outbox: messages to another system that are sent if, and only if, the transaction that wrote them commits.

It shows a live query that drains a table. It wakes the sender when a message comes, whichever process wrote it. A
message is deleted after it was sent, so it is sent at least once: the other side tells repeated ones by their number.

    python examples/python/outbox.py [outbox.db]
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import flatwater

OUTBOX = """
CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, payload TEXT NOT NULL) STRICT;
"""
FIRST = "SELECT id, topic, payload FROM outbox ORDER BY id LIMIT 1"
MOST_SECONDS = 60.0

Send = Callable[[int, str, Any], Awaitable[None]]


async def post(tx: flatwater.Transaction, topic: str, payload: Any) -> None:
    """Writes a message, in the transaction of what it tells of."""
    await tx.execute("INSERT INTO outbox (topic, payload) VALUES (?, ?)", (topic, json.dumps(payload)))


async def drain(db: flatwater.Database, send: Send, *, pause: float = 0.1) -> None:
    """Sends messages in their order. One that cannot be sent holds up those behind it, and is tried again after a pause
    that grows. A file has one sender at a time. Cancel its task to end it."""
    async with db.live(FIRST) as news:
        # What it returns may be older than what was deleted meanwhile: it wakes, and is not sent.
        async for _ in news:
            while (message := await db.query_optional(FIRST)) is not None:
                await send_one(message, send, pause)
                await db.execute("DELETE FROM outbox WHERE id = ?", (message["id"],))


async def send_one(message: flatwater.Row, send: Send, pause: float) -> None:
    """Sends a message, however often that fails."""
    while True:
        try:
            return await send(message["id"], message["topic"], json.loads(message["payload"]))
        except Exception:
            await asyncio.sleep(pause)
            pause = min(pause * 2, MOST_SECONDS)


async def main(path: str) -> None:
    async def show(id_: int, topic: str, payload: Any) -> None:
        print(topic, payload)

    async with flatwater.connect(path, migrations=[("0001_outbox", OUTBOX)]) as db:
        draining = asyncio.create_task(drain(db, show))
        async with db.transaction() as tx:
            await post(tx, "order", {"id": 1})
            await post(tx, "order", {"id": 2})
        async with db.live("SELECT count(*) FROM outbox") as results:
            async for [[left]] in results:
                if left == 0:
                    break
        draining.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "outbox.db"))
