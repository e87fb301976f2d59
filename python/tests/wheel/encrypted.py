"""What the wheel `flatwater-sqlcipher` can beyond the plain one: run by `make test-wheel-sqlcipher`, by a Python that
has nothing else but `sqlcipher3`, another program with SQLCipher."""

import ast
import asyncio
import inspect
import os
import re
import sqlite3
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlcipher3 import dbapi2 as sqlcipher

import flatwater
from flatwater import aiosqlite, blocking, dbapi

KEY = "open sesame, it's me"


def other(file: Path, key: str = KEY) -> sqlcipher.Connection:
    """Opens the file as another program does."""
    connection = sqlcipher.connect(file)
    connection.execute("PRAGMA key = '{}'".format(key.replace("'", "''")))
    return connection


def rows(connection: sqlcipher.Connection) -> list[int]:
    return [row[0] for row in connection.execute("SELECT a FROM t ORDER BY a")]


async def main(folder: Path) -> None:
    file = folder / "app.db"
    async with flatwater.connect(file, key=KEY) as db:
        await db.execute("CREATE TABLE t (a)")
        await db.execute("INSERT INTO t VALUES (1)")
        beside = other(file)
        assert rows(beside) == [1], "while it is open"
        beside.execute("INSERT INTO t VALUES (2)")
        beside.commit()
        assert await db.query_values("SELECT a FROM t ORDER BY a") == [1, 2]
        beside.close()
        await db.backup(folder / "copy.db")
        assert rows(other(folder / "copy.db")) == [1, 2]
    assert rows(other(file)) == [1, 2]
    assert not file.read_bytes().startswith(b"SQLite format 3")

    theirs = folder / "theirs.db"
    connection = other(theirs)
    connection.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (7)")
    connection.close()
    async with flatwater.connect(theirs, key=KEY) as db:
        assert await db.query_value("SELECT a FROM t") == 7

    damaged = bytearray(file.read_bytes())
    damaged[4096 + 100] ^= 1
    (folder / "damaged.db").write_bytes(damaged)
    async with flatwater.connect(folder / "damaged.db", key=KEY) as db:
        assert [problem async for problem in db.integrity_check()] == ["HMAC verification failed for page 2"]
    with blocking.connect(folder / "damaged.db", key=KEY) as db:
        assert list(db.integrity_check()) == ["HMAC verification failed for page 2"]
    with blocking.connect(file, key=KEY) as db:
        assert list(db.integrity_check()) == []

    await settings(folder)

    raw = bytes(range(32))
    async with flatwater.connect(theirs, key=KEY) as db:
        await db.rekey(raw)
        assert await db.has_key(raw) and not await db.has_key(KEY)
        await db.execute("INSERT INTO t VALUES (8)")
        await db.export(folder / "plain.db", key=None)
    with sqlite3.connect(folder / "plain.db") as plain:
        assert plain.execute("SELECT count(*) FROM t").fetchone() == (2,)
    beside = sqlcipher.connect(theirs)
    beside.execute(f"PRAGMA key = \"x'{raw.hex()}'\"")
    assert rows(beside) == [7, 8]
    beside.close()

    with blocking.connect(folder / "plain.db") as db:
        db.export(folder / "again.db", key=KEY)
    assert rows(other(folder / "again.db")) == [7, 8]

    for path, key, said in [
        (file, "hunter2", "the key does not open"),
        (file, bytes(32), "the key does not open"),
        (file, None, "is encrypted, or is no SQLite database, and no key was given"),
        (folder / "plain.db", "hunter2", "is not encrypted, and a key was given"),
    ]:
        try:
            await flatwater.connect(path, key=key)
        except flatwater.OperationalError as error:
            assert error.kind == "key" and said in str(error), error
            assert "hunter2" not in str(error), error
        else:
            raise AssertionError(f"{path} was opened with {key!r}")
    async with flatwater.connect(":memory:") as db:
        version = await db.query_value("PRAGMA cipher_version")
    print(f"flatwater-sqlcipher with SQLCipher {version}, beside {sqlcipher.sqlite_version}")


async def settings(folder: Path) -> None:
    """The surfaces of `sqlite3` take no setting of SQLCipher, and copy no encrypted database."""
    file = folder / "settings.db"

    def refuses(call: Any, said: str) -> None:
        try:
            call()
        except sqlite3.Error as error:
            assert said in str(error), error
        else:
            raise AssertionError(f"it was accepted, and is to say: {said}")

    with closing(dbapi.connect(file, key=KEY)) as db, closing(sqlite3.connect(":memory:")) as plain:
        with db:
            db.execute("CREATE TABLE t (a)")
            db.execute("INSERT INTO t VALUES (1)")
        for pragma in ("cipher_default_kdf_iter = 1", "cipher_log = stdout", "cipher_plaintext_header_size = 32"):
            refuses(lambda pragma=pragma: db.execute(f"PRAGMA {pragma}"), "of SQLCipher")
            refuses(lambda pragma=pragma: db.executescript(f"PRAGMA {pragma}"), "of SQLCipher")
        refuses(lambda: db.backup(plain), "`export`")
        with closing(dbapi.connect(folder / "target.db")) as target:
            refuses(lambda: db.backup(target), "`export`")
            refuses(lambda: target.backup(db), "`export`")
    async with aiosqlite.connect(file, key=KEY) as db:
        try:
            await db.execute("PRAGMA cipher_default_use_hmac = OFF")
        except sqlite3.Error as error:
            assert "of SQLCipher" in str(error), error
        else:
            raise AssertionError("it was accepted")
    beside = other(file)
    assert rows(beside) == [1]
    beside.close()


def forked(folder: Path) -> None:
    """A child that was forked while the parent encrypts pages opens an encrypted file of its own."""
    ended = threading.Event()

    def write(db: blocking.Database) -> None:
        while not ended.is_set():
            db.execute("INSERT INTO t VALUES (randomblob(20000))")

    with blocking.connect(folder / "parent.db", key=bytes(32)) as db:
        db.execute("CREATE TABLE t (a)")
        writing = threading.Thread(target=write, args=(db,))
        writing.start()
        for number in range(20):
            child = os.fork()
            if child == 0:
                with blocking.connect(folder / f"child-{number}.db", key=bytes(32)) as own:
                    own.execute("CREATE TABLE t (a)")
                os._exit(0)
            began = time.monotonic()
            while (ended_child := os.waitpid(child, os.WNOHANG)) == (0, 0):
                if time.monotonic() > began + 120:
                    os.kill(child, 9)
                    raise AssertionError("the child hangs")
                time.sleep(0.01)
            assert ended_child[1] == 0, ended_child
        ended.set()
        writing.join()


async def page(folder: Path) -> None:
    """Runs the code of the guide's page, one block after the other."""
    text = (Path(__file__).parents[3] / "docs/guide/encryption.md").read_text()
    names: dict[str, Any] = {}
    os.chdir(folder)
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        running = eval(compile(block, "encryption.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.isawaitable(running):
            await running


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
    with tempfile.TemporaryDirectory() as folder:
        forked(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(page(Path(folder)))
        os.chdir("/")
