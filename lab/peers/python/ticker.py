"""A task that ticks every millisecond on the loop it is begun on.

Owns: the gaps between its ticks, by the clock and by the CPU time of the loop's thread. A gap is how long everything else
on the loop could not run, of which the timer's own is a millisecond or more; CPU time has no such part, and none of what
other threads and programs take. Leaves out: what the loop does meanwhile.
"""

import asyncio
from time import perf_counter_ns, thread_time_ns

EVERY = 0.001


class Ticker:
    """A task that ticks, and its gaps in nanoseconds."""

    @classmethod
    async def begin(cls):
        ticker = cls()
        await asyncio.sleep(0)
        return ticker

    def __init__(self):
        self.gaps = []
        self.cpu = []
        self._stops = False
        self._task = asyncio.create_task(self._tick())

    async def _tick(self):
        last = perf_counter_ns(), thread_time_ns()
        while not self._stops:
            await asyncio.sleep(EVERY)
            now = perf_counter_ns(), thread_time_ns()
            self.gaps.append(now[0] - last[0])
            self.cpu.append(now[1] - last[1])
            last = now

    async def end(self):
        self._stops = True
        await self._task
