"""point_query_function: as kit/src/lanes/functions.rs, with a function in Python."""

from data import expect, fill_items, items, same
from lane import Lane
from lanes import noop
from measure import Timing

POINTS = 1000
SELECT = "SELECT id, name, half(id) FROM items WHERE id = ?"


def half(number):
    return number / 2


async def run(trial):
    count = trial.size(50_000, 500)
    async with trial.open() as peer:
        await fill_items(peer, POINTS)
        peer.database.create_function("half", 1, half, deterministic=True)
        expected = [[(row[0], row[1], row[0] / 2)] for row in items(POINTS)]
        floor = await noop.read_floor(trial, peer)
        for i in range(count // 100):
            await same(peer, expected[i % POINTS], SELECT, (i % POINTS + 1,))
        timing = Timing()
        for i in range(count):
            at = i % POINTS
            right = await timing.time(same(peer, expected[at], SELECT, (at + 1,)))
            expect(right, True, f"row {at} is what was written, and its half")
        return timing.end(count, floor)


LANES = [
    Lane("reads", "point_query_function", "one row by primary key, with a deterministic function in Python", "queries", run,
         functions=True),
]
