"""loop_holds: for how long the loop can do nothing else while calls are awaited on it.

A task ticks every millisecond. `KIND_longest_gap_us` is the longest time between two ticks, `KIND_longest_cpu_us` the most
CPU time of the loop's thread between two, and `KIND_longest_callback_us` the most in one callback of the loop, while: `idle`,
nothing runs, the control; `statement`, a sum that takes about 500 ms; `calls`, point queries one after another; `many_300k`,
one statement for each of so many rows; `rows_300k`, so many rows as the library has them; `freed_300k`, such a result is
dropped. `longest_cpu_us` is the longest of all but the control.
The sample is one call.
"""

import asyncio
from functools import partial

from data import DELETE_T, INSERT_T, T, expect, expect_rows, t_row, t_rows
from lane import Lane
from measure import Timing
from ticker import Callbacks, Ticker

SUM = "WITH RECURSIVE i (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?) SELECT sum(i) FROM i"
SELECT = "SELECT id, name, value FROM t"
SELECT_ONE = "SELECT name, value FROM t WHERE id = ?"
TOTAL = "SELECT count(*), sum(value) FROM t"
IDLE_SECONDS = 0.5


class Held:
    """The longest gaps of each kind of call."""

    def __init__(self, timing):
        self.timing = timing
        self.cpu = 0

    async def during(self, kind, calls):
        """Awaits the calls beside a ticker."""
        ticker = await Ticker.begin()
        with Callbacks() as callbacks:
            # A task, so that no callback has anything of the lane's own.
            answer = await asyncio.ensure_future(awaited(calls))
        await ticker.end()
        for word, of in [("gap", ticker.gaps), ("cpu", ticker.cpu), ("callback", [callbacks.longest])]:
            name = f"{kind}_longest_{word}_us"
            self.timing.extra[name] = max(self.timing.extra.get(name, 0), max(of) / 1000)
        if kind != "idle":
            self.cpu = max(self.cpu, max(ticker.cpu) / 1000)
        return answer


async def awaited(calls):
    return await calls()


async def statement(peer, timing, numbers):
    found = await timing.time(peer.query(SUM, (numbers,)))
    expect(found, [(numbers * (numbers + 1) // 2,)], "the sum")


async def points(peer, timing, count, rows):
    for at in range(count):
        found = await timing.time(peer.query(SELECT_ONE, (at % rows + 1,)))
        expect(found, [t_row(at % rows)], "the row that was written")


async def freed(results):
    results.clear()


async def run(trial):
    rows, calls = t_rows(trial.size(300_000, 3_000)), trial.size(20_000, 100)
    numbers = trial.size(4_500_000, 20_000)
    async with trial.open() as peer:
        await peer.execute(T)
        timing = Timing()
        held = Held(timing)
        for _ in range(trial.size(3, 1)):
            timing.pause()
            await peer.execute(DELETE_T)
            await held.during("idle", partial(asyncio.sleep, IDLE_SECONDS))
            timing.resume()
            await held.during("many_300k", lambda: timing.time(peer.many(INSERT_T, rows)))
            results = [await held.during("rows_300k", lambda: timing.time(peer.rows(SELECT)))]
            expect(len(results[0]), len(rows), "rows read")
            expect(tuple(results[0][-1]), (len(rows), *rows[-1]), "the last row")
            await held.during("freed_300k", partial(freed, results))
            await held.during("calls", partial(points, peer, timing, calls, len(rows)))
            await held.during("statement", partial(statement, peer, timing, numbers))
        timing.extra["longest_cpu_us"] = held.cpu
        figures = timing.end(len(timing.samples))
        await expect_rows(peer, TOTAL, [(len(rows), sum(value for _, value in rows))])
        return figures


ABOUT = "longest gap of a 1 ms ticker beside a 0.5 s statement, point queries, and 300,000 rows in and out"
LANES = [Lane("process", "loop_holds", ABOUT, "calls", run)]
