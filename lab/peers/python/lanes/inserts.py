"""insert_sequential, single_insert, insert_at_once_100: small INSERTs, each a write of its own.

`work_us` of `insert_at_once_100` is above a gather of as many coroutines that do nothing, in the same process.
"""

import asyncio

from data import DELETE_T, INSERT_T, T, expect_t, t_rows
from lane import Lane
from lanes import noop
from measure import Timing, timed

AT_ONCE = 100


async def sequential(trial):
    rows = t_rows(trial.size(50_000, 200))
    async with trial.open() as peer:
        await peer.execute(T)
        floor = await noop.write_floor(trial, peer)
        timing = Timing()
        for row in rows:
            await timing.time(peer.execute(INSERT_T, row))
        figures = timing.end(len(rows), floor)
        await expect_t(peer, len(rows))
        return figures


async def single(trial):
    rounds = trial.size(100, 3)
    rows = t_rows(AT_ONCE)
    async with trial.open() as peer:
        await peer.execute(T)
        floor = await noop.write_floor(trial, peer)
        timing = Timing()
        for _ in range(rounds):
            timing.pause()
            await peer.execute(DELETE_T)
            timing.resume()
            for row in rows:
                await timing.time(peer.execute(INSERT_T, row))
        figures = timing.end(rounds * AT_ONCE, floor)
        await expect_t(peer, AT_ONCE)
        return figures


async def nothing():
    pass


async def gather_floor(count):
    """Latencies of a gather of coroutines that are ready at once."""
    samples = []
    for _ in range(count):
        await timed(samples, asyncio.gather(*(nothing() for _ in range(AT_ONCE))))
    return samples


async def at_once(trial):
    rounds = trial.size(200, 3)
    rows = t_rows(AT_ONCE)
    async with trial.open() as peer:
        await peer.execute(T)
        floor = await gather_floor(rounds)
        timing = Timing()
        for _ in range(rounds):
            timing.pause()
            await peer.execute(DELETE_T)
            timing.resume()
            await timing.time(asyncio.gather(*(peer.execute(INSERT_T, row) for row in rows)))
        figures = timing.end(rounds * AT_ONCE, floor)
        await expect_t(peer, AT_ONCE)
        return figures


LANES = [
    Lane("writes", "insert_sequential", "small inserts, awaited one after another", "inserts", sequential,
         release=True),
    Lane("profile", "single_insert", "small inserts into a small table, above the noop", "inserts", single),
    Lane("writes", "insert_at_once_100", "100 small inserts issued at once", "inserts", at_once, release=True,
         tasks=True),
]
