"""How long a loop is held: by what lies between the ticks of a task, and by each callback of the loop.

Owns: the gaps between the ticks, by the clock and by the CPU time of the loop's thread. A gap is how long everything else
on the loop could not run, of which the timer's own is a millisecond or more; CPU time has no such part, and none of what
other threads and programs take. But a loop that has work does some of it while the timer runs, and one callback more until
the task is woken. The CPU time of single callbacks has neither. Leaves out: what the loop does meanwhile.
"""

import asyncio
from asyncio.events import Handle
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


class Callbacks:
    """The CPU time in nanoseconds of the longest callback that a loop of asyncio begins within the block."""

    def __enter__(self):
        self.longest = 0
        self._run = Handle._run
        Handle._run = self._timed(self._run)
        return self

    def __exit__(self, *_):
        Handle._run = self._run

    def _timed(self, run):
        def timed(handle):
            began = thread_time_ns()
            run(handle)
            self.longest = max(self.longest, thread_time_ns() - began)

        return timed
