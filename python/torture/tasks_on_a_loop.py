"""Tasks of an event loop, whose blocks end in every way."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

from ledger import HANGS, INSERT, OWN, Finding, Ledger, Undo, is_idle_end

import flatwater

TASKS = 8


class Tasks:
    """Tasks of an event loop, whose blocks end in every way."""

    def __init__(self, path: str, options: dict[str, Any], ledger: Ledger) -> None:
        self.path, self.options, self.ledger = path, options, ledger

    async def work(self, db: flatwater.Database, rng: random.Random, inside: asyncio.Event) -> None:
        rows: list[int] = []
        try:
            async with db.transaction() as tx:
                inside.set()
                for _ in range(rng.randint(1, 3)):
                    rows.append(self.ledger.number())
                    async with tx.transaction():
                        await tx.execute(INSERT, (rows[-1],))
                if rng.random() < 0.3:
                    try:
                        await db.execute(INSERT, (0,))
                    except flatwater.ProgrammingError as error:
                        if OWN not in str(error):
                            raise
                        self.ledger.count("own blocks of tasks")
                    else:
                        if tx.in_transaction:
                            raise Finding("a write on the database took place inside of a block of its task")
                        raise Undo
                if rng.random() < 0.3:
                    raise Undo
                if rng.random() < 0.1:
                    await asyncio.get_running_loop().create_future()
            self.ledger.keep(rows)
            self.ledger.count("committed blocks of tasks")
        except Undo:
            self.ledger.count("undone blocks of tasks")
        except asyncio.CancelledError:
            # It may have been in its commit.
            self.ledger.leave_open(rows)
            raise
        except flatwater.Error as error:
            if not is_idle_end(error):
                raise
            self.ledger.count("idle blocks of tasks")

    async def client(self, db: flatwater.Database, rng: random.Random, until: float) -> None:
        while self.ledger.goes_on(until, "committed blocks of tasks"):
            inside = asyncio.Event()
            task = asyncio.ensure_future(self.work(db, rng, inside))
            waiting = asyncio.ensure_future(inside.wait())
            await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED, timeout=HANGS)
            waiting.cancel()
            await asyncio.wait([task], timeout=0.1)
            if not task.done():
                # It waits for ever, for the writer, or for its commit.
                task.cancel()
                self.ledger.count("cancelled tasks")
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(task, HANGS)
            n = self.ledger.number()
            await db.execute(INSERT, (n,), timeout=HANGS)
            self.ledger.keep([n])

    async def main(self, seed: int, until: float) -> None:
        async with flatwater.connect(self.path, **self.options) as db:
            clients = [self.client(db, random.Random(f"{seed} {number}"), until) for number in range(TASKS)]
            await asyncio.gather(*clients)
