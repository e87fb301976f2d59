"""Whatever a task waits for, the wait ends when the task is cancelled, and what runs for it ends too."""

import asyncio
import contextlib
import subprocess
import sys

import pytest
from conftest import plain_connection

import flatwater

ENDLESS = "SELECT count(*) FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c)"
INSERT = "INSERT INTO t VALUES (1)"

HOLDS = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.executescript(sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(file, sql):
    """Another process has done this, and stays in its transaction."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDS, str(file), sql], **pipes) as other:
        assert other.stdout.readline() == b"held\n"
        try:
            yield
        finally:
            other.communicate()


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


async def cancelled(awaitable, is_reached=lambda: True):
    """Cancels a task that awaits this, once the condition holds. It would wait for an hour."""
    task = asyncio.ensure_future(awaitable)
    await asyncio.sleep(0)
    await until(is_reached)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def make_table(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")


async def entered(scope):
    async with scope:
        pass


WRITES = {
    "execute": lambda db, **timeout: db.execute(INSERT, **timeout),
    "executemany": lambda db, **timeout: db.executemany("INSERT INTO t VALUES (?)", [(1,)], **timeout),
    "batch": lambda db, **timeout: db.batch([INSERT], **timeout),
    "executescript": lambda db, **timeout: db.executescript(INSERT, **timeout),
    "transaction": lambda db, **timeout: entered(db.transaction(**timeout)),
    "migrate": lambda db, **timeout: db.migrate([("1_a", "CREATE TABLE u (a)")], **timeout),
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_that_waits_for_another_process_ends(file, write):
    await make_table(file)
    async with flatwater.connect(file, busy_timeout=3600) as db:
        with held(file, "BEGIN IMMEDIATE"):
            await cancelled(WRITES[write](db), lambda: db.stats()["writes_waiting"] == 0)
            with pytest.raises(flatwater.Timeout):
                await WRITES[write](db, timeout=0.02)
            # It needs no write lock, and waits for the writer.
            await db.checkpoint()
        assert await db.query_value("SELECT count(*) FROM t") == 0


async def test_a_checkpoint_that_waits_for_another_process_ends(file):
    await make_table(file)
    async with flatwater.connect(file, busy_timeout=3600) as db:
        with held(file, "BEGIN; SELECT count(*) FROM t"):
            await db.execute(INSERT)
            await cancelled(db.checkpoint("truncate"), lambda: db.stats()["writes_waiting"] == 0)
            await db.execute(INSERT)


LOCKS = {
    "a file that is locked": ("CREATE TABLE t (a); BEGIN EXCLUSIVE", {}),
    "a file that is read and not in WAL mode": ("CREATE TABLE t (a); BEGIN; SELECT * FROM t; CREATE TABLE u (a)", {}),
    "migrations": (
        "PRAGMA journal_mode = WAL; CREATE TABLE t (a); BEGIN IMMEDIATE",
        {"migrations": [("1_a", "CREATE TABLE u (a)")]},
    ),
}


@pytest.mark.parametrize("lock", LOCKS)
async def test_a_connect_that_waits_for_another_process_ends(file, lock):
    sql, options = LOCKS[lock]
    with held(file, sql):
        with pytest.raises(flatwater.OperationalError) as busy:
            await flatwater.connect(file, busy_timeout=0.05, **options)
        assert busy.value.kind == "busy"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(flatwater.connect(file, busy_timeout=3600, **options), 0.05)
    async with flatwater.connect(file) as db:
        assert await db.query("SELECT * FROM t") == []


async def test_a_connect_that_runs_a_migration_ends(file):
    migrations = [("1_a", "CREATE TABLE t (a)"), ("2_b", f"CREATE TABLE u AS {ENDLESS}")]
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(flatwater.connect(file, migrations=migrations), 0.5)
    # As soon as it is closed.
    with contextlib.closing(plain_connection(file)) as plain:
        assert plain.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'u'").fetchall() == [(0,)]


async def test_a_wait_for_a_close_ends(file):
    db = await flatwater.connect(file, tuning={"close_wait": 3600})
    async with db.transaction() as tx:
        await tx.execute("CREATE TABLE t (a)")
        await cancelled(db.close())
    async with flatwater.connect(file) as db:
        assert await db.query("SELECT * FROM t") == []


ENDLESS_WRITES = {
    "execute": lambda db: db.execute(f"INSERT INTO t {ENDLESS}"),
    "executemany": lambda db: db.executemany(f"INSERT INTO t {ENDLESS} WHERE n <> ?", [(0,), (0,)]),
    "batch": lambda db: db.batch([INSERT, f"INSERT INTO t {ENDLESS}"]),
    "executescript": lambda db: db.executescript(f"{INSERT}; INSERT INTO t {ENDLESS}"),
    "returning": lambda db: db.query(f"INSERT INTO t {ENDLESS} RETURNING a"),
    "migrate": lambda db: db.migrate([("1_a", f"CREATE TABLE u (a); INSERT INTO t {ENDLESS}")]),
    "transaction": lambda db: in_transaction(db),
    "query": lambda db: db.query(ENDLESS),
}


async def in_transaction(db):
    async with db.transaction() as tx:
        await tx.execute(INSERT)
        await tx.execute(f"INSERT INTO t {ENDLESS}")


@pytest.mark.parametrize("call", ENDLESS_WRITES)
async def test_what_runs_is_undone_when_its_task_is_cancelled(file, call):
    await make_table(file)
    async with flatwater.connect(file) as db:
        waits = ("writes_waiting", "reads_waiting")
        await cancelled(ENDLESS_WRITES[call](db), lambda: not any(db.stats()[name] for name in waits))
        assert (await db.execute(INSERT)).changes == 1
        assert await db.query("SELECT a FROM t") == [(1,)]


@pytest.mark.parametrize("call", ENDLESS_WRITES)
async def test_what_runs_is_undone_by_a_close_which_succeeds(file, call):
    await make_table(file)
    db = await flatwater.connect(file, tuning={"close_wait": 0.05})
    running = asyncio.ensure_future(ENDLESS_WRITES[call](db))
    await asyncio.sleep(0)
    await until(lambda: db.stats()["writes_waiting"] == 0)
    await db.close()
    with pytest.raises(flatwater.ProgrammingError):
        await running
    async with flatwater.connect(file) as db:
        assert await db.query("SELECT a FROM t") == []


@pytest.mark.parametrize("sql", ["VACUUM", "CREATE INDEX i ON t (a)", "UPDATE t SET a = a || 'x'"])
async def test_maintenance_that_runs_at_a_shutdown_is_no_error(file, sql):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 100000)"
        await db.execute(f"INSERT INTO t {numbers} SELECT hex(n) || hex(randomblob(50)) FROM c")

    async def maintain(db):
        with contextlib.suppress(flatwater.ProgrammingError):
            await db.execute(sql)

    async with flatwater.connect(file, tuning={"close_wait": 0}) as db:
        running = asyncio.create_task(maintain(db))
        await asyncio.sleep(0)
    await running
