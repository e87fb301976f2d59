"""Rows, and what they become with `into`."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import json
import pickle
import sys
import typing

import msgspec
import pydantic
import pytest

import flatwater
from flatwater import blocking


async def rows(sql="SELECT 1 AS id, 'Ada' AS name UNION ALL SELECT 2, 'Eve'", **options):
    async with flatwater.connect(":memory:") as db:
        return await db.query(sql, **options)


async def test_a_row_is_read_by_position_and_by_name():
    row = (await rows())[0]
    assert (row[0], row[-1], row["id"], row["NAME"], row[0:2]) == (1, "Ada", 1, "Ada", (1, "Ada"))
    assert (len(row), list(row), tuple(row), dict(row)) == (2, [1, "Ada"], (1, "Ada"), {"id": 1, "name": "Ada"})
    assert list(row.keys()) == ["id", "name"]
    number, name = row
    assert (number, name) == (1, "Ada")
    with pytest.raises(KeyError, match="no column named.*the result has id, name"):
        row["age"]
    with pytest.raises(IndexError):
        row[2]
    with pytest.raises(TypeError):
        row[1.5]
    with pytest.raises(TypeError):
        row["id"] = 5


async def test_a_row_is_equal_to_a_tuple_and_can_be_hashed():
    first, second = await rows()
    assert first == (1, "Ada") and (1, "Ada") == first and first != second and first != [1, "Ada"]
    assert first < second
    assert {first: 1}[(1, "Ada")] == 1
    assert repr(first) == "<Row id=1, name='Ada'>"


EVERY_TYPE = "SELECT 1 AS id, 0.5 AS b, NULL AS c, x'00ff' AS d, 'x' AS e"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
async def test_results_can_be_pickled(protocol):
    async with flatwater.connect(":memory:") as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        result = await db.query(f"{EVERY_TYPE} UNION ALL SELECT 2, NULL, 'y', '', x''")
        inserted = await db.execute("INSERT INTO t DEFAULT VALUES")
        [returned] = await db.batch(["INSERT INTO t DEFAULT VALUES RETURNING id"])
        for one in [result[0], result, await db.query("SELECT 1 WHERE 0"), inserted]:
            again = pickle.loads(pickle.dumps(one, protocol))
            assert again == one and type(again) is type(one)
        again = pickle.loads(pickle.dumps(result, protocol))
        assert (
            again.columns == result.columns and again[0]["d"] == b"\0\xff" and list(again[1]) == [2, None, "y", "", b""]
        )
        again = pickle.loads(pickle.dumps(returned, protocol))
        assert (again.changes, again.last_insert_rowid, again.rows) == (1, 2, [(2,)])
        with pytest.raises(flatwater.OperationalError) as failed:
            await db.query("SELECT nothing")
        again = pickle.loads(pickle.dumps(failed.value, protocol))
        assert str(again) == str(failed.value) and (again.kind, again.sql) == ("sql", "SELECT nothing")


async def test_a_result_is_its_own_copy():
    async with flatwater.connect(":memory:") as db:
        result = await db.query("SELECT 1 AS id, CAST(x'ff' AS TEXT) AS bad")
        for one in [result, result[0]]:
            assert copy.copy(one) is one and copy.deepcopy(one) is one
        done = await db.execute("CREATE TABLE t (a)")
        assert copy.copy(done) == done == copy.deepcopy(done)


async def test_every_row_can_be_shown():
    [row] = await rows("SELECT 1 AS id, CAST(x'ff41' AS TEXT) AS \"b d\", 'x' AS c")
    assert repr(row) == "<Row id=1, b d=<text that is not UTF-8>, c='x'>"
    assert "1 rows" in repr(await rows("SELECT CAST(x'ff41' AS TEXT)"))


async def test_a_result_is_a_sequence():
    result = await rows()
    assert (len(result), result[-1], result[5:], result[::-1]) == (2, (2, "Eve"), [], [(2, "Eve"), (1, "Ada")])
    assert result.columns == ("id", "name")
    assert result == [(1, "Ada"), (2, "Eve")] and result != [(1, "Ada")] and result != [(1, "Ada"), (2, "x")]
    assert [row["name"] for row in result] == ["Ada", "Eve"]
    assert not await rows("SELECT 1 WHERE 0")
    with pytest.raises(IndexError):
        result[2]


@dataclasses.dataclass
class User:
    id: int
    name: str


class Named(typing.NamedTuple):
    id: int
    name: str


async def test_rows_become_what_into_says():
    assert await rows(into=dict) == [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Eve"}]
    assert await rows(into=tuple) == [(1, "Ada"), (2, "Eve")]
    assert await rows(into=User) == [User(1, "Ada"), User(2, "Eve")]
    assert await rows(into=Named) == [Named(1, "Ada"), Named(2, "Eve")]
    assert await rows(into=lambda id, name: name * id) == ["Ada", "EveEve"]
    async with flatwater.connect(":memory:") as db:
        assert await db.query_one("SELECT 7 AS id, 'x' AS name", into=User) == User(7, "x")
        assert await db.query_optional("SELECT 7 AS id, 'x' AS name", into=User) == User(7, "x")
        assert await db.query_optional("SELECT 7 AS id, 'x' AS name WHERE 0", into=User) is None
        with pytest.raises(flatwater.RowNotFound):
            await db.query_one("SELECT 7 AS id, 'x' AS name WHERE 0", into=User)
        with pytest.raises(TypeError, match="unexpected keyword argument 'age'"):
            await db.query("SELECT 1 AS age", into=User)


class Model(pydantic.BaseModel):
    id: int
    name: str


class Struct(msgspec.Struct):
    id: int
    name: str


@pytest.mark.parametrize("into", [Model, Struct])
async def test_models_of_other_libraries_take_the_columns_by_name(into):
    assert await rows(into=into) == [into(id=1, name="Ada"), into(id=2, name="Eve")]
    async with flatwater.connect(":memory:") as db:
        assert await db.query_one("SELECT 7 AS id, 'x' AS name", into=into) == into(id=7, name="x")
        with pytest.raises((pydantic.ValidationError, TypeError), match="name|required"):
            await db.query("SELECT 1 AS id", into=into)


@pytest.mark.parametrize("into", [dict, lambda **columns: columns])
async def test_two_columns_of_one_name_are_no_dict(into):
    for sql in ["SELECT 1 AS id, 2 AS b, 3 AS id", "SELECT 1 AS id, 2 AS id WHERE 0"]:
        with pytest.raises(flatwater.ProgrammingError, match='two columns are named "id"') as caught:
            await rows(sql, into=into)
        assert "AS" in caught.value.hint
        async with flatwater.connect(":memory:") as db:
            with pytest.raises(flatwater.ProgrammingError, match='two columns are named "id"'):
                await db.query_optional(sql, into=into)
    assert await rows("SELECT 1 AS id, 2 AS ID", into=dict) == [{"id": 1, "ID": 2}]
    assert await rows("SELECT 1 AS id, 2 AS id", into=tuple) == [(1, 2)]
    # A row is read by position; by name it is the first.
    row = (await rows("SELECT 1 AS id, 2 AS id"))[0]
    assert (tuple(row), row["id"]) == ((1, 2), 1)


async def test_the_garbage_collector_does_not_visit_rows(place):
    """However many there are: a collection would hold the loop for as long."""
    async with flatwater.connect(place) as db:
        await db.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        result = await db.query("SELECT * FROM t")
        made = [*result, *result[:], result[0], await db.query_one("SELECT * FROM t"), dict(result[0])]
        made += await db.query("SELECT * FROM t", into=tuple) + await db.query("SELECT * FROM t", into=dict)
        async with db.live("SELECT * FROM t").changes() as changes:
            async for change in changes:
                if change.full is None:
                    break
                await db.execute("UPDATE t SET a = 'z'")
        made += [*change.updated, *change.updated[0]]
        assert len(change.updated) == 2 and len(made) >= 12
        assert [one for one in made if gc.is_tracked(one)] == []
        # A list is known when it is complete: the program may put anything into it.
        result = await db.query("SELECT * FROM t", into=tuple)
        assert gc.is_tracked(result) and result == [(1, "z"), (2, "z")]


@pytest.mark.parametrize("sign", ["a", "é", "ş", "\U0001f41f", "a\0é\U0001f41f"])
@pytest.mark.parametrize("size", [1, 1000, 100_000, 400_001])
async def test_json_of_any_size_is_the_same_text(sign, size):
    async with flatwater.connect(":memory:") as db:
        text = "x" * (size % 7) + sign * size
        await db.execute("CREATE TABLE t (a)")
        await db.execute("INSERT INTO t VALUES (?)", (text,))
        found = await db.query_json("SELECT a FROM t", arrays=True)
        assert json.loads(found) == [[text]] and found.encode().decode() == found


@pytest.mark.parametrize(
    "text", ["", "a", "ab", "a\0b", "x" * 1000, "é", "xé", "x" * 40 + "ş", "\U0001f41f", "\x7f\x7f"]
)
async def test_a_text_is_the_string_that_python_makes_of_it(text):
    async with flatwater.connect(":memory:") as db:
        found = await db.query_value("SELECT ?", (text,))
        assert (found, len(found), hash(found), found.isascii()) == (text, len(text), hash(text), text.isascii())
        assert [found] == await db.query_values("SELECT ?", (text,)) == [(await db.query_one("SELECT ?", (text,)))[0]]
        assert sys.getsizeof(found) == sys.getsizeof("".join(text)), "it takes no more memory"


async def test_a_large_result_that_nobody_gets_is_freed_in_slices(file):
    async with flatwater.connect(file) as db:
        numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 200000) SELECT n, n AS m FROM c"
        await db.executescript(f"CREATE TABLE t (n PRIMARY KEY, m); INSERT INTO t {numbers}")
        seen = 0

        def make(n, m):
            nonlocal seen
            seen = n
            if n == limit:
                raise ZeroDivisionError
            return m

        for limit in [150_000, -1]:
            task = asyncio.create_task(db.query("SELECT n, m FROM t", into=make))
            seen = turns = 0
            while seen < 100_000:
                await asyncio.sleep(0)
            if limit < 0:
                task.cancel()
            last = seen
            while not task.done():
                turns += seen == last
                last = seen
                await asyncio.sleep(0)
            with pytest.raises((ZeroDivisionError, asyncio.CancelledError)):
                await task
            assert turns > 1, "the exception came after some turns of the loop"
        assert await db.query_value("SELECT count(*) FROM t") == 200_000


async def test_a_large_change_is_made_in_slices(file, other_task):
    async with flatwater.connect(file) as db:
        numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 60000) SELECT n, n FROM c"
        await db.executescript(f"CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t {numbers}")
        async with other_task() as other, db.live("SELECT id, a FROM t WHERE id > 0").changes() as changes:
            async for change in changes:
                if change.full is None:
                    break
                write = "UPDATE t SET a = -a WHERE id <= 30000", "INSERT INTO t SELECT id + 100000, a FROM t"
                await db.batch([*write, "DELETE FROM t WHERE id > 30000 AND id <= 60000"])
        assert [len(part) for part in (change.updated, change.inserted, change.deleted)] == [30_000, 60_000, 30_000]
        assert change.updated[-1] == ((30_000, 30_000), (30_000, -30_000))
        assert (change.inserted[0], change.deleted[-1]) == ((100_001, -1), (60_000, 60_000))
        assert other.turns > 3


async def test_a_large_result_is_made_in_slices(file, other_task):
    async with flatwater.connect(file) as db:
        numbers = "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c LIMIT 50000) SELECT n, n AS m FROM c"
        async with other_task() as other:
            result = await db.query(numbers, into=dict)
        assert len(result) == 50_000 and result[-1] == {"n": 49_999, "m": 49_999}
        assert other.turns > 3


async def test_results_outlive_their_database(file):
    async with flatwater.connect(file) as db:
        await db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES ('x'), ('y')")
        result = await db.query("SELECT a FROM t")
        row = result[1]
    assert [row["a"] for row in result] == ["x", "y"] and row["a"] == "y"


async def test_a_column_is_no_attribute_and_the_error_says_how_it_is_read():
    async with flatwater.connect(":memory:") as db:
        row = await db.query_one("SELECT 1 AS name, 2 AS keys")
    with pytest.raises(AttributeError, match=r"no attribute \"name\": its column is row\[\"name\"\]"):
        row.name
    with pytest.raises(AttributeError, match='no attribute "nonsense"$'):
        row.nonsense
    assert not hasattr(row, "name") and row.keys() == ("name", "keys") and copy.copy(row) == row == (1, 2)


async def test_a_database_says_what_rows_become_and_a_call_says_otherwise(place):
    sql = "SELECT 1 AS a, 'x' AS b"
    async with flatwater.connect(place, into=dict, types="standard") as db:
        assert await db.query(sql) == [{"a": 1, "b": "x"}]
        assert await db.query_one(sql) == {"a": 1, "b": "x"} == await db.query_optional(sql)
        assert await db.query_many("SELECT ? AS a", [(1,), (2,)]) == [{"a": 1}, {"a": 2}]
        assert await db.query(sql, into=tuple) == [(1, "x")] and await db.query_value(sql) == 1
        [row] = await db.query(sql, into=flatwater.Row)
        assert isinstance(row, flatwater.Row) and row == (1, "x")
        async with db.transaction() as tx, tx.transaction() as nested:
            assert await nested.query_one(sql) == {"a": 1, "b": "x"}
        statement = await db.prepare(sql)
        assert await statement.query() == [{"a": 1, "b": "x"}]
        # What comes in parts, and what may have rows, has rows by name and position.
        async with db.stream(sql) as rows:
            assert [row async for row in rows] == [(1, "x")]
        assert (await db.run(sql)).rows == [(1, "x")] and [line async for line in db.iterdump()]
        with pytest.raises(flatwater.ProgrammingError, match="two columns are named"):
            await db.query("SELECT 1 AS a, 2 AS a")
    async with flatwater.connect(place, into=lambda a, b: f"{a}{b}") as db:
        assert await db.query(sql) == ["1x"]
        with pytest.raises(TypeError, match="unexpected keyword argument 'c'") as failed:
            await db.query("SELECT 'not shown' AS a, 2 AS c")
        if sys.version_info >= (3, 11):
            assert failed.value.__notes__ == ["row 0 of the result, with the columns a, c"]
    with pytest.raises(TypeError, match='"into" must be a class'):
        flatwater.connect(place, into="dict")
    with blocking.connect(":memory:", into=tuple) as db:
        rows = db.query(sql)
        assert type(rows[0]) is tuple and rows == [(1, "x")] and list(db.iterdump())
