"""insert_concurrent_{1,2,10,100,1000} and `_full`: many tasks insert, each awaiting its own one after another.

The tasks share one connection, as the libraries mean it, and run on asyncio's one thread.
"""

import asyncio
from functools import partial

from data import INSERT_T, T, expect_t, t_rows
from lane import Lane
from measure import Timing


async def inserts(timing, peer, rows):
    for row in rows:
        await timing.time(peer.execute(INSERT_T, row))


async def run(trial, tasks, synchronous):
    full = 10_000 if synchronous == "FULL" else 40_000
    each = trial.size(full, max(200, tasks)) // tasks
    rows = t_rows(each * tasks)
    async with trial.open(synchronous) as peer:
        await peer.execute(T)
        shares = [rows[at:at + each] for at in range(0, len(rows), each)]
        timing = Timing()
        await asyncio.gather(*(inserts(timing, peer, share) for share in shares))
        figures = timing.end(len(rows))
        await expect_t(peer, len(rows))
        return figures


LANES = [
    Lane("group", f"insert_concurrent_{tasks}{form}",
         f"{tasks} task(s) that insert, durability {synchronous.lower()}, one asyncio thread", "inserts",
         partial(run, tasks=tasks, synchronous=synchronous), release=True, tasks=tasks > 1)
    for form, synchronous in [("", "NORMAL"), ("_full", "FULL")]
    for tasks in (1, 2, 10, 100, 1000)
]
