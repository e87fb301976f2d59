"""cancelled_{1,8}: how soon the next statement is answered after so many long queries were cancelled.

The sample is the time from the cancellation to the answer, in turns to an insert and to a query; `write_*_us` and
`read_*_us` tell them apart. Each query would take about 500 ms, and is cancelled after 20 ms.
"""

import asyncio
from functools import partial
from time import perf_counter_ns

from data import INSERT_T, T, expect, expect_t, t_rows
from lane import Lane
from lanes.loop_holds import SUM
from measure import Timing

NUMBERS = 4_500_000
BEFORE_SECONDS = 0.02


async def cancel_some(peer, count, following):
    """Cancels as many queries while one of them runs. Answers how long `following` took, and its answer."""
    tasks = [asyncio.create_task(peer.query(SUM, (NUMBERS,))) for _ in range(count)]
    await asyncio.sleep(BEFORE_SECONDS)
    expect([task.done() for task in tasks], [False] * count, "queries that had ended before they were cancelled")
    began = perf_counter_ns()
    for task in tasks:
        task.cancel()
    answer = await following
    took = perf_counter_ns() - began
    await asyncio.gather(*tasks, return_exceptions=True)
    expect([task.cancelled() for task in tasks], [True] * count, "tasks that were cancelled")
    return took, answer


async def run(trial, count):
    rows = t_rows(trial.size(16 // count, 1))
    kinds = {"write": [], "read": []}
    async with trial.open() as peer:
        await peer.execute(T)
        timing = Timing()
        for at, row in enumerate(rows, 1):
            took, _ = await cancel_some(peer, count, peer.execute(INSERT_T, row))
            kinds["write"].append(took)
            took, answer = await cancel_some(peer, count, peer.query("SELECT count(*) FROM t"))
            expect(answer, [(at,)], "rows after an insert")
            kinds["read"].append(took)
        timing.samples = kinds["write"] + kinds["read"]
        for kind, samples in kinds.items():
            timing.kind(kind, samples)
        figures = timing.end(len(timing.samples))
        await expect_t(peer, len(rows))
        return figures


LANES = [
    Lane("process", f"cancelled_{count}", f"the next statement after {count} cancelled queries of 0.5 s", "statements",
         partial(run, count=count), tasks=True)
    for count in (1, 8)
]
