"""rows_{10,1k,10k}, rows_by_name_{10,1k,10k}: all rows of 3 columns, every field touched by a loop of the program.

The rows are tuples, or what the library has for reading fields by their names.
"""

from functools import partial

from data import INSERT_T, T, expect, t_rows
from lane import Lane
from measure import Timing

SELECT = "SELECT id, name, value FROM t"


async def by_position(peer):
    rows = await peer.query(SELECT)
    for _id, _name, _value in rows:
        pass
    return rows


async def by_name(peer):
    rows = await peer.named(SELECT)
    for row in rows:
        row["id"], row["name"], row["value"]
    return rows


async def run(trial, read, rows, queries):
    queries = trial.size(queries, 5)
    written = t_rows(rows)
    expected = [(at, *row) for at, row in enumerate(written, 1)]
    async with trial.open() as peer:
        await peer.execute(T)
        await peer.many(INSERT_T, written)
        await read(peer)
        timing = Timing()
        for _ in range(queries):
            answer = await timing.time(read(peer))
            timing.pause()
            expect([tuple(row) for row in answer] == expected, True, "the rows are those that were written")
            timing.resume()
        return timing.end(queries)


LANES = [
    Lane("reads", f"{name}_{word}", f"all {rows} rows of 3 columns, {about}", "queries",
         partial(run, read=read, rows=rows, queries=queries), names=read is by_name)
    for name, read, about in [("rows", by_position, "as tuples"), ("rows_by_name", by_name, "each field by its name")]
    for word, rows, queries in [("10", 10, 20_000), ("1k", 1_000, 1_000), ("10k", 10_000, 200)]
]
