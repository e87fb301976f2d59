"""The bulk load: what the dashboard shows on the way, and the answers, computed a second time without SQL."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path

import flights

import flatwater


def test_the_dashboard_shows_what_is_there_so_far(tmp_path: Path) -> None:
    async def main() -> None:
        shown: asyncio.Queue[flatwater.Row] = asyncio.Queue()

        async def wait_for(count: int) -> None:
            while (row := await shown.get())["flights"] != count:
                assert row["flights"] < count

        async with flatwater.connect(tmp_path / "flights.db") as db:
            await db.executescript(flights.FLIGHTS)
            dashboard = asyncio.create_task(flights.dashboard(db, shown.put_nowait))
            await wait_for(0)
            rows = flights.read_flights()
            assert await flights.load(db, islice(rows, 25_000)) == 25_000
            await wait_for(25_000)
            assert await flights.load(db, islice(rows, 1)) == 1
            await wait_for(25_001)
            dashboard.cancel()
            await asyncio.gather(dashboard, return_exceptions=True)

    asyncio.run(asyncio.wait_for(main(), 60))


async def answers(path: Path) -> list[list[tuple[object, ...]]]:
    async with flatwater.connect(path) as db:
        return [await db.query(sql, into=tuple) for sql in flights.QUESTIONS.values()]


def mean(numbers: list[int]) -> float:
    return round(sum(numbers) / len(numbers), 1)


def test_the_whole_year_is_loaded_and_the_answers_are_right(tmp_path: Path) -> None:
    path = tmp_path / "flights.db"
    ran = subprocess.run([sys.executable, flights.__file__, path], capture_output=True, text=True, check=False)
    # On a slow machine the log may warn of the WAL.
    assert ran.returncode == 0, ran.stderr
    assert "336,776 flights in" in ran.stdout
    routes, carriers, months, delays = asyncio.run(answers(path))

    flown: Counter[tuple[str, str]] = Counter()
    late: defaultdict[str, list[int]] = defaultdict(list)
    of_month: Counter[int] = Counter()
    cancelled: Counter[int] = Counter()
    longest: dict[str, tuple[int, str, int, str]] = {}
    for row in flights.read_flights():
        month, departed, delay, delay_there = row[1], row[3], row[5], row[8]
        carrier, number, origin, dest = row[9], row[10], row[12], row[13]
        assert month and carrier and number and origin and dest
        flown[origin, dest] += 1
        of_month[int(month)] += 1
        cancelled[int(month)] += departed is None
        if delay_there is not None:
            late[carrier].append(int(delay_there))
        if delay is not None:
            longest[origin] = max(longest.get(origin, (0, "", 0, "")), (int(delay), carrier, int(number), dest))

    assert routes == [(*route, count) for route, count in sorted(flown.items(), key=lambda of: (-of[1], of[0]))[:5]]
    means = {carrier: (carrier, len(minutes), mean(minutes)) for carrier, minutes in late.items()}
    assert carriers == sorted(means.values(), key=lambda row: -row[2])[:5]
    shares = [(month, round(100 * cancelled[month] / count, 2)) for month, count in of_month.items()]
    assert months == sorted(shares, key=lambda row: -row[1])[:5]
    assert delays == [(origin, *of[1:], of[0]) for origin, of in sorted(longest.items())]
    assert all(str(value) in ran.stdout for rows in (routes, carriers, months, delays) for row in rows for value in row)
