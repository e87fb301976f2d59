"""Backups: one point in time in a new file, while others write; and what ends one leaves no file."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from contextvars import ContextVar

import pytest

import flatwater
from flatwater import blocking


def plain(path, sql):
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


BOTH = "SELECT (SELECT count(*) FROM one), (SELECT count(*) FROM two)"


async def fill(db, rows=3000):
    await db.executescript("CREATE TABLE one (a); CREATE TABLE two (a)")
    async with db.transaction() as tx:
        for table in ("one", "two"):
            await tx.executemany(f"INSERT INTO {table} VALUES (randomblob(?))", ((4000,) for _ in range(rows)))


async def write_both(db):
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO one VALUES (1)")
        await tx.execute("INSERT INTO two VALUES (1)")


async def test_a_backup_is_of_one_point_in_time_while_others_write(file, tmp_path):
    async with flatwater.connect(file) as db:
        await fill(db)

        async def writes():
            while True:
                await write_both(db)
                await asyncio.sleep(0)

        writing = asyncio.create_task(writes())
        grew = 0
        for n in range(5):
            before = await db.query_value("SELECT count(*) FROM one")
            copy = tmp_path / f"copy-{n}.db"
            assert await db.backup(copy if n % 2 else str(copy)) is None
            [(one, two)] = plain(copy, BOTH)
            assert one == two >= before
            grew += await db.query_value("SELECT count(*) FROM one") > one
        writing.cancel()
        assert grew > 0


async def test_a_backup_replaces_nothing(place, tmp_path):
    (tmp_path / "copy.db").write_text("mine")
    async with flatwater.connect(place) as db:
        with pytest.raises(flatwater.ProgrammingError, match="copy.db exists") as caught:
            await db.backup(tmp_path / "copy.db")
        assert "another name" in caught.value.hint
        with pytest.raises(flatwater.OperationalError, match="nowhere does not exist"):
            await db.backup(tmp_path / "nowhere" / "copy.db")
        with pytest.raises(flatwater.ProgrammingError, match="not a path"):
            await db.backup(":memory:")
        with pytest.raises(TypeError):
            await db.backup(5)
    assert (tmp_path / "copy.db").read_text() == "mine"


async def interrupted(db, folder, end):
    """Ends backups until one was ended in its middle, and returns how that ended for its caller."""
    while True:
        task = asyncio.create_task(db.backup(folder / "copy.db"))
        while not task.done() and not os.listdir(folder):
            await asyncio.sleep(0)
        end(task)
        [outcome] = await asyncio.gather(task, return_exceptions=True)
        while any(name.endswith(".partial") for name in os.listdir(folder)):
            await asyncio.sleep(0.001)
        if not os.listdir(folder):
            return outcome
        # It was whole before it was ended.
        plain(folder / "copy.db", "SELECT count(*) FROM one")
        (folder / "copy.db").unlink()


async def test_a_task_that_is_cancelled_ends_its_backup(place, tmp_path):
    folder = tmp_path / "copies"
    folder.mkdir()
    async with flatwater.connect(place) as db:
        await fill(db)
        outcome = await interrupted(db, folder, lambda task: task.cancel())
        assert isinstance(outcome, asyncio.CancelledError)
        await write_both(db)
        await db.backup(folder / "copy.db")
        assert plain(folder / "copy.db", "SELECT count(*) FROM one") == [(3001,)]


async def test_a_deadline_ends_a_backup(place, tmp_path):
    folder = tmp_path / "copies"
    folder.mkdir()
    async with flatwater.connect(place) as db:
        await fill(db)
        with pytest.raises(flatwater.Timeout):
            await db.backup(folder / "copy.db", timeout=0.001)
        while os.listdir(folder):
            await asyncio.sleep(0.001)
        await db.backup(folder / "copy.db", timeout=3600)


def test_threads_write_while_one_makes_a_backup(file, tmp_path):
    with blocking.connect(file) as db:
        db.executescript("CREATE TABLE one (a); CREATE TABLE two (a)")
        db.executemany("INSERT INTO one VALUES (randomblob(?))", ((4000,) for _ in range(2000)))
        db.executescript("INSERT INTO two SELECT a FROM one")
        ends = threading.Event()

        def writes():
            while not ends.is_set():
                with db.transaction() as tx:
                    tx.execute("INSERT INTO one VALUES (1)")
                    tx.execute("INSERT INTO two VALUES (1)")

        thread = threading.Thread(target=writes)
        thread.start()
        try:
            for n in range(5):
                assert db.backup(tmp_path / f"{n}.db") is None
                [(one, two)] = plain(tmp_path / f"{n}.db", BOTH)
                assert one == two >= 2000
        finally:
            ends.set()
            thread.join()
        with pytest.raises(flatwater.ProgrammingError, match="exists"):
            db.backup(tmp_path / "0.db")
        with pytest.raises(flatwater.Timeout):
            db.backup(tmp_path / "late.db", timeout=0)
    assert not (tmp_path / "late.db").exists()


context = ContextVar("context", default="elsewhere")


def check(told, pages):
    assert told
    assert {one.total_pages for one in told} == {pages}
    left = [one.remaining_pages for one in told]
    assert left == sorted(set(left), reverse=True)
    assert left[-1] == 0


async def test_a_backup_tells_how_far_it_is_in_the_context_of_its_task(place, tmp_path):
    context.set("here")
    async with flatwater.connect(place) as db:
        await fill(db)
        pages = await db.query_value("PRAGMA page_count")
        told = []

        def progress(one):
            assert asyncio.get_running_loop().is_running()
            assert context.get() == "here"
            told.append(one)

        assert await db.backup(tmp_path / "copy.db", progress=progress) is None
        check(told, pages)
        assert repr(told[-1]) == f"BackupProgress(total_pages={pages}, remaining_pages=0)"
        assert plain(tmp_path / "copy.db", "SELECT count(*) FROM one") == [(3000,)]
        with pytest.raises(TypeError, match="progress must be callable"):
            await db.backup(tmp_path / "other.db", progress=5)
    assert not (tmp_path / "other.db").exists()


async def test_other_tasks_run_between_two_calls_of_a_slow_callback(place, tmp_path):
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with flatwater.connect(place) as db:
        await fill(db)
        beside, seen = asyncio.create_task(others()), []

        def progress(_):
            seen.append(turns)
            # Longer than a step: there is always another one.
            time.sleep(0.01)

        await db.backup(tmp_path / "copy.db", progress=progress)
        beside.cancel()
    assert seen == sorted(set(seen))


async def test_an_exception_of_the_callback_ends_the_backup(place, tmp_path):
    def progress(_):
        raise LookupError("of the program")

    async with flatwater.connect(place) as db:
        await fill(db)
        is_whole = True
        while is_whole:
            with pytest.raises(LookupError, match="of the program"):
                await db.backup(tmp_path / "copy.db", progress=progress)
            while any(name.endswith(".partial") for name in os.listdir(tmp_path)):
                await asyncio.sleep(0.001)
            # All pages may have been copied by then.
            if is_whole := (tmp_path / "copy.db").exists():
                plain(tmp_path / "copy.db", "SELECT count(*) FROM one")
                (tmp_path / "copy.db").unlink()
        await db.backup(tmp_path / "copy.db")


def test_a_thread_is_told_itself_how_far_its_backup_is(file, tmp_path):
    with blocking.connect(file) as db:
        db.execute("CREATE TABLE one (a)")
        db.executemany("INSERT INTO one VALUES (randomblob(?))", ((4000,) for _ in range(2000)))
        pages, own, told = db.query_value("PRAGMA page_count"), threading.get_ident(), []

        def progress(one):
            assert threading.get_ident() == own
            # A backup that has one connection has it to itself, and this one has a file.
            assert db.query_value("SELECT count(*) FROM one") == 2000
            told.append(one)

        db.backup(tmp_path / "copy.db", progress=progress)
        check(told, pages)
        with pytest.raises(ZeroDivisionError):
            db.backup(tmp_path / "other.db", progress=lambda one: 1 / 0)
        with pytest.raises(TypeError, match="progress must be callable"):
            db.backup(tmp_path / "other.db", progress=5)
