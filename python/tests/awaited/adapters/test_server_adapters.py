"""The modules with other drivers' surfaces, and SQLAlchemy, on servers: all of it on a libSQL server, and on a cluster
what needs no transaction."""

from __future__ import annotations

import sqlite3

import pytest
from sqlalchemy import func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NotSupportedError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from test_as_sqlite3 import CONTROL, SCHEMA, WRITES, of_ours, of_sqlite3

import flatwater
from flatwater import aiosqlite, dbapi

# What a libSQL server does otherwise: it has no ANALYZE, sets no PRAGMA, and does not tell which rowids a list of rows
# got, nor how many rows triggers changed.
NOT_THERE = ("ANALYZE", "PRAGMA user_version = 5", "PRAGMA user_version")
WITHOUT_TRIGGERS = SCHEMA.replace("INSERT INTO log VALUES (old.a); INSERT INTO log VALUES (old.b);", "SELECT 1;")


def comparable(step, told):
    """Without what a list of rows leaves untold: the rowid, until the next row."""
    many = isinstance(step, tuple) and isinstance(step[1], list)
    failed, got, in_transaction, total = told
    if failed or many or not isinstance(got, list):
        return [failed, None, in_transaction, None if many else total]
    return told


@pytest.mark.parametrize("level", ["", "IMMEDIATE", None])
@pytest.mark.parametrize("steps", [WRITES, CONTROL], ids=["writes", "control"])
async def test_each_statement_tells_the_same_as_sqlite3(sqld, tmp_path, level, steps):
    with sqlite3.connect(tmp_path / "theirs.db", isolation_level=level) as theirs:
        ours = await aiosqlite.connect(sqld, isolation_level=level)
        theirs.executescript(WITHOUT_TRIGGERS)
        await ours.executescript(WITHOUT_TRIGGERS)
        for step in steps:
            if step in NOT_THERE or step == ("DELETE FROM t WHERE a = ?", [(20,), (99,)]):
                continue
            expected, told = of_sqlite3(theirs, step), await of_ours(ours, step)
            if step == "INSERT OR IGNORE INTO t (a) VALUES (21)":
                # The rowid of a list of rows.
                expected[1][1] = told[1][1] = None
            assert comparable(step, told) == comparable(step, expected), step
        await ours.close()
    theirs.close()


def test_what_belongs_to_one_connection_is_refused(sqld):
    connection = dbapi.connect(sqld)
    for wrong in ["ATTACH ':memory:' AS other", "CREATE TEMP TABLE t (a)", "PRAGMA foreign_keys = ON"]:
        with pytest.raises(flatwater.Error, match="server") as caught:
            connection.execute(wrong)
        assert isinstance(caught.value, sqlite3.Error) and caught.value.hint
    with pytest.raises(flatwater.NotSupportedError, match="on a server"):
        connection.create_function("f", 0, lambda: 1)
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (1)")
    # Gone with its transaction.
    connection.close()
    with dbapi.connect(sqld) as again:
        assert again.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
    again.close()


def test_on_a_cluster_each_statement_is_applied_when_it_is_executed(cluster):
    connection = dbapi.connect(cluster.address)
    connection.execute("CREATE TABLE t (a)")
    with pytest.raises(flatwater.NotSupportedError, match="AUTOCOMMIT"):
        connection.execute("INSERT INTO t VALUES (1)")
    assert not connection.in_transaction
    connection.isolation_level = None
    assert connection.execute("INSERT INTO t VALUES (1)").lastrowid == 1
    assert connection.execute("SELECT last_insert_rowid(), changes()").fetchall() == [(1, 1)]
    with pytest.raises(flatwater.NotSupportedError, match="no interactive transactions"):
        connection.execute("BEGIN")
        connection.execute("SELECT 1")
    connection.close()


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)


async def with_sessions(engine: AsyncEngine) -> list[object]:
    """What needs no transaction of several statements. Returns all that it got."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    got: list[object] = []
    async with AsyncSession(engine) as session:
        session.add_all([User(name=f"user {number}") for number in range(5)])
        await session.commit()
        got.append((await session.scalars(select(User.name).order_by(User.id))).all())
        session.add(User(name="user 1"))
        with pytest.raises(IntegrityError, match="UNIQUE"):
            await session.commit()
        await session.rollback()
        got.append(await session.scalar(select(func.count()).select_from(User)))
        got.append([name async for (name,) in await session.stream(select(User.name).order_by(User.id))])
    return got


async def in_transactions(engine: AsyncEngine) -> list[object]:
    got: list[object] = []
    async with AsyncSession(engine) as session:
        session.add(User(name="Ada"))
        await session.flush()
        with pytest.raises(KeyError):
            async with session.begin_nested():
                session.add(User(name="Bob"))
                await session.flush()
                raise KeyError
        await session.commit()
        session.add(User(name="Eve"))
        await session.flush()
        await session.rollback()
        got.append((await session.scalars(select(User.name).order_by(User.id))).all())
    return got


def url_of(address: str) -> str:
    return address.replace("://", "+flatwater://")


async def test_sqlalchemy_on_a_libsql_server_is_that_of_a_file(sqld, tmp_path):
    there = create_async_engine(url_of(sqld))
    here = create_async_engine(f"sqlite+flatwater:///{tmp_path / 'here.db'}")
    try:
        assert await with_sessions(there) == await with_sessions(here)
        assert await in_transactions(there) == await in_transactions(here)
    finally:
        await there.dispose()
        await here.dispose()


async def test_sqlalchemy_on_a_cluster_needs_its_autocommit(cluster, tmp_path):
    nodes = cluster.address.split("@")[1].split(",")
    url = f"rqlite+flatwater://ada:secret@{nodes[0]}/?host={nodes[1]}&host={nodes[2]}&level=strong"
    assert "secret" not in repr(make_url(url))
    refused = create_async_engine(url)
    there = create_async_engine(url, isolation_level="AUTOCOMMIT")
    here = create_async_engine(f"sqlite+flatwater:///{tmp_path / 'here.db'}", isolation_level="AUTOCOMMIT")
    try:
        assert await with_sessions(there) == await with_sessions(here)
        with pytest.raises(NotSupportedError, match="AUTOCOMMIT"):
            async with AsyncSession(refused) as session:
                session.add(User(name="Ada"))
                await session.commit()
    finally:
        for engine in (refused, there, here):
            await engine.dispose()


def test_a_url_names_nodes_settings_and_secrets():
    from flatwater.sqlalchemy import LibsqlDialect, RqliteDialect

    def address(dialect, url):
        return dialect().create_connect_args(make_url(url))[0][0]

    rqlite = "rqlite+flatwater://a%40b:c%2Fd@h:4001/?host=i:4001&tls=1&timeout=5s"
    assert address(RqliteDialect, rqlite) == "rqlites://a%40b:c%2Fd@h:4001,i:4001/?timeout=5s"
    with pytest.raises(ArgumentError, match="tls is 0 or 1"):
        address(RqliteDialect, "rqlite+flatwater://h/?tls=true")
    assert address(LibsqlDialect, "libsql+flatwater://:t%3Dk@h/") == "libsql://h/?authToken=t%3Dk"
    assert address(LibsqlDialect, "libsql+flatwater://[::1]:8080/?tls=0") == "libsql://[::1]:8080/?tls=0"
