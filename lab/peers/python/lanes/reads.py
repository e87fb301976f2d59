"""point_query and query_{10,100,1k,10k}.

Rows are what the library answers, tuples. Comparing them with those that were written touches every field, and is
part of the sample.
"""

from functools import partial

from data import SELECT_ITEM, SELECT_ITEMS, expect, expect_rows, fill_items, items, same
from lane import Lane
from lanes import noop
from measure import Timing

POINTS = 1000


async def point(trial):
    count = trial.size(50_000, 500)
    async with trial.open() as peer:
        await fill_items(peer, POINTS)
        expected = [[row] for row in items(POINTS)]
        floor = await noop.read_floor(trial, peer)
        for i in range(count // 100):
            await same(peer, expected[i % POINTS], SELECT_ITEM, (i % POINTS + 1,))
        timing = Timing()
        for i in range(count):
            at = i % POINTS
            right = await timing.time(same(peer, expected[at], SELECT_ITEM, (at + 1,)))
            expect(right, True, f"row {at} is what was written")
        return timing.end(count, floor)


async def every(trial, rows, queries):
    queries = trial.size(queries, 5)
    async with trial.open() as peer:
        await fill_items(peer, rows)
        expected = items(rows)
        await expect_rows(peer, SELECT_ITEMS, expected)
        timing = Timing()
        for _ in range(queries):
            right = await timing.time(same(peer, expected, SELECT_ITEMS))
            expect(right, True, "the rows are those that were written")
        return timing.end(queries)


LANES = [
    Lane("reads", "point_query", "one row by primary key, awaited one after another", "queries", point, release=True),
    *(
        Lane("reads", f"query_{word}", f"all {rows} rows of 6 columns, every field touched", "queries",
             partial(every, rows=rows, queries=queries), release=True)
        for word, rows, queries in [("10", 10, 20_000), ("100", 100, 5_000), ("1k", 1_000, 1_000), ("10k", 10_000, 200)]
    ),
]
