"""A database on a server: the same methods on the stand-in for an rqlite cluster, which is a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import flatwater
from flatwater import blocking


async def program(db: flatwater.Database) -> list[object]:
    """What a program does with a database. Returns all that it got."""
    await db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT UNIQUE, score REAL, picture BLOB)")
    insert = "INSERT INTO users (name, score, picture) VALUES (?, ?, ?)"
    got: list[object] = [await db.execute(insert, ("Ada", 1.0, b"\x00\xff"))]
    got.append(await db.execute("UPDATE users SET score = :by WHERE name = :who", {"by": 2.5, "who": "Ada"}))
    got.append(await db.executemany(insert, [(f"user {number}", number, None) for number in range(300)]))
    got.append([tuple(row) for row in await db.query("SELECT * FROM users ORDER BY id LIMIT 3")])
    got.append(await db.query_value("SELECT count(*) FROM users"))
    got.append(await db.query_optional("SELECT * FROM users WHERE id = 9999"))
    got.append(await db.query_json("SELECT id, name FROM users ORDER BY id LIMIT 2"))
    batch = await db.batch([("INSERT INTO users (name) VALUES (?)", ("Bob",)), "DELETE FROM users WHERE name = 'Bob'"])
    got.append([(one.changes, one.last_insert_rowid) for one in batch])
    got.append([tuple(row) for row in await db.query("INSERT INTO users (name) VALUES ('Eve') RETURNING id, name")])
    await db.executescript("CREATE TABLE a (x); INSERT INTO a VALUES (1); INSERT INTO a VALUES (2)")
    async with db.stream("SELECT x FROM a ORDER BY x") as rows:
        got.append([row[0] async for row in rows])
    got.append(await db.migrate([("0001_tags", "CREATE TABLE tags (a); INSERT INTO tags VALUES (1)")]))
    got.append(await db.migrate([("0001_tags", "CREATE TABLE tags (a); INSERT INTO tags VALUES (1)")]))
    for wrong in ["INSERT INTO users (id, name) VALUES (1, 'x')", "UPDATE users SET missing = 1", "INSERT INTO"]:
        with pytest.raises(flatwater.Error) as caught:
            await db.execute(wrong)
        got.append((type(caught.value), caught.value.kind, str(caught.value)))
    return got


async def test_a_program_gets_the_same_on_a_file_and_on_a_server(cluster, file):
    async with flatwater.connect(cluster.address) as server, flatwater.connect(file) as db:
        assert await program(server) == await program(db)
        results = await asyncio.gather(*(server.execute("INSERT INTO a VALUES (?)", (n,)) for n in range(50)))
        assert all(result.changes == 1 for result in results)
        with pytest.raises(flatwater.ProgrammingError):
            await server.query("SELECT ?, ?", (1,))
    with pytest.raises(flatwater.ProgrammingError, match="closed"):
        await server.query("SELECT 1")


async def test_what_a_server_has_not_is_refused_with_a_hint(cluster, tmp_path):
    async with flatwater.connect(cluster.address) as server:
        await server.execute("CREATE TABLE t (a)")
        with pytest.raises(flatwater.ProgrammingError, match="no interactive transactions.*batch"):
            async with server.transaction():
                pass
        with pytest.raises(flatwater.ProgrammingError, match="on a server"):
            async with server.snapshot():
                pass
        with pytest.raises(flatwater.ProgrammingError, match="on a server"):
            async with server.live("SELECT a FROM t").changes() as changes:
                await anext(aiter(changes))
        with pytest.raises(flatwater.ProgrammingError, match="on a server"):
            await server.backup(tmp_path / "copy.db")
        with pytest.raises(flatwater.ProgrammingError, match="on a server"):
            await server.vacuum()
        with pytest.raises(flatwater.ProgrammingError, match="on a server"):
            server.stats()
        with pytest.raises(flatwater.ProgrammingError, match="on a server"):
            server.connection()
        with pytest.raises(flatwater.ProgrammingError, match="on a server"):
            server.create_function("f", 0, lambda: 1)
        assert await server.query_value("SELECT count(*) FROM t") == 0


FORKS = """
import os, sys
from flatwater import blocking
import flatwater

server = blocking.connect(sys.argv[1])
assert server.query_value("SELECT 1") == 1
child = os.fork()
if child == 0:
    for use in (lambda: server.query_value("SELECT 1"), server.close):
        try:
            use()
        except flatwater.ProgrammingError as refused:
            assert "forked" in str(refused), refused
        else:
            os._exit(1)
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert server.query_value("SELECT 1") == 1
server.close()
"""


def test_a_child_is_told_that_the_connection_is_its_parents(cluster):
    command = [sys.executable, "-W", "ignore", "-c", FORKS, cluster.address]
    assert subprocess.run(command, timeout=60).returncode == 0


@pytest.mark.parametrize(
    "address", ["libsql:h?authToken=secret", "RQLITE:/secret@h", "https://a:secret@h", Path("rqlite://secret")]
)
async def test_what_is_not_quite_an_address_is_no_file(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(flatwater.ProgrammingError, match="rqlite://user:password@host") as caught:
        await flatwater.connect(address)
    assert "secret" not in str(caught.value) and not list(tmp_path.iterdir())


async def test_an_address_has_its_settings_and_keeps_its_secret(cluster):
    with pytest.raises(flatwater.ProgrammingError, match="levle"):
        await flatwater.connect(f"{cluster.address}/?levle=weak")
    with pytest.raises(flatwater.ProgrammingError, match="readers.*on a server"):
        await flatwater.connect(cluster.address, readers=2)
    with pytest.raises(TypeError):
        await flatwater.connect(cluster.address, raeders=2)
    async with flatwater.connect(f"{cluster.address}/?level=strong&timeout=5s", timeout=60) as server:
        assert "secret" not in repr(server) and "rqlite://" in repr(server)
        told: list[str] = []
        server.add_statement_listener(lambda query: told.append(query.sql or ""))
        await server.execute("CREATE TABLE t (a)")
        await asyncio.sleep(0)
        assert await server.query_value("SELECT count(*) FROM t") == 0
        assert "CREATE TABLE t (a)" in told


async def test_a_lost_answer_is_no_second_write_and_no_server_is_a_timeout(cluster):
    async with flatwater.connect(cluster.address) as server:
        await server.execute("CREATE TABLE t (a)")
        cluster.order(script=["drop_after", "drop_after"])
        assert (await server.execute("INSERT INTO t VALUES (1)")).changes == 1
        assert await server.query_value("SELECT count(*) FROM t") == 1
        cluster.order(headless=True)
        with pytest.raises(flatwater.Timeout) as caught:
            await server.execute("INSERT INTO t VALUES (2)", timeout=0.3)
        assert caught.value.applied in ("no", "unknown")


def test_a_thread_that_waits_has_the_same(cluster):
    with blocking.connect(cluster.address) as server:
        server.execute("CREATE TABLE t (a)")
        assert server.executemany("INSERT INTO t VALUES (?)", ((number,) for number in range(2000))) == 2000
        assert server.execute("DELETE FROM t").changes == 2000
        assert server.execute("INSERT INTO t VALUES (?)", (1,)).changes == 1
        assert [row[0] for row in server.query("SELECT a FROM t")] == [1]
        assert server.migrate([("0001_u", "CREATE TABLE u (a)")]) == ["0001_u"]


async def until(results, expected):
    """Waits for a result of a live query."""
    async for rows in results:
        if rows[0][0] == expected:
            return
    raise AssertionError("it is over")


async def test_a_live_query_tells_of_what_others_write(cluster):
    async with flatwater.connect(cluster.address) as server, flatwater.connect(cluster.address) as other:
        await server.execute("CREATE TABLE t (a)")
        async with server.live("SELECT count(*) FROM t") as results:
            await other.execute("INSERT INTO t VALUES (1), (2)")
            await server.execute("INSERT INTO t VALUES (3)")
            await until(results, 3)


async def in_transactions(db: flatwater.Database) -> list[object]:
    """What a program does with transactions. Returns all that it got."""
    await db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b UNIQUE)")
    insert = "INSERT INTO t (b) VALUES (?)"
    got: list[object] = []
    async with db.transaction() as tx:
        got.append(await tx.execute(insert, (1,)))
        async with tx.transaction() as inner:
            await inner.execute(insert, (2,))
        with pytest.raises(KeyError):
            async with tx.transaction() as inner:
                await inner.execute(insert, (3,))
                raise KeyError
        with pytest.raises(flatwater.IntegrityError):
            await tx.execute(insert, (2,))
        with pytest.raises(flatwater.ProgrammingError, match="inside its own transaction"):
            await db.execute(insert, (9,))
        got.append([tuple(row) for row in await tx.query("SELECT * FROM t")])
    with pytest.raises(KeyError):
        async with db.transaction() as tx:
            await tx.execute(insert, (5,))
            raise KeyError
    got.append([tuple(row) for row in await db.query("SELECT * FROM t")])
    return got


async def test_a_transaction_on_a_libsql_server_is_that_of_a_file(sqld, file):
    async with flatwater.connect(sqld) as server, flatwater.connect(file) as db:
        assert await in_transactions(server) == await in_transactions(db)
        async with server.live("SELECT count(*) FROM t") as results:
            async with server.transaction() as tx:
                await tx.execute("INSERT INTO t (b) VALUES (7)")
            await until(results, 3)


def test_a_thread_has_transactions_on_a_libsql_server_too(sqld):
    with blocking.connect(sqld) as server:
        server.execute("CREATE TABLE t (a)")
        with server.transaction() as tx:
            assert tx.executemany("INSERT INTO t VALUES (?)", ((n,) for n in range(3000))) == 3000
        with pytest.raises(KeyError), server.transaction() as tx:
            tx.execute("DELETE FROM t")
            raise KeyError
        assert server.query_value("SELECT count(*) FROM t") == 3000
