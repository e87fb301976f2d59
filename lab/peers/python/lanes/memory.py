"""memory_query_10k: what holding a result of 10,000 rows of 6 columns costs in memory, with the interpreter's pools."""

from data import SELECT_ITEMS, expect, fill_items, items, same
from lane import Lane
from measure import Timing, peak_rss, reset_peak, rss


async def run(trial):
    rows, count = trial.size(10_000, 1_000), trial.size(20, 2)
    async with trial.open() as peer:
        await fill_items(peer, rows)
        # Takes the memory that the writing freed, which would hide the growth.
        expected = items(rows)
        # Fills the page cache, and is no part of the growth.
        await peer.query("SELECT count(*), sum(length(description)) FROM items")
        can_reset = reset_peak()
        before = rss()
        held = await peer.query(SELECT_ITEMS)
        after, peak = rss(), peak_rss()
        expect(held == expected, True, "the rows are those that were written")
        del held
        timing = Timing()
        for _ in range(count):
            right = await timing.time(same(peer, expected, SELECT_ITEMS))
            expect(right, True, "the rows are those that were written")
        if before is not None:
            timing.extra["result_bytes"] = max(after - before, 0)
            if can_reset:
                timing.extra["peak_growth_bytes"] = max(peak - before, 0)
        return timing.end(count)


LANES = [
    Lane("process", "memory_query_10k", "memory that a result of 10,000 rows takes", "queries", run, release=True)
]
