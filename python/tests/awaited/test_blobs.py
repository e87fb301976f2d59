"""Large values in parts: as `sqlite3.Blob`, awaited, and as a file in code that waits."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import sqlite3

import pytest

import flatwater
from flatwater import blocking

DATA = bytes(range(256)) * 400


async def filled(place, **options):
    db = await flatwater.connect(place, **options)
    await db.execute("CREATE TABLE files (id INTEGER PRIMARY KEY, data, name)")
    await db.execute("INSERT INTO files VALUES (1, ?, 'a name')", (DATA,))
    return db


async def test_a_blob_is_read_written_and_moved_in_as_that_of_sqlite3_is(place):
    plain = sqlite3.connect(":memory:")
    plain.execute("CREATE TABLE files (id INTEGER PRIMARY KEY, data, name)")
    plain.execute("INSERT INTO files VALUES (1, ?, 'a name')", (DATA,))
    async with await filled(place) as db, db.open_blob("files", "data", 1) as blob:
        steps = [
            ("read", (5,)), ("tell", ()), ("seek", (-3, os.SEEK_END)), ("read", ()), ("read", (5,)), ("tell", ()),
            ("seek", (10,)), ("write", (b"ten",)), ("seek", (-3, os.SEEK_CUR)), ("read", (4,)),
            ("seek", (0,)), ("read", ()),
        ]  # fmt: skip
        if not hasattr(plain, "blobopen"):
            plain_blob = io.BytesIO(DATA)
        else:
            plain_blob = plain.blobopen("files", "data", 1)
        for name, given in steps:
            expected = getattr(plain_blob, name)(*given)
            got = getattr(blob, name)(*given)
            got = await got if name in ("read", "write") else got
            if name in ("read", "tell"):
                assert got == expected, (name, given)
        assert len(blob) == len(DATA) and blob
        assert await db.query_value("SELECT substr(data, 11, 3) FROM files") == b"ten"


async def test_it_is_opened_by_its_block_or_by_await_and_closed_by_its_block(place):
    async with await filled(place) as db:
        blob = await db.open_blob("files", "name", 1)
        assert (await blob.read(), len(blob), repr(blob)) == (b"a name", 6, "<flatwater.Blob of 'files', 'name'>")
        async with db.open_blob("files", "name", 1) as other:
            assert await other.write(memoryview(b"the")) == 3
        for use in (other.read(), other.write(b"x")):
            with pytest.raises(flatwater.ProgrammingError, match="not open"):
                await use
        with pytest.raises(flatwater.ProgrammingError, match="not open"):
            other.seek(0)
        blob.seek(0)
        assert await blob.read() == b"theame", "no handle of SQLite is kept"
        unopened = db.open_blob("files", "name", 1)
        with pytest.raises(flatwater.ProgrammingError, match="not open"):
            len(unopened)


async def test_what_it_cannot_do_is_an_error_of_its_kind(place):
    async with await filled(place) as db:
        with pytest.raises(flatwater.RowNotFound):
            await db.open_blob("files", "data", 99)
        with pytest.raises(flatwater.OperationalError, match="no such table"):
            await db.open_blob("nowhere", "data", 1)
        blob = await db.open_blob("files", "name", 1)
        with pytest.raises(flatwater.ProgrammingError, match="6 bytes"):
            await blob.write(b"longer!")
        for offset, origin in ((7, 0), (-1, 0), (1, 2), (-1, 1)):
            with pytest.raises(ValueError, match="not in the blob"):
                blob.seek(offset, origin)
        with pytest.raises(ValueError, match="origin"):
            blob.seek(0, 5)
        with pytest.raises(TypeError):
            await blob.write("text")
        assert blob.tell() == 0
        with pytest.raises(flatwater.Timeout):
            await blob.read(timeout=0)
        await db.execute("UPDATE files SET name = 'b'")
        with pytest.raises(flatwater.ProgrammingError, match="had 6 bytes, and has 1"):
            await blob.read()
        with pytest.raises(AttributeError, match="open_blob"):
            _ = db.blobopen


async def test_in_a_transaction_and_a_snapshot_it_is_a_part_of_these(place):
    async with await filled(place) as db:
        with pytest.raises(ZeroDivisionError):
            async with db.transaction() as tx, tx.open_blob("files", "data", 1) as blob:
                await blob.write(b"lost")
                assert await tx.query_value("SELECT substr(data, 1, 4) FROM files") == b"lost"
                _ = 1 / 0
        async with db.transaction() as tx:
            async with tx.transaction() as nested, nested.open_blob("files", "data", 1) as blob:
                await blob.write(b"kept")
        async with db.snapshot() as snapshot, snapshot.open_blob("files", "data", 1) as blob:
            assert await blob.read(4) == b"kept"
            with pytest.raises(flatwater.ProgrammingError, match="only reads"):
                await blob.write(b"x")


async def test_a_read_that_is_cancelled_leaves_the_position(place):
    async with await filled(place) as db:
        blob = await db.open_blob("files", "data", 1)
        task = asyncio.ensure_future(blob.read(7))
        await asyncio.sleep(0)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task
            assert blob.tell() == 0


def test_for_code_that_waits_it_is_a_file(place, tmp_path):
    asyncio.run(close_filled(place)) if place != ":memory:" else None
    with blocking.connect(place) as db:
        if place == ":memory:":
            db.execute("CREATE TABLE files (id INTEGER PRIMARY KEY, data, name)")
            db.execute("INSERT INTO files VALUES (1, ?, 'a name')", (DATA,))
        with db.open_blob("files", "data", 1) as blob, open(tmp_path / "copy", "wb+") as copy:
            assert isinstance(blob, io.RawIOBase) and len(blob) == len(DATA)
            shutil.copyfileobj(blob, copy, 1000)
            copy.seek(0)
            assert copy.read() == DATA
            assert blob.read() == b"" and blob.tell() == len(DATA)
            blob.seek(0)
            with io.BufferedReader(blob) as buffered:
                assert buffered.read(3) == DATA[:3] and buffered.peek(1)
        assert blob.closed
        with pytest.raises(ValueError, match="closed"):
            blob.read()
        with db.transaction() as tx:
            rowid = tx.query_value("INSERT INTO files (data) VALUES (zeroblob(?)) RETURNING id", (len(DATA),))
            with tx.open_blob("files", "data", rowid) as blob:
                shutil.copyfileobj(io.BytesIO(DATA), blob, 1000)
                with pytest.raises(flatwater.ProgrammingError):
                    blob.write(b"x")
        assert db.query_value("SELECT data FROM files WHERE id = ?", (rowid,)) == DATA
        into = bytearray(10)
        with db.open_blob("files", "name", 1) as blob:
            assert blob.readinto(into) == 6 and into[:6] == b"a name"
            assert blob.seekable() and blob.readable() and blob.writable()


async def close_filled(place):
    await (await filled(place)).close()
