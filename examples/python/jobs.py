"""A pool of worker processes, with a database file as their queue of jobs.

It shows how processes share a file. One statement takes a job, whoever else tries to. A live query tells a worker of
new jobs, whichever process added them. A worker that dies is replaced, and its job is tried again, up to three times.
Only the worker that has a job can store its result, so a job is done once.

    pip install ./python
    python examples/python/jobs.py [jobs.db]

Kill a worker while it runs, or all of them: the next run does what was left.
"""

import asyncio
import os
import sys
import threading
from asyncio.subprocess import PIPE

import flatwater

JOBS = """
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    below INTEGER NOT NULL,            -- The job: how many primes are there below this number?
    worker INTEGER,                    -- The process that has the job or had it; NULL if it is free.
    tries INTEGER NOT NULL DEFAULT 0,
    result INTEGER
) STRICT;
CREATE INDEX free_jobs ON jobs (id) WHERE worker IS NULL;
"""
FREE = "SELECT id, tries FROM jobs WHERE worker IS NULL AND tries < 3 ORDER BY id LIMIT 1"
TAKE = f"UPDATE jobs SET worker = ?, tries = tries + 1 WHERE id = (SELECT id FROM ({FREE})) RETURNING id, below"
FINISH = "UPDATE jobs SET result = ? WHERE id = ? AND worker = ?"
GIVE_BACK = "UPDATE jobs SET worker = NULL WHERE worker = ? AND result IS NULL"
GIVE_ALL_BACK = "UPDATE jobs SET worker = NULL WHERE result IS NULL"
PROGRESS = """
SELECT count(result) AS done,
       count(*) FILTER (WHERE worker IS NOT NULL AND result IS NULL) AS running,
       count(*) FILTER (WHERE worker IS NULL AND tries < 3) AS waiting,
       count(*) FILTER (WHERE worker IS NULL AND tries = 3) AS failed
FROM jobs
"""


def primes(below: int) -> int:
    if below < 0:
        raise ValueError("there are no negative primes")
    return sum(all(n % factor for factor in range(2, int(n**0.5) + 1)) for n in range(2, below))


async def work(path: str) -> None:
    """What a worker process does. A job that comes back has another number of tries, so it is news too."""
    me = os.getpid()
    async with flatwater.connect(path) as db, db.live(FREE) as news:
        async for _ in news:
            while job := await db.query_optional(TAKE, (me,)):
                await db.execute(FINISH, (primes(job["below"]), job["id"], me))


def end_with_the_pool() -> None:
    """The pool holds the other end of this pipe, which is closed when the pool ends, however it ends."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(0)


async def employ(db: flatwater.Database, path: str) -> None:
    """Runs a worker process, and another one when it has died."""
    while True:
        program = (sys.executable, __file__, path, "work")
        # In a session of its own, so that Ctrl-C reaches the pool only, which ends its workers.
        worker = await asyncio.create_subprocess_exec(*program, stdin=PIPE, start_new_session=True)
        try:
            await worker.wait()
        finally:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()
        await db.execute(GIVE_BACK, (worker.pid,))


async def show_progress(db: flatwater.Database) -> None:
    """Prints how far the pool is, until no job is left."""
    async with db.live(PROGRESS, throttle=0.25) as results:
        async for [now] in results:
            print(f"{now['done']} done, {now['running']} running, {now['waiting']} waiting, {now['failed']} failed")
            if now["running"] == now["waiting"] == 0:
                break


async def run(db: flatwater.Database, path: str, workers: int = 4) -> None:
    """Runs a pool until each job is done or has failed. A file has one pool at a time."""
    await db.execute(GIVE_ALL_BACK)  # What the workers of a pool had that was killed.
    tasks = [asyncio.create_task(show_progress(db))]
    tasks += [asyncio.create_task(employ(db, path)) for _ in range(workers)]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await ended.pop()  # No job is left, or one of them has failed.
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def main(path: str) -> None:
    async with flatwater.connect(path, migrations=[("0001_jobs", JOBS)]) as db:
        await db.executemany("INSERT INTO jobs (below) VALUES (?)", ((n * 10_000,) for n in range(25)))
        await run(db, path)
        for job in await db.query("SELECT below, result, worker, tries FROM jobs ORDER BY id DESC LIMIT 5"):
            print(f"{job['result']} primes below {job['below']}, says process {job['worker']} (try {job['tries']})")


if __name__ == "__main__":
    if sys.argv[2:] == ["work"]:
        threading.Thread(target=end_with_the_pool, daemon=True).start()
        asyncio.run(work(sys.argv[1]))
    else:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "jobs.db"))
