"""What concerns all databases of the process: closing them, and how many have connections."""

from __future__ import annotations

import asyncio
import datetime

import pytest

import flatwater
from flatwater import blocking


async def test_closing_all_closes_every_file_whoever_opened_it(tmp_path):
    files = [tmp_path / f"{number}.db" for number in range(4)]
    opened = [await flatwater.connect(file, tuning={"close_wait": 600}) for file in files]
    threads = blocking.connect(files[0], tuning={"close_wait": 600})
    memory = await flatwater.connect(":memory:")
    writes = [asyncio.create_task(db.execute("CREATE TABLE t (a)")) for db in opened]
    await asyncio.sleep(0)
    await flatwater.process.close_all(datetime.timedelta(seconds=600))
    assert [(await write).changes for write in writes] == [0] * 4
    for db in opened:
        with pytest.raises(flatwater.ProgrammingError, match="closed") as caught:
            await db.query("SELECT 1")
        assert caught.value.kind == "closed"
    with pytest.raises(flatwater.ProgrammingError, match="closed"):
        threads.query("SELECT 1")
    assert await memory.query_value("SELECT 1") == 1
    # Their handles are closed too, which is no error, and the files may be opened again.
    for db in [*opened, memory]:
        await db.close()
    threads.close()
    async with flatwater.connect(files[0]) as db:
        assert await db.query_value("SELECT count(*) FROM t") == 0


async def test_closing_all_waits_for_a_transaction_no_longer_than_it_is_told(file):
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE t (a)")
        with pytest.raises(flatwater.ProgrammingError, match="closed"):
            async with db.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (1)")
                await flatwater.process.close_all(0.01)
                await tx.execute("INSERT INTO t VALUES (2)")
    with blocking.connect(file) as db:
        assert db.query_value("SELECT count(*) FROM t") == 0


async def test_a_time_that_is_none_is_refused():
    with pytest.raises(ValueError, match="non-negative"):
        await flatwater.process.close_all(-1)
    with pytest.raises(TypeError, match="seconds or a timedelta"):
        await flatwater.process.close_all("1")


def test_threads_close_all_without_an_event_loop(file):
    db = blocking.connect(file)
    assert blocking.process.close_all(5) is None
    with pytest.raises(flatwater.ProgrammingError, match="closed"):
        db.query("SELECT 1")
    db.close()
    assert blocking.process.close_all(0) is None


@pytest.mark.parametrize("module", [flatwater, blocking])
async def test_only_so_many_databases_have_connections(module, tmp_path):
    module.process.set_max_open(1)
    try:
        opened = [await flatwater.connect(tmp_path / f"{number}.db") for number in range(3)]
        for db in opened * 2:
            await db.execute("CREATE TABLE IF NOT EXISTS t (a)")
        while not sum(db.stats()["parked"] for db in opened):
            await asyncio.gather(*(db.execute("INSERT INTO t VALUES (1)") for db in opened))
            await asyncio.sleep(0.01)
        for db in opened:
            assert await db.query_value("SELECT count(*) >= 0 FROM t")
            await db.close()
    finally:
        module.process.set_max_open(64)
