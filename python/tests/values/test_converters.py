"""Converters of columns, beside those of the `sqlite3` module."""

from __future__ import annotations

import copy
import datetime
import decimal
import gc
import json
import pickle
import re
import sqlite3
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flatwater
from flatwater import blocking


def tagged(value: bytes) -> tuple[str, bytes]:
    return "converted", value


TYPES = ["tagged", "integer", "x-y", "T2"]
DECLARED = st.sampled_from(
    ["tagged", "TAGGED", "Tagged(10, 2)", "tagged two", "untagged", "integer", "t2(3)", "", '"x-y"', "blob", "T2 (4)"]
)
NAMES = st.sampled_from(
    ["a", "a [tagged]", "a[tagged]", "[tagged]", "a [b] [tagged]", "a [b [tagged]", "a ]tagged[", "a [T2"]
)
VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    # Of more digits, versions of SQLite write 15 or as many as it takes, and here it is always the latter.
    st.integers(-(10**6), 10**6).map(lambda number: number / 64),
    # The same holds of a text that a column with a number's affinity stores as one.
    st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5).filter(
        lambda text: not re.search(r"\d[eE.]|\.\d", text)
    ),
    st.binary(max_size=5),
)


@pytest.fixture
def registered() -> Iterator[None]:
    before = dict(sqlite3.converters)
    for name in TYPES:
        sqlite3.register_converter(name, tagged)
    yield
    sqlite3.converters.clear()
    sqlite3.converters.update(before)


@given(st.lists(st.tuples(DECLARED, NAMES, VALUES), min_size=1, max_size=4))
@settings(deadline=None, max_examples=200)
@pytest.mark.usefixtures("registered")
def test_columns_are_converted_as_the_sqlite3_module_converts_them(columns):
    table = ", ".join(f"c{number} {declared}" for number, (declared, _, _) in enumerate(columns))
    create = f"CREATE TABLE t ({table})"
    insert = f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})"
    quoted = [name.replace('"', '""') for _, name, _ in columns]
    select = ", ".join(f'c{number} AS "{name}"' for number, name in enumerate(quoted))
    select = f"SELECT {select}, typeof(c0) AS expression FROM t"
    values = [value for _, _, value in columns]

    plain = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES)
    try:
        plain.execute(create)
        plain.execute(insert, values)
        cursor = plain.execute(select)
        names, expected = tuple(column[0] for column in cursor.description), cursor.fetchall()
    finally:
        plain.close()

    with blocking.connect(":memory:", converters={name.title(): tagged for name in TYPES}) as db:
        db.execute(create)
        db.execute(insert, values)
        rows = db.query(select)
        assert rows.columns == names
        assert [tuple(row) for row in rows] == expected
        assert db.query(select, into=tuple) == expected


@pytest.mark.parametrize("flags", [0, sqlite3.PARSE_DECLTYPES, sqlite3.PARSE_COLNAMES])
@pytest.mark.usefixtures("registered")
def test_either_place_of_a_type_can_be_left_out(flags):
    select = 'SELECT 1 AS "a [tagged]", b FROM (SELECT b FROM t)'
    plain = sqlite3.connect(":memory:", detect_types=flags)
    plain.execute("CREATE TABLE t (b TAGGED)")
    plain.execute("INSERT INTO t VALUES ('x')")
    cursor = plain.execute(select)
    names, expected = tuple(column[0] for column in cursor.description), cursor.fetchall()
    plain.close()
    from flatwater._given.forms import Converters

    places = bool(flags & sqlite3.PARSE_DECLTYPES), bool(flags & sqlite3.PARSE_COLNAMES)
    with blocking.connect(":memory:", converters=Converters({"TAGGED": tagged}, *places)) as db:
        db.execute("CREATE TABLE t (b TAGGED)")
        db.execute("INSERT INTO t VALUES ('x')")
        rows = db.query(select)
        assert (rows.columns, list(rows)) == (names, expected)


CONVERTERS = {"DECIMAL": lambda value: decimal.Decimal(value.decode()), "json": json.loads}
PRICE = decimal.Decimal("1.50")


async def test_every_read_has_the_converters_and_every_place_to_read(file):
    async with flatwater.connect(file, converters=CONVERTERS) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, price DECIMAL (10, 2), doc JSON)")
        insert = "INSERT INTO t (price, doc) VALUES (CAST('1.50' AS BLOB), '[1, 2]') RETURNING price, doc"
        (result,) = await db.batch([insert])
        assert tuple(result.rows[0]) == (PRICE, [1, 2])
        select = "SELECT price, doc FROM t"
        expected = (PRICE, [1, 2])
        row = await db.query_one(select)
        assert (row["price"], row["DOC"], tuple(row), row == expected) == (*expected, expected, True)
        assert repr(row) == "<Row price=Decimal('1.50'), doc=[1, 2]>"
        assert row[0:1] == (PRICE,)
        assert await db.query_value(select) == PRICE
        assert await db.query_values(select) == [PRICE]
        assert await db.query_optional(select, into=dict) == {"price": PRICE, "doc": [1, 2]}
        assert await db.query(select, into=dict) == [{"price": PRICE, "doc": [1, 2]}]
        async with db.stream(select) as stream:
            assert [tuple(row) async for row in stream] == [expected]
        async with db.batches(select) as batches:
            assert [list(rows) async for rows in batches] == [[expected]]
        prepared = await db.prepare(select)
        assert tuple(await prepared.query_one()) == expected
        async with db.transaction() as tx:
            assert tuple(await tx.query_one(select)) == expected
            async with tx.transaction() as nested:
                assert await nested.query_value(select) == PRICE
        async with db.snapshot() as snapshot:
            assert await snapshot.query_value(select) == PRICE
        async with db.live(select) as live:
            assert tuple((await anext(live))[0]) == expected
        async with db.live("SELECT id, price, doc FROM t").changes() as changes:
            assert tuple((await anext(changes)).full[0]) == (1, *expected)
        # What has a form of its own is not converted.
        assert (await db.query_columns("SELECT doc FROM t"))["doc"] == ["[1, 2]"]
        assert await db.query_json("SELECT doc FROM t") == '[{"doc":"[1, 2]"}]'
        assert [problem async for problem in db.integrity_check()] == []
    async with flatwater.connect(file) as db:
        assert await db.query_value("SELECT doc FROM t") == "[1, 2]", "they are of one `connect`"


async def test_a_name_without_its_type_is_the_name_of_the_column(file):
    async with flatwater.connect(file, converters={"json": json.loads}) as db:
        row = await db.query_one("""SELECT '[1]' AS "doc [JSON]", 2 AS "n [none]", 3 AS plain""")
        assert row.keys() == ("doc", "n", "plain")
        assert (row["doc"], row["DOC"], row["n"], dict(row)) == ([1], [1], 2, {"doc": [1], "n": 2, "plain": 3})
        with pytest.raises(KeyError, match="doc"):
            row["dok"]
        with pytest.raises(flatwater.ProgrammingError, match="two columns are named"):
            await db.query("""SELECT 1 AS "a [x]", 2 AS "a [y]" """, into=dict)


async def test_an_exception_of_a_converter_is_raised_where_the_value_is_touched(file):
    def fail(value: bytes) -> object:
        raise LookupError(value.decode())

    async with flatwater.connect(file, converters={"bad": fail}) as db:
        select = 'SELECT 1 AS good, 2 AS "a [bad]"'
        row = await db.query_one(select)
        assert row["good"] == 1
        assert repr(row) == "<Row good=1, a=<?>>"
        with pytest.raises(LookupError, match="2"):
            row["a"]
        with pytest.raises(LookupError, match="2"):
            await db.query(select, into=tuple)
        assert await db.query_value("SELECT 3") == 3


def test_a_dump_is_that_of_a_database_without_converters(file):
    # The statistics that are written at the close would be in the second dump only.
    with blocking.connect(file, optimize_every=False) as db:
        db.executescript("""CREATE TABLE "a [text]" ("b [text]" TEXT); INSERT INTO "a [text]" VALUES ('x');
            CREATE INDEX i ON "a [text]" ("b [text]")""")
        expected = list(db.iterdump())
    with blocking.connect(file, converters={"text": tagged, "b": tagged}) as db:
        assert list(db.iterdump()) == expected
        assert list(db.integrity_check()) == []


def test_rows_are_pickled_with_the_names_of_their_converters(file):
    with blocking.connect(file, converters={"tagged": tagged}) as db:
        rows = db.query("""SELECT 'x' AS "a [tagged]", 1 AS b""")
        assert copy.deepcopy(rows) is rows
        for again in (pickle.loads(pickle.dumps(rows)), [pickle.loads(pickle.dumps(rows[0]))]):
            assert list(again) == [(("converted", b"x"), 1)]
            assert again[0].keys() == ("a", "b")


def test_a_cycle_through_a_converted_value_is_collected():
    class Node:
        row: object = None

    with blocking.connect(":memory:", converters={"node": lambda _: Node()}) as db:
        row = db.query("""SELECT 1 AS "a [node]" """, into=tuple)[0]
        row[0].row = row
        seen = weakref.ref(row[0])
        del row
        gc.collect()
        assert seen() is None


@pytest.mark.parametrize("given", [1, {"a": 1}, {1: tagged}, [("a", tagged)]])
def test_what_is_no_converter_is_refused(file: Path, given: object):
    for connect in (flatwater.connect, blocking.connect):
        with pytest.raises(TypeError, match='the option "converters"'):
            connect(file, converters=given)


def test_the_default_converters_of_sqlite3_can_be_given_as_they_are(file):
    with blocking.connect(file, converters=sqlite3.converters, datetimes="sqlite3") as db:
        db.execute("CREATE TABLE t (day DATE)")
        day = datetime.date(2024, 2, 29)
        db.execute("INSERT INTO t VALUES (?)", (day,))
        assert db.query_value("SELECT day FROM t") == day
