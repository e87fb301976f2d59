"""json_10k: 10,000 rows of 6 columns as the bytes of a JSON array of objects, by the library's own call, or else by
Python's json module."""

import json

from data import SELECT_ITEMS, expect, fill_items, items
from lane import Lane
from measure import Timing

COLUMNS = ("id", "name", "description", "value", "category", "created_at")


async def run(trial):
    rows, calls = trial.size(10_000, 1_000), trial.size(60, 2)
    async with trial.open() as peer:
        await fill_items(peer, rows)
        first = await peer.json(SELECT_ITEMS)
        expected = [dict(zip(COLUMNS, row)) for row in items(rows)]
        expect(json.loads(first) == expected, True, "the JSON holds the rows that were written")
        timing = Timing()
        for _ in range(calls):
            again = await timing.time(peer.json(SELECT_ITEMS))
            expect(len(again), len(first), "bytes of the JSON")
        timing.extra["json_bytes"] = len(first)
        return timing.end(calls)


LANES = [Lane("reads", "json_10k", "10,000 rows of 6 columns as JSON bytes", "queries", run, release=True)]
