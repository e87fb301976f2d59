"""Uses of the package, checked by mypy and pyright; nothing here runs."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import datetime
from collections.abc import Coroutine, Sequence
from typing import Any

import polars
from typing_extensions import Unpack, assert_type

import flatwater
import flatwater.aiosqlite as aiosqlite
from flatwater import blocking


@dataclasses.dataclass
class User:
    id: int
    name: str


def connect_app(**options: Unpack[flatwater.Options]) -> flatwater.Connecting:
    return flatwater.connect("app.db", **options)


async def open_app() -> flatwater.Database:
    async with connect_app(readers=2) as db:
        assert_type(db, flatwater.Database)
    connecting: Coroutine[Any, Any, flatwater.Database] = connect_app()
    assert_type(await asyncio.wait_for(connecting, 5), flatwater.Database)
    return await connect_app()


async def open_with_types(types: flatwater.Types) -> None:
    async with flatwater.connect("app.db", types="standard") as db, db.stream("SELECT 1", types=types) as rows:
        assert_type([row async for row in rows], list[flatwater.Row])
    await connect_app(types={"events.at": "unix_seconds", "doc": "json"})
    await connect_app(types="standrd")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


async def find(db: flatwater.Database, sql: flatwater.SqlLike) -> flatwater.Rows:
    return await db.query(sql)


def report(stats: flatwater.Stats) -> None:
    assert_type(stats["calls"]["query"]["p99_us"], int)
    assert_type(stats["wal"]["oldest_read"], datetime.timedelta | None)
    if (cause := stats["wal"]["cause"]) is not None:
        assert_type(cause["sql"], "str | None")
    stats["wal"]["copy_p99_us"]  # type: ignore[typeddict-item] # pyright: ignore[reportGeneralTypeIssues, reportTypedDictNotRequiredAccess, reportUnusedExpression]


async def awaited() -> None:
    async with flatwater.connect("app.db", busy_timeout=1.5) as db:
        assert_type(db, flatwater.Database)
        assert_type((await db.execute("DELETE FROM users")).changes, int)
        assert_type(await db.executemany("INSERT INTO users VALUES (?)", [(1,), (2,)]), int)
        assert_type(await db.query("SELECT 1"), flatwater.Rows)
        assert_type(await db.query("SELECT 1", into=dict), list[dict[str, Any]])
        assert_type(await db.query("SELECT 1 AS a", types={"a": "boolean"}, into=dict), list[dict[str, Any]])
        await db.query("SELECT 1 AS a", types={"a": "bolean"})  # type: ignore[dict-item] # pyright: ignore[reportArgumentType]
        columns = await db.query_columns("SELECT 1 AS id")
        assert_type(columns, flatwater.Columns)
        assert_type(columns["id"], list[Any])
        assert_type(columns.to_dict(), dict[str, list[Any]])
        polars.DataFrame(columns)
        assert_type(await db.query("SELECT 1", {"id": 1}, into=User), list[User])
        assert_type(await db.query_one("SELECT 1", (1,), into=User), User)
        assert_type(await db.query_one("SELECT 1", into=dict), dict[str, Any])
        assert_type(await db.query_optional("SELECT 1", (1,), into=User), "User | None")
        assert_type(await db.query_optional("SELECT 1"), "flatwater.Row | None")
        row = await db.query_one(flatwater.Sql("SELECT ").bind(1))
        assert_type(row[0:1], tuple[Any, ...])
        assert_type(dict(row)["id"], Any)
        statement = await db.prepare("SELECT 1")
        assert_type(await statement.query(into=User), list[User])
        assert_type(await statement.query_one(), flatwater.Row)
        assert_type(await statement.query_optional(), "flatwater.Row | None")
        assert_type(await statement.query_optional(into=User), "User | None")
        async with db.transaction() as tx, tx.transaction() as nested:
            assert_type(nested, flatwater.Transaction)
            await nested.execute("DELETE FROM users")
            assert_type(await nested.rollback(), None)
        async with db.stream("SELECT 1") as rows:
            async for streamed in rows:
                assert_type(streamed, flatwater.Row)
        async with db.batches("SELECT 1") as batches:
            async for batch in batches:
                assert_type(batch, flatwater.Rows)
        async with db.live("SELECT 1").changes() as changes:
            async for change in changes:
                for old, new in change.updated:
                    assert_type((old, new), tuple[flatwater.Row, flatwater.Row])
        await db.execute("INSERT INTO users VALUES (?)", (await db.query("SELECT 1", timeout=datetime.timedelta(1)))[0])
        async with db.live_group(["SELECT 1", ("SELECT ?", (1,))]) as results:
            async for one in results:
                assert_type(one, tuple[flatwater.Rows, ...])
        call: flatwater.Call[str] = db.query_json("SELECT 1")
        assert_type(await call, str)
        task = asyncio.create_task(db.query_json("SELECT 1"))
        assert_type(await task, str)
        report(db.stats())
        db.add_statement_listener(lambda query: print(query.sql, query.total))
        db.add_statement_listener(lambda: None)  # type: ignore[arg-type, misc] # pyright: ignore[reportArgumentType]
        db.fetchall()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
    db = await flatwater.connect("app.db", journal="keep", tuning={"attach": {"other": "other.db"}, "queue": 100})
    dicts = await flatwater.connect("app.db", into=dict, read_only=True)
    assert_type(await dicts.query("SELECT 1 AS a"), list[dict[str, Any]])
    assert_type(await dicts.query_one("SELECT 1 AS a", into=tuple), tuple[Any, ...])
    assert_type(await dicts.query("SELECT 1 AS a", into=flatwater.Row), list[flatwater.Row])
    async with dicts.transaction() as outer, outer.transaction() as nested:
        assert_type(await nested.query_optional("SELECT 1 AS a"), dict[str, Any] | None)
        assert_type(await outer.query_many("SELECT ? AS a", [(1,)]), list[dict[str, Any]])
    points = blocking.connect("app.db", into=User)
    assert_type(points.query("SELECT 1 AS x"), list[User])
    assert_type(points.prepare("SELECT 1 AS x").query_one(), User)
    tuning: flatwater.Tuning = {"snapshot_age": datetime.timedelta(seconds=1), "inline": False}
    await flatwater.connect("app.db", tuning=tuning)
    await flatwater.connect("app.db", busy_timeuot=1)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue]
    await flatwater.connect("app.db", queue=100)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue]
    await flatwater.connect("app.db", tuning={"qeue": 100})  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    assert_type(await db.migrate("migrations"), list[str])
    assert_type(await db.backup("copy.db", timeout=60), None)
    await db.backup("copy.db", progress=lambda one: print(one.total_pages - one.remaining_pages))
    assert_type(await flatwater.process.close_all(datetime.timedelta(seconds=3)), None)
    flatwater.process.set_max_open(200)


async def parameters(db: flatwater.Database, limit: flatwater.Seconds, *values: int) -> None:
    rows = await db.query("SELECT ?", values, timeout=limit)
    await db.executemany("INSERT INTO users VALUES (?)", rows)
    await db.execute("DELETE FROM users WHERE id = ?", collections.deque([1]))
    await db.execute("DELETE FROM users WHERE id = :id", collections.defaultdict(int))
    await db.batch([("DELETE FROM users WHERE id = ?", rows[0]), "DELETE FROM users"])
    given: Sequence[object] = [1]
    await db.execute("DELETE FROM users WHERE id = ?", given)
    # One value that lacks the comma of a tuple.
    await db.execute("DELETE FROM users WHERE name = ?", "Ada")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    await db.execute("DELETE FROM users WHERE name = ?", b"Ada")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    await db.query("SELECT ?", "Ada")  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType]
    await db.executemany("INSERT INTO users VALUES (?)", ["Ada"])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]


def waited() -> None:
    with blocking.connect("app.db") as db, db.transaction() as tx:
        assert_type(tx.query("SELECT 1", into=User), list[User])
        assert_type(db.prepare("SELECT 1").execute(), flatwater.ExecuteResult)
        assert_type(db.prepare("SELECT 1").query(into=dict), list[dict[str, Any]])
        assert_type(tx.query_one("SELECT 1"), flatwater.Row)
        assert_type(tx.query_columns("SELECT 1"), flatwater.Columns)
        assert_type(db.prepare("SELECT 1").query_columns(), flatwater.Columns)
        assert_type(tx.query_optional("SELECT 1"), "flatwater.Row | None")
        assert_type(blocking.process.close_all(3), None)
        assert_type(db.executemany("INSERT INTO users VALUES (?)", ((n,) for n in range(3))), int)


class Total:
    def step(self, value: int) -> None: ...
    def inverse(self, value: int) -> None: ...
    def value(self) -> int:
        return 0

    def finalize(self) -> int:
        return 0


class WithoutEnd:
    def step(self, value: int) -> None: ...


def register(functions: flatwater.Functions) -> None:
    functions.create_function("double", 1, lambda number: 2 * number, deterministic=True)
    functions.create_aggregate("total", 1, Total)
    functions.create_window_function("moving", 1, Total)
    functions.create_collation("by_length", lambda one, other: len(one) - len(other))
    functions.create_aggregate("total", 1, WithoutEnd)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    functions.create_collation("by_length", len)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


async def with_functions() -> None:
    async with flatwater.connect("app.db", functions=register, load_extension="vec0") as db:
        assert_type(db.create_function("double", 1, None), None)
        register(db)
    with blocking.connect("app.db", functions=register, load_extension=["vec0", ("other", "init")]) as waiting:
        register(waiting)


async def with_aiosqlite() -> None:
    async with aiosqlite.connect("app.db", timeout=1, isolation_level=None) as db:
        assert_type(db, aiosqlite.Connection)
        db.row_factory = aiosqlite.Row
        async with db.execute("SELECT 1") as cursor:
            assert_type(cursor, aiosqlite.Cursor)
            assert_type(cursor.lastrowid, int | None)
            async for row in cursor:
                print(row["a"])
        assert_type(await db.execute("SELECT 1", {"a": 1}), aiosqlite.Cursor)
        assert_type(await db.execute_fetchall("SELECT 1"), list[Any])
        await db.executemany("INSERT INTO t VALUES (?)", ((number,) for number in range(3)))
        await db.create_function("f", 1, lambda value: value, deterministic=True)
        await db.commit()
        assert_type(db.in_transaction, bool)
    opened = await aiosqlite.connect(b"app.db")
    assert_type(opened, aiosqlite.Connection)
