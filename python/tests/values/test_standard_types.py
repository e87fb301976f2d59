"""Standard types: columns by their declared types, and as a program says."""

from __future__ import annotations

import datetime
import decimal
import json
import pickle
import sqlite3
import uuid
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flatwater
from flatwater import blocking

UTC = datetime.timezone.utc
AT = datetime.datetime(2024, 2, 29, 23, 5, 6, 7, tzinfo=UTC)
ID = uuid.UUID("67e55044-10b1-426f-9247-bb680e5fe0c8")
CREATE = """CREATE TABLE t (id INTEGER PRIMARY KEY, b BOOLEAN, d DATE, t TIME, at DATETIME, doc JSON, key UUID,
    price DECIMAL(10, 2), other)"""
INSERT = "INSERT INTO t (b, d, t, at, doc, key, price) VALUES (?, ?, ?, ?, ?, ?, ?)"
ROW: tuple[Any, ...] = (
    True,
    datetime.date(2024, 2, 29),
    datetime.time(5, 6),
    AT,
    {"a": [1, 2.5, None, "\u00e4"]},
    ID,
    Decimal("1.50"),
)
STORED = (1, "2024-02-29", "05:06:00", "2024-02-29 23:05:06.000007", '{"a":[1,2.5,null,"\u00e4"]}', str(ID), 1.5)
SELECT = "SELECT b, d, t, at, doc, key, price FROM t"


class Reading(NamedTuple):
    b: bool
    d: datetime.date
    t: datetime.time
    at: datetime.datetime
    doc: Any
    key: uuid.UUID
    price: Decimal


async def test_every_way_to_bind_and_every_way_to_read(file):
    async with flatwater.connect(file, types="standard") as db:
        await db.execute(CREATE)
        await db.execute(INSERT, ROW)
        await db.executemany(INSERT, [ROW])
        (result,) = await db.batch([(INSERT + " RETURNING b, d, t, at, doc, key, price", ROW)])
        assert result.rows is not None and tuple(result.rows[0]) == ROW
        assert (await db.run(SELECT)).rows == [ROW] * 3
        rows = await db.query(SELECT)
        assert list(rows) == [ROW] * 3 and [type(value) for value in rows[0]] == [type(value) for value in ROW]
        assert rows[0]["at"].tzinfo is UTC and rows[0][3] == AT and rows[0][1:3] == ROW[1:3]
        assert await db.query(SELECT, into=tuple) == [ROW] * 3
        assert await db.query(SELECT, into=Reading) == [Reading(*ROW)] * 3
        assert (await db.query_one(SELECT, into=dict))["doc"] == ROW[4]
        assert await db.query_optional(SELECT) == ROW
        assert await db.query_value("SELECT at FROM t WHERE at = ? AND key = ? AND price = ?", (AT, ID, ROW[6])) == AT
        assert await db.query_optional_value("SELECT key FROM t") == ID
        assert await db.query_values("SELECT b FROM t") == [True] * 3
        statement = await db.prepare(SELECT)
        assert await statement.query() == [ROW] * 3
        async with db.stream(SELECT) as stream:
            assert [tuple(row) async for row in stream] == [ROW] * 3
        async with db.transaction() as tx, db.live(SELECT) as live:
            assert await tx.query(SELECT) == await anext(live) == [ROW] * 3
        assert pickle.loads(pickle.dumps(rows)) == rows and pickle.loads(pickle.dumps(rows[0]))["key"] == ID
        assert "datetime.datetime(2024" in repr(rows[0])
        await db.execute("INSERT INTO t DEFAULT VALUES")
        assert await db.query_one("SELECT b, d, t, at, doc, key, price FROM t WHERE b IS NULL") == (None,) * 7
        # What has no type of its own is as it was stored.
        assert await db.query_one("SELECT max(at), sum(price), +doc, id FROM t") == (STORED[3], 4.5, STORED[4], 1)
        assert json.loads(await db.query_json("SELECT at FROM t WHERE id = 1")) == [{"at": STORED[3]}]
        assert (await db.query_columns("SELECT key FROM t WHERE id = 1"))["key"] == [str(ID)]
    async with flatwater.connect(file) as db:
        assert await db.query_one(SELECT) == STORED
        assert await db.query_one(SELECT, types="standard") == ROW
        assert await db.query_value("SELECT price FROM t WHERE price = ?", (ROW[6],), types="standard") == ROW[6]
        for value in (ROW[4], ROW[6]):
            with pytest.raises(flatwater.ProgrammingError, match="cannot be bound|no decimals"):
                await db.query("SELECT ?", (value,))
        async with db.batches(SELECT, types="standard") as batches:
            assert await batches.next_batch() == [ROW, ROW, ROW, (None,) * 7]


def test_a_name_of_a_column_or_of_a_table_and_its_column_comes_first():
    with blocking.connect(":memory:", types={"t.other": "unix_seconds", "latest": "datetime"}) as db:
        db.execute(CREATE)
        db.execute("INSERT INTO t (at, other, b) VALUES (?, ?, 1)", (AT, 1_709_247_906))
        whole = AT.replace(microsecond=0)
        assert db.query_one("SELECT other AS renamed, max(at) AS LATEST, b FROM t") == (whole, AT, True)
        assert db.query_one("SELECT renamed FROM (SELECT other AS renamed FROM t) AS u") == (whole,)
        sql = "SELECT at, max(at) AS latest, other, b FROM t"
        types: flatwater.Types = {"at": "stored", "T.B": "stored", "latest": "stored"}
        assert db.query_one(sql, types=types) == (STORED[3], STORED[3], whole, 1)
        assert db.query_one(sql, types="stored") == (STORED[3], STORED[3], 1_709_247_906, 1)
        with pytest.raises(flatwater.ProgrammingError, match='`types` has "latests".*at, latest') as raised:
            db.query(sql, types={"latests": "datetime"})
        assert raised.value.code == "no_such_column"
        sql = "INSERT INTO t (b) VALUES (0) RETURNING b"
        with pytest.raises(flatwater.ProgrammingError, match="the call was executed"):
            db.query(sql, types={"c": "boolean"})
        assert db.query_value("SELECT count(*) FROM t") == 2


TIMES = [
    ("2024-02-29 23:05:06", "datetime", datetime.datetime(2024, 2, 29, 23, 5, 6, tzinfo=UTC)),
    ("2024-02-29T23:05", "datetime", datetime.datetime(2024, 2, 29, 23, 5, tzinfo=UTC)),
    ("2024-02-29 23:05:06.123456789+02:00", "datetime", datetime.datetime(2024, 2, 29, 21, 5, 6, 123456, tzinfo=UTC)),
    ("2024-02-29", "datetime", datetime.datetime(2024, 2, 29, tzinfo=UTC)),
    (1_709_247_906, "unix_seconds", datetime.datetime(2024, 2, 29, 23, 5, 6, tzinfo=UTC)),
    (1_709_247_906.5, "unix_seconds", datetime.datetime(2024, 2, 29, 23, 5, 6, 500_000, tzinfo=UTC)),
    (1_709_247_906_007, "unix_milliseconds", datetime.datetime(2024, 2, 29, 23, 5, 6, 7000, tzinfo=UTC)),
    (2460370.4618750, "julian_day", datetime.datetime(2024, 2, 29, 23, 5, 6, tzinfo=UTC)),
]


@pytest.mark.parametrize(("stored", "word", "value"), TIMES)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_in_the_forms_of_sqlite_are_in_utc_in_any_zone_of_the_process(stored, word, value, zone, monkeypatch):
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        with blocking.connect(":memory:") as db:
            read = db.query_value("SELECT ? AS at", (stored,), types={"at": word})
            assert read == value and read.tzinfo is UTC
    finally:
        monkeypatch.undo()
        time.tzset()


WRONG = [
    ("boolean", 2, "neither 0 nor 1"),
    ("boolean", "true", "neither 0 nor 1"),
    ("date", "2024-02-30", "YYYY-MM-DD"),
    ("date", "0000-01-01", "year 0"),
    ("date", "2024-02-29 00:00:00", "YYYY-MM-DD"),
    ("time", "25:00", "HH:MM:SS"),
    ("datetime", 1_709_247_906, "does not say what it counts.*unix_seconds"),
    ("datetime", 2460370.46, "does not say what it counts"),
    ("datetime", "hunter2", "YYYY-MM-DD"),
    ("datetime", "", "YYYY-MM-DD"),
    ("datetime", b"2024-02-29", "YYYY-MM-DD"),
    ("unix_seconds", "1709247906", "not a number"),
    ("unix_seconds", 2**62, "outside of the years"),
    ("json", "{hunter2", "not JSON"),
    ("json", "NaN", "not JSON"),
    ("json", "[" * 100_000, "nested|not JSON"),
    ("json", b"{}", "json\\(column\\)"),
    ("uuid", "hunter2", "not a UUID"),
    ("uuid", b"short", "not a UUID"),
    ("decimal", "hunter2", "not a decimal"),
    ("decimal", "NaN", "not a decimal"),
    ("decimal", "1_0", "not a decimal"),
]


@pytest.mark.parametrize(("word", "stored", "why"), WRONG)
def test_what_is_no_value_of_the_type_is_an_error_that_names_column_and_row(word, stored, why):
    sql = "SELECT value AS v FROM (SELECT NULL AS value UNION ALL SELECT ?)"
    with blocking.connect(":memory:") as db:
        errors = []
        types: Any = {"v": word}
        rows = db.query(sql, (stored,), types=types)
        assert rows[0][0] is None and "<?>" in repr(rows[1])
        reads: list[Any] = [
            lambda: rows[1][0],
            lambda: db.query_values(sql, (stored,), types=types),
            lambda: db.query(sql, (stored,), types=types, into=dict),
        ]
        for read in reads:
            with pytest.raises(flatwater.DataError, match=why) as raised:
                read()
            errors.append(raised.value)
        for error in errors:
            assert (error.kind, error.code, error.sql) == ("decode", "unreadable_value", sql)
            assert "column 0 (v)" in str(error) and word in str(error) and "(row 1)" in str(error)
            assert "hunter2" not in repr(error) and error.__cause__ is None and error.__context__ is None


def test_the_row_of_an_error_counts_from_the_first_row_of_the_result():
    sql = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT "
    sql += "CASE i WHEN 19000 THEN 2 ELSE 1 END AS v, 'a longer text' FROM n"
    with blocking.connect(":memory:") as db:
        with pytest.raises(flatwater.DataError, match=r"\(row 19000\)"):
            db.query(sql, types={"v": "boolean"}, into=tuple)
        with pytest.raises(flatwater.DataError, match=r"\(row 19000\)"), db.stream(sql, types={"v": "boolean"}) as rows:
            for row in rows:
                assert row["v"] is True


def test_an_error_of_a_write_says_that_it_was_executed():
    with blocking.connect(":memory:", types="standard") as db:
        db.execute(CREATE)
        with pytest.raises(flatwater.DataError, match="the call was executed"):
            db.query("INSERT INTO t (b) VALUES (7) RETURNING b", into=tuple)
        assert db.query_value("SELECT count(*) FROM t") == 1


@pytest.mark.parametrize("types", ["standrd", 1, ["at"], {"at": 1}, {1: "date"}, {"at": "datetim"}])
def test_wrong_types_are_refused_before_anything_is_opened(types, file):
    with pytest.raises(TypeError, match="types|datetime"):
        blocking.connect(file, types=types)
    with blocking.connect(":memory:") as db, pytest.raises(TypeError, match="types|datetime"):
        db.query("SELECT 1 AS at", types=types)
    assert not file.exists()


def test_a_converter_of_the_program_comes_first():
    converters = {"DECIMAL": float, "json": lambda text: "converted"}
    with blocking.connect(":memory:", types="standard", converters=converters) as db:
        db.execute(CREATE)
        db.execute(INSERT, ROW)
        assert db.query_one(SELECT) == (*ROW[:4], "converted", ID, 1.5)
        rows = db.query('SELECT price, at, b AS "c [json]", b FROM t')
        assert rows.columns == ("price", "at", "c", "b") and rows[0]["c"] == "converted" and rows[0]["b"] is True
        assert pickle.loads(pickle.dumps(db.query("SELECT at, price FROM t", types="stored")))[0][0] == STORED[3]


DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="ab\u00e4"), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(DOCUMENTS)
@settings(deadline=None, max_examples=200)
def test_every_document_comes_back(document):
    with blocking.connect(":memory:", types="standard") as db:
        db.execute("CREATE TABLE t (doc JSON, text JSON TEXT)")
        bound = document if isinstance(document, (dict, list)) else flatwater.Json(document)
        db.execute("INSERT INTO t VALUES (?, ?)", (bound, flatwater.Json(document)))
        read = db.query_one("SELECT doc, text FROM t")
        # A number becomes SQLite's number in a column of numbers; an integer beyond 64 bits is a float then.
        assert read[1] == document
        assert read[0] == document or (isinstance(document, int) and read[0] == float(document))


@given(st.decimals(allow_nan=False, allow_infinity=False))
@settings(deadline=None, max_examples=500)
def test_a_decimal_comes_back_or_is_refused(value):
    with blocking.connect(":memory:", types="standard") as db:
        db.execute("CREATE TABLE t (number DECIMAL(10, 2), text DECIMAL TEXT)")
        try:
            db.execute("INSERT INTO t VALUES (?, ?)", (value, value))
        except flatwater.ProgrammingError as error:
            assert "keeps 15 digits" in str(error) and "DECIMAL TEXT" in (error.hint or "")
            assert len(value.as_tuple().digits) > 15 or abs(value.adjusted()) >= 300
            return
        number, text = db.query_one("SELECT number, text FROM t")
        assert number == text == value and type(number) is type(text) is Decimal
        if value and value.as_tuple().exponent < 0:
            assert text.as_tuple() == value.as_tuple()


def test_what_is_no_json_and_no_number_is_refused_before_anything_is_written():
    class Cycle(list[Any]):
        pass

    cycle = Cycle()
    cycle.append(cycle)
    with blocking.connect(":memory:", types="standard") as db:
        db.execute("CREATE TABLE t (a)")
        for value, why in [
            ({"a": float("nan")}, "is not JSON"),
            ({"a": object()}, "is not JSON"),
            ({(1, 2): 1}, "is not JSON"),
            (cycle, "is not JSON"),
            (decimal.Decimal("NaN"), "NaN and infinity"),
            ((1, 2), "cannot be bound"),
            ({1}, "cannot be bound"),
        ]:
            with pytest.raises(flatwater.ProgrammingError, match=why):
                db.executemany("INSERT INTO t VALUES (?)", [(1,), (value,)])
        assert db.query_value("SELECT count(*) FROM t") == 0
        # The object that says so works without standard types.
        with blocking.connect(":memory:") as plain:
            assert plain.query_value("SELECT ?", (flatwater.Json([1, "a"]),)) == '[1,"a"]'


def test_sqlite_finds_what_was_bound():
    with blocking.connect(":memory:", types="standard") as db:
        db.execute("CREATE TABLE t (at DATETIME DEFAULT CURRENT_TIMESTAMP, price DECIMAL(10, 2))")
        db.execute("INSERT INTO t (price) VALUES (?)", (Decimal("10.10"),))
        at = db.query_value("SELECT at FROM t")
        assert abs(datetime.datetime.now(UTC) - at) < datetime.timedelta(days=1)
        assert db.query_value("SELECT count(*) FROM t WHERE at = ? AND price = ?", (at, Decimal("10.1"))) == 1


def test_standard_types_and_datetimes_of_sqlite3_go_together(file):
    at = datetime.datetime(2024, 2, 29, 23, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    with blocking.connect(file, types="standard", datetimes="sqlite3") as db:
        db.execute("CREATE TABLE t (at TIMESTAMP, price DECIMAL)")
        db.execute("INSERT INTO t VALUES (?, ?)", (at, Decimal("1.5")))
        assert db.query_one("SELECT at, price FROM t") == (at, Decimal("1.5"))
    plain = sqlite3.connect(file)
    assert plain.execute("SELECT at FROM t").fetchone() == ("2024-02-29 23:05:00+02:00",)
    plain.close()


async def test_a_dump_and_a_check_do_not_look_at_types(file):
    async with flatwater.connect(file, types={"name": "json", "sql": "json"}) as db:
        await db.execute(CREATE)
        await db.execute(INSERT, ROW)
        assert any(line.startswith("INSERT") for line in [line async for line in db.iterdump()])
        assert [problem async for problem in db.integrity_check()] == []
