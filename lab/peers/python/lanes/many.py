"""many_{100,1k,10k}, many_wide_10k, merge_rounds: one statement over many rows, in one transaction."""

from functools import partial

from data import (
    DELETE_T, INSERT_T, INSERT_WIDE, SELECT_ITEMS, SELECT_WIDE, T, WIDE, expect, expect_rows, expect_t, fill_items,
    items, t_rows, wide_rows,
)
from lane import Lane
from lanes import noop
from measure import Timing

MERGE = (
    "INSERT OR REPLACE INTO items (id, name, description, value, category, created_at) VALUES (?, ?, ?, ?, ?, ?)"
)
MERGED = 1000
ROUND = 100


async def calls_of(peer, calls, empty, insert, rows):
    """Calls that each write all rows into an empty table."""
    await peer.many(insert, rows)
    timing = Timing()
    for _ in range(calls):
        timing.pause()
        await peer.execute(empty)
        timing.resume()
        await timing.time(peer.many(insert, rows))
    return timing.end(calls * len(rows))


async def many(trial, rows, calls):
    async with trial.open() as peer:
        await peer.execute(T)
        figures = await calls_of(peer, trial.size(calls, 2), DELETE_T, INSERT_T, t_rows(rows))
        await expect_t(peer, rows)
        return figures


async def wide(trial):
    rows = wide_rows(trial.size(10_000, 500))
    async with trial.open() as peer:
        await peer.execute(WIDE)
        figures = await calls_of(peer, trial.size(10, 2), "DELETE FROM wide", INSERT_WIDE, rows)
        await expect_rows(peer, SELECT_WIDE, rows)
        return figures


async def merge(trial):
    rounds = trial.size(1_000, MERGED // ROUND)
    merged = [(*row[:3], row[3] + 0.25, *row[4:]) for row in items(MERGED)]
    blocks = [merged[at:at + ROUND] for at in range(0, MERGED, ROUND)]
    async with trial.open() as peer:
        await fill_items(peer, MERGED)
        await peer.execute(T)
        floor = await noop.write_floor(trial, peer)
        before = await peer.total_changes()
        timing = Timing()
        for round in range(rounds):
            await timing.time(peer.many(MERGE, blocks[round % len(blocks)]))
        figures = timing.end(rounds * ROUND, floor)
        # SQLite counts the rows of writes that were undone as well, and Flatwater may undo one and run it again on a worker.
        expect(await peer.total_changes() - before >= rounds * ROUND, True, "as many rows replaced as were given")
        await expect_rows(peer, SELECT_ITEMS, merged)
        return figures


LANES = [
    *(
        Lane("writes", f"many_{word}", f"one INSERT over {rows} rows of 2 parameters, in one transaction", "rows",
             partial(many, rows=rows, calls=calls), release=True)
        for word, rows, calls in [("100", 100, 500), ("1k", 1_000, 150), ("10k", 10_000, 20)]
    ),
    Lane("writes", "many_wide_10k", "one INSERT over 10,000 rows of 20 mixed parameters, in one transaction", "rows",
         wide, release=True),
    Lane("profile", "merge_rounds", "100 rows of 6 parameters replaced per call, above the noop", "rows", merge),
]
