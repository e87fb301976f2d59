"""Rows, and what they become with `into`."""

from __future__ import annotations

import dataclasses
import pickle
import typing

import pytest

import flatwater


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


async def test_a_row_can_be_pickled():
    for row in await rows("SELECT 1 AS id, 0.5 AS b, NULL AS c, x'00ff' AS d, 'x' AS e"):
        again = pickle.loads(pickle.dumps(row))
        assert again == row and again["d"] == b"\0\xff" and again.keys() == row.keys()


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
        assert await db.query_one("SELECT 7 AS id, 'x' AS name WHERE 0", into=User) is None
        with pytest.raises(TypeError, match="unexpected keyword argument 'age'"):
            await db.query("SELECT 1 AS age", into=User)


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
