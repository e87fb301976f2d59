"""The pool of workers: those that are killed, a job that cannot be done, and a pool that is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import jobs
import pytest

import flatwater

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc")

# What a result is stored for, one row each time, so that a job that is done twice is seen.
RECORD = """
CREATE TABLE stored (job INTEGER NOT NULL);
CREATE TRIGGER record AFTER UPDATE OF result ON jobs BEGIN INSERT INTO stored VALUES (new.id); END;
"""
HELD = "SELECT worker, id FROM jobs WHERE worker IS NOT NULL AND result IS NULL ORDER BY id LIMIT 1"
STORED = "SELECT count(*), count(DISTINCT job) FROM stored"
MIGRATIONS = [("0001_jobs", jobs.JOBS)]
ADD = "INSERT INTO jobs (below) VALUES (?)"


def count_primes(below: int) -> int:
    """The same by the sieve of Eratosthenes."""
    sieve = bytearray([1]) * below
    for n in range(2, below):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, below, n)))
    return sum(sieve[2:])


async def found(db: flatwater.Database, sql: str, *params: object) -> flatwater.Row:
    """Waits until a query has a row, and returns it."""
    async with db.live(sql, params) as results:
        async for rows in results:
            if rows:
                return rows[0]
    raise AssertionError("the database was closed")


def state(pid: int) -> str:
    """What a process does: "T" is stopped, "Z" is dead and not yet taken note of, and "" is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


async def kill_one_with_a_job(db: flatwater.Database) -> int:
    """Kills a worker that is in the middle of a job, and returns the job, which is free by then."""
    while True:
        worker, job = await found(db, HELD)
        os.kill(worker, signal.SIGSTOP)
        while state(worker) != "T":
            await asyncio.sleep(0)
        if await db.query(f"SELECT 1 FROM ({HELD}) WHERE worker = ? AND id = ?", (worker, job)):
            os.kill(worker, signal.SIGKILL)
            await found(db, "SELECT 1 FROM jobs WHERE id = ? AND worker IS NOT ?", job, worker)
            return int(job)
        os.kill(worker, signal.SIGCONT)


async def check_all_done_once(db: flatwater.Database, count: int) -> None:
    assert tuple(await db.query_one(STORED)) == (count, count)
    for job in await db.query("SELECT below, result FROM jobs WHERE below >= 0"):
        assert job["result"] == count_primes(job["below"])


def test_the_jobs_of_killed_workers_are_done_by_others_and_none_twice(tmp_path: Path) -> None:
    async def main() -> None:
        path = str(tmp_path / "jobs.db")
        async with flatwater.connect(path, migrations=MIGRATIONS) as db:
            await db.executescript(RECORD)
            await db.executemany(ADD, [(100_000,)] * 20)
            pool = asyncio.create_task(jobs.run(db, path, workers=3))
            killed = {await kill_one_with_a_job(db) for _ in range(2)}
            await pool
            await check_all_done_once(db, 20)
            assert set(await db.query_values("SELECT id FROM jobs WHERE tries > 1")) == killed

    asyncio.run(asyncio.wait_for(main(), 600))


def test_a_job_that_ends_its_worker_fails_after_three_tries(tmp_path: Path) -> None:
    async def main() -> None:
        path = str(tmp_path / "jobs.db")
        async with flatwater.connect(path, migrations=MIGRATIONS) as db:
            await db.executescript(RECORD)
            await db.executemany(ADD, [(-1,), (10,), (100,)])
            await jobs.run(db, path, workers=2)
            await check_all_done_once(db, 2)
            failed = await db.query("SELECT worker, tries, result FROM jobs WHERE id = 1", into=tuple)
            assert failed == [(None, 3, None)]

    asyncio.run(asyncio.wait_for(main(), 600))


def test_what_a_killed_pool_left_the_next_one_does(tmp_path: Path) -> None:
    path = str(tmp_path / "jobs.db")

    async def main() -> None:
        async with flatwater.connect(path, migrations=MIGRATIONS) as db:
            await db.executescript(RECORD)
            pool = subprocess.Popen([sys.executable, jobs.__file__, path], stdout=subprocess.DEVNULL)
            worker, _ = await found(db, HELD)
            pool.kill()
            pool.wait()
            while state(worker) not in ("", "Z"):
                await asyncio.sleep(0)
            ran = await asyncio.to_thread(subprocess.run, [sys.executable, jobs.__file__, path], capture_output=True)
            assert (ran.returncode, ran.stderr) == (0, b"")
            await check_all_done_once(db, 50)

    asyncio.run(asyncio.wait_for(main(), 600))
