"""one_row, one_row_beside_thread, one_insert: a library's own call for one row, and for one write.

Nothing of the lab is between the lane and the call: a function is called and a coroutine is awaited, as a program does
it. So calls of a microsecond can be told apart. Beside `one_row_beside_thread` a thread runs Python code all the time:
who needs another thread for an answer waits for the interpreter's lock.
"""

import threading
from time import perf_counter_ns

from data import INSERT_T, SELECT_ITEM, T, expect, expect_t, fill_items, items, t_rows
from lane import Lane
from measure import Timing

POINTS = 1000


async def ask(peer, call, sql, params, samples):
    """Calls with each of the parameters, keeps how long it took, and answers what was answered."""
    answers = []
    if peer.one_thread:
        for given in params:
            began = perf_counter_ns()
            answer = call(sql, given)
            samples.append(perf_counter_ns() - began)
            answers.append(answer)
    else:
        for given in params:
            began = perf_counter_ns()
            answer = await call(sql, given)
            samples.append(perf_counter_ns() - began)
            answers.append(answer)
    return answers


async def read_rows(peer, count):
    """Figures of reads of one row each, all of them checked."""
    rows = items(POINTS)
    keys = [(row[0],) for row in rows]
    expect(await ask(peer, peer.one, SELECT_ITEM, keys, []), rows, "the rows that were written")
    timing = Timing()
    for at in range(0, count, POINTS):
        part = slice(0, min(POINTS, count - at))
        answers = await ask(peer, peer.one, SELECT_ITEM, keys[part], timing.samples)
        timing.pause()
        expect(answers, rows[part], "the rows that were written")
        timing.resume()
    return timing.end(count)


async def row(trial):
    async with trial.open() as peer:
        await fill_items(peer, POINTS)
        return await read_rows(peer, trial.size(50_000, 500))


class Beside:
    """A thread that runs Python code until the block ends."""

    def __enter__(self):
        self.turns, self._stops = 0, False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self):
        while not self._stops:
            self.turns += 1

    def __exit__(self, *_):
        self._stops = True
        self._thread.join()


async def row_beside_thread(trial):
    async with trial.open() as peer:
        await fill_items(peer, POINTS)
        with Beside() as beside:
            figures = await read_rows(peer, trial.size(2_000, 20))
        expect(beside.turns > 0, True, "the other thread ran")
        return figures


async def insert(trial):
    rows = t_rows(trial.size(50_000, 200))
    async with trial.open() as peer:
        await peer.execute(T)
        timing = Timing()
        await ask(peer, peer.write, INSERT_T, rows, timing.samples)
        figures = timing.end(len(rows))
        await expect_t(peer, len(rows))
        return figures


LANES = [
    Lane("reads", "one_row", "one row by primary key, by the library's own call for one row", "queries", row),
    Lane("reads", "one_row_beside_thread", "the same beside a thread that runs Python code all the time", "queries",
         row_beside_thread),
    Lane("writes", "one_insert", "small inserts, by the library's own call for a write", "inserts", insert),
]
