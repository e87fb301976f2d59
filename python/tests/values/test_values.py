"""Values: which are bound, in which form, and how they come back."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import sys
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flatwater

UTC = datetime.timezone.utc


async def back(value):
    async with flatwater.connect(":memory:") as db:
        return await db.query_value("SELECT ?", (value,))


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        0.5,
        math.inf,
        -math.inf,
        "",
        "Ada",
        "a\0b",
        "\U0001f41f",
        b"",
        b"\0\xff",
        "x" * 10**6,
    ],
    ids=lambda value: repr(value)[:20],
)
async def test_a_value_comes_back_as_it_was(value):
    result = await back(value)
    assert result == value and type(result) is type(value)


class Color(enum.IntEnum):
    RED = 3


class Name(str):
    pass


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (True, 1),
        (False, 0),
        (Color.RED, 3),
        (Name("Ada"), "Ada"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcd")[::2], b"ac"),
        (datetime.datetime(2024, 2, 29, 23, 5, 6), "2024-02-29 23:05:06"),
        (datetime.datetime(2024, 2, 29, 23, 5, 6, 7, UTC), "2024-02-29 23:05:06.000007"),
        (
            datetime.datetime(2024, 3, 1, 1, 5, 6, 0, datetime.timezone(datetime.timedelta(hours=2))),
            "2024-02-29 23:05:06",
        ),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (datetime.time(23, 5, 6, 7), "23:05:06.000007"),
        (uuid.UUID("67e55044-10b1-426f-9247-bb680e5fe0c8"), "67e55044-10b1-426f-9247-bb680e5fe0c8"),
    ],
    ids=repr,
)
async def test_a_value_of_another_type_has_one_form(value, stored):
    assert await back(value) == stored


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (2**63, OverflowError, "64 bits"),
        (-(2**63) - 1, OverflowError, "64 bits"),
        (math.nan, flatwater.ProgrammingError, "NaN"),
        (decimal.Decimal("1.5"), flatwater.ProgrammingError, "decimals"),
        ("\ud800", UnicodeEncodeError, "surrogates"),
        (datetime.time(1, tzinfo=UTC), flatwater.ProgrammingError, "time zone"),
        (object(), flatwater.ProgrammingError, "cannot be bound"),
        ([1], flatwater.ProgrammingError, "bind_list"),
        ({"a": 1}, flatwater.ProgrammingError, "stores it as JSON"),
        (type("Coming", (), {"__await__": iter})(), flatwater.ProgrammingError, "it was not awaited"),
    ],
    ids=lambda value: repr(value)[:20],
)
async def test_a_value_that_cannot_be_stored_unchanged_is_refused(value, error, text):
    with pytest.raises(error, match=text) as caught:
        await back(value)
    assert "1.5" not in str(caught.value)


async def test_an_adapter_says_how_values_of_a_type_are_stored():
    class Point:
        def __init__(self, x, y):
            self.x, self.y = x, y

    class Point3(Point):
        pass

    flatwater.register_adapter(Point, lambda point: f"{point.x};{point.y}")
    assert await back(Point(1, 2)) == "1;2"
    assert await back(Point3(3, 4)) == "3;4"
    flatwater.register_adapter(Point, lambda point: [point.x])
    with pytest.raises(TypeError, match="an adapter returned list"):
        await back(Point(1, 2))


async def test_an_object_may_say_itself_how_it_is_stored():
    class Temperature:
        def __conform__(self, protocol):
            return 21.5

    assert await back(Temperature()) == 21.5


async def test_text_that_is_not_utf8_is_an_error_of_its_cell():
    async with flatwater.connect(":memory:") as db:
        row = await db.query_one("SELECT 1 AS a, CAST(x'ff' AS TEXT) AS b")
        assert row["a"] == 1
        with pytest.raises(flatwater.OperationalError, match='column "b" is not UTF-8'):
            row["b"]


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
)


@given(st.lists(VALUES, min_size=1, max_size=12))
@settings(deadline=None, max_examples=200)
def test_any_values_come_back_as_they_were(values):
    import asyncio

    async def round_trip():
        async with flatwater.connect(":memory:") as db:
            columns = ", ".join("?" * len(values))
            await db.execute(f"CREATE TABLE t ({', '.join(f'c{n}' for n in range(len(values)))})")
            await db.execute(f"INSERT INTO t VALUES ({columns})", values)
            await db.executemany(f"INSERT INTO t VALUES ({columns})", [values, tuple(values)])
            return await db.query("SELECT * FROM t", into=tuple), await db.query("SELECT * FROM t")

    tuples, rows = asyncio.run(round_trip())
    expected = tuple(values)
    assert [repr(row) for row in tuples] == [repr(expected)] * 3
    assert all(list(map(repr, row)) == list(map(repr, values)) for row in rows)


async def test_sql_that_is_put_together_binds_its_values():
    async with flatwater.connect(":memory:") as db:
        await db.executescript("CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')")
        sql = flatwater.Sql("SELECT a FROM t WHERE a IN ").bind_list([1, 2])
        sql.push(" AND ").push_identifier("b").push(" = ").bind("y")
        assert await db.query(sql) == [(2,)]
        assert await db.query(flatwater.Sql("SELECT a FROM t WHERE a IN ").bind_list([])) == []
        with pytest.raises(flatwater.ProgrammingError, match="two sets of values"):
            await db.query(sql, (1,))
        with pytest.raises(TypeError, match="not int"):
            await db.query(5)
        both = flatwater.Sql("SELECT 1 WHERE ").push_sql(flatwater.Sql().bind(1)).push(" = ").bind(1)
        assert (both.text, both.params) == ("SELECT 1 WHERE ? = ?", (1, 1))


async def test_values_in_a_template_are_bound():
    """What Python 3.14 makes of a t-string."""

    class Part:
        def __init__(self, value, conversion=None, format_spec=""):
            self.value, self.conversion, self.format_spec = value, conversion, format_spec

    class Template:
        def __init__(self, strings, *parts):
            self.strings, self.interpolations = strings, parts

    async with flatwater.connect(":memory:") as db:
        sql = Template(("SELECT ", ", ", ""), Part("'; DROP TABLE t --"), Part(5))
        assert await db.query_one(sql) == ("'; DROP TABLE t --", 5)
        with pytest.raises(flatwater.ProgrammingError, match="bound as it is"):
            await db.query_one(Template(("SELECT ", ""), Part(5, "r")))
        named = Template(("", " AS two"), Part(2))
        mixed = Template(("SELECT ", " AS one, ", ", ", ""), Part(1), Part(named), Part(flatwater.Sql("3 + ").bind(1)))
        assert dict(await db.query_one(mixed)) == {"one": 1, "two": 2, "3 + ?": 4}
        [first, second] = await db.batch([sql, Template(("SELECT ", ""), Part("'"))])
        assert (first.rows, second.rows) == ([("'; DROP TABLE t --", 5)], [("'",)])


@pytest.mark.skipif(sys.version_info < (3, 14), reason="t-strings are of Python 3.14 and newer")
async def test_values_in_a_t_string_are_bound():
    def t(text, **values):
        """The t-string, which is no syntax for an older interpreter."""
        return eval(f"t{text!r}", values)

    async with flatwater.connect(":memory:") as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name)")
        name = "'; DROP TABLE t --"
        assert (await db.execute(t("INSERT INTO t (name) VALUES ({name})", name=name))).last_insert_rowid == 1
        ours = t("name = {name}", name=name)
        assert await db.query_value(t("SELECT id FROM t WHERE {ours} AND id < {1 + 1}", ours=ours)) == 1
        async with db.stream(t("SELECT name FROM t WHERE id = {id}", id=1)) as rows:
            assert [tuple(row) async for row in rows] == [(name,)]
        async with db.live(t("SELECT name FROM t WHERE id = {id}", id=1)) as results:
            assert list(await anext(aiter(results))) == [(name,)]
        with pytest.raises(flatwater.ProgrammingError, match="bound as it is"):
            await db.query(t("SELECT {name!r}", name=name))
        with pytest.raises(flatwater.ProgrammingError, match="two sets of values"):
            await db.query(t("SELECT {name}", name=name), (1,))
