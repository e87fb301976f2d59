"""parameterised, churn_{40,64,128}, concurrent_reads_{1,2,4,8}: selects with parameters, many texts, many tasks.

`concurrent_reads_N` share one connection, as the libraries mean it.
"""

import asyncio
from functools import partial

from data import INSERT_T, SELECT_ITEMS, T, expect, fill_items, items, same, t_row, t_rows
from lane import Lane
from measure import Timing

BY_CATEGORY = "SELECT id, name, value FROM items WHERE category = ? ORDER BY id"
CATEGORIES = 10
ROWS = 1000


async def parameterised(trial):
    rows, count = trial.size(5_000, 500), trial.size(2_000, 20)
    async with trial.open() as peer:
        await fill_items(peer, rows)
        await peer.execute("CREATE INDEX items_category ON items (category)")
        names = [f"category_{at}" for at in range(CATEGORIES)]
        expected = [[(row[0], row[1], row[3]) for row in items(rows) if row[4] == name] for name in names]
        timing = Timing()
        for i in range(count):
            at = i % CATEGORIES
            right = await timing.time(same(peer, expected[at], BY_CATEGORY, (names[at],)))
            expect(right, True, f"the rows of {names[at]} are those that were written")
        return timing.end(count)


async def churn(trial, texts):
    count = trial.size(20_000, 2 * texts)
    statements = [f"SELECT name, value + {n} FROM t WHERE id = ?" for n in range(texts)]
    async with trial.open() as peer:
        await peer.execute(T)
        await peer.many(INSERT_T, t_rows(ROWS))
        timing = Timing()
        for i in range(count):
            text, row = i % texts, i % ROWS
            name, value = t_row(row)
            right = await timing.time(same(peer, [(name, value + text)], statements[text], (row + 1,)))
            expect(right, True, f"row {row} is what was written")
        return timing.end(count)


async def concurrent(trial, tasks):
    each = trial.size(1_600, 16) // tasks
    async with trial.open() as peer:
        await fill_items(peer, ROWS)
        expected = items(ROWS)
        timing = Timing()

        async def selects():
            for _ in range(each):
                right = await timing.time(same(peer, expected, SELECT_ITEMS))
                expect(right, True, "the rows are those that were written")

        await asyncio.gather(*(selects() for _ in range(tasks)))
        return timing.end(each * tasks)


LANES = [
    Lane("reads", "parameterised", "about 500 rows of 3 columns by an indexed parameter", "queries", parameterised,
         release=True),
    *(
        Lane("reads", f"churn_{texts}", f"point queries that rotate through {texts} texts", "queries",
             partial(churn, texts=texts))
        for texts in (40, 64, 128)
    ),
    *(
        Lane("reads", f"concurrent_reads_{tasks}", f"{tasks} task(s) that select 1000 rows", "queries",
             partial(concurrent, tasks=tasks), release=True, tasks=True)
        for tasks in (1, 2, 4, 8)
    ),
]
