"""Any values, by every way in and out, beside what the `sqlite3` module makes of them."""

from __future__ import annotations

import asyncio
import datetime
import math
import pickle
import sqlite3
import uuid
from collections.abc import Coroutine
from typing import Any

import pyarrow
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import flatwater
from flatwater import blocking

EDGES = st.sampled_from(
    [0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf]
    + ["", "\0", "a\0b", "\ufeff", "\uffff", "\U0010ffff", "1", "1.0", "NULL", b"", b"\0", b"\xff\xfe", "é", "e\u0301"]
)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(st.none(), INTEGERS, st.floats(allow_nan=False), TEXTS, st.binary(), EDGES)
ROWS = st.integers(1, 5).flatmap(lambda width: st.lists(st.tuples(*[VALUES] * width), min_size=1, max_size=5))
MANY = settings(deadline=None, max_examples=150)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def exactly(value: object) -> str:
    """Tells apart what `==` does not: 1 and 1.0, 0.0 and -0.0."""
    return f"{type(value).__name__} {value!r}"


def same(rows: Any, expected: Any) -> bool:
    return [list(map(exactly, row)) for row in rows] == [list(map(exactly, row)) for row in expected]


@given(ROWS)
@MANY
def test_values_come_back_by_every_way_in_and_out(rows):
    columns = [f"c{n}" for n in range(len(rows[0]))]
    insert = f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})"
    by_name = f"INSERT INTO t VALUES ({', '.join(f':{name}' for name in columns)})"
    named = [dict(zip(columns, row)) for row in rows]

    async def test() -> None:
        async with flatwater.connect(":memory:") as db:
            await db.execute(f"CREATE TABLE t ({', '.join(columns)})")
            prepared = await db.prepare(insert)
            for write in [
                lambda: db.executemany(insert, rows),
                lambda: db.executemany(insert, (list(row) for row in rows)),
                lambda: db.executemany(by_name, named),
                lambda: db.batch([(insert, row) for row in rows]),
                lambda: db.batch([(by_name, row) for row in named]),
                lambda: asyncio.gather(*(db.execute(insert, row) for row in rows)),
                lambda: asyncio.gather(*(prepared.execute(row) for row in rows)),
            ]:
                await db.execute("DELETE FROM t")
                await write()
                assert same(await db.query("SELECT * FROM t"), rows)
            assert same(await db.query("SELECT * FROM t", into=tuple), rows)
            assert same([row.values() for row in await db.query("SELECT * FROM t", into=dict)], rows)
            assert same([[value] for value in await db.query_values("SELECT c0 FROM t")], [row[:1] for row in rows])
            assert same([await db.query_one("SELECT * FROM t")], rows[:1])
            assert exactly(await db.query_value("SELECT c0 FROM t")) == exactly(rows[0][0])
            async with db.stream("SELECT * FROM t") as stream:
                assert same([row async for row in stream], rows)
            async with db.batches("SELECT * FROM t") as batches:
                assert same([row async for batch in batches for row in batch], rows)
            async with db.live("SELECT * FROM t") as results:
                async for result in results:
                    assert same(result, rows)
                    break

    run(test())


# Of one type each; a float equals each of the integers beside floats.
COLUMN = st.sampled_from([INTEGERS, st.one_of(st.floats(allow_nan=False), st.integers(-9, 9)), TEXTS, st.binary()])
COLUMNS = st.lists(
    COLUMN.flatmap(lambda values: st.lists(st.one_of(st.none(), values), min_size=20, max_size=20)),
    min_size=1,
    max_size=3,
)


@given(COLUMNS)
@MANY
def test_columns_of_one_type_come_back_as_columns(columns):
    names = [f"c{n}" for n in range(len(columns))]
    with blocking.connect(":memory:") as db:
        db.execute(f"CREATE TABLE t ({', '.join(names)})")
        db.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", list(zip(*columns)))
        made = db.query_columns("SELECT * FROM t ORDER BY rowid")
    assert made.to_dict() == dict(zip(names, columns))
    table = pyarrow.table(made)
    table.validate(full=True)
    assert table.to_pydict() == made.to_dict()


@given(ROWS)
@MANY
def test_the_sqlite3_module_stores_and_reads_the_same(tmp_path_factory, rows):
    file = tmp_path_factory.mktemp("rows") / "test.db"
    columns = ", ".join(f"c{n}" for n in range(len(rows[0])))
    insert = f"INSERT INTO {{}} VALUES ({', '.join('?' * len(rows[0]))})"
    plain = sqlite3.connect(file)
    plain.execute(f"CREATE TABLE theirs ({columns})")
    plain.executemany(insert.format("theirs"), rows)
    plain.commit()
    plain.close()
    with blocking.connect(file) as db:
        db.execute(f"CREATE TABLE ours ({columns})")
        db.executemany(insert.format("ours"), rows)
        read = {name: db.query(f"SELECT * FROM {name}", into=tuple) for name in ("ours", "theirs")}
    plain = sqlite3.connect(file)
    try:
        for name in read:
            assert same(plain.execute(f"SELECT * FROM {name}"), read[name])
        for column in columns.split(", "):
            forms = f"SELECT typeof({column}), hex({column}) FROM {{}} ORDER BY rowid"
            assert plain.execute(forms.format("ours")).fetchall() == plain.execute(forms.format("theirs")).fetchall()
    finally:
        plain.close()


@given(ROWS)
@MANY
def test_a_row_is_its_tuple_and_its_dict(rows):
    columns = [f"c{n}" for n in range(len(rows[0]))]
    with blocking.connect(":memory:") as db:
        db.execute(f"CREATE TABLE t ({', '.join(columns)})")
        db.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
        found = db.query("SELECT * FROM t")
    for row, values in zip(found, rows):
        assert row == values and values == row and not row != values and hash(row) == hash(values)
        assert row != (*values, None) and row != values[1:] and row != list(values)
        assert same(
            [dict(row).values(), row[:], [row[name] for name in columns], [row[n] for n in range(len(row))]],
            [values] * 4,
        )
        assert list(dict(row)) == columns == list(row.keys())
        assert same([row[::-1], [row[-1]]], [values[::-1], values[-1:]])
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            again = pickle.loads(pickle.dumps(row, protocol))
            assert type(again) is flatwater.Row and again == row and hash(again) == hash(row)
            assert same([again], [values]) and again.keys() == row.keys()
    for one, its in zip(found, rows):
        for other, others in zip(found, rows):
            assert (one == other) == (its == others)
    assert found == rows and found == tuple(rows) and found[:] == rows


REFUSED = st.one_of(
    st.just(math.nan),
    st.integers(min_value=2**63),
    st.integers(max_value=-(2**63) - 1),
    st.tuples(TEXTS, st.characters(categories=["Cs"]), TEXTS).map("".join),
    st.decimals(allow_nan=False),
    st.complex_numbers(),
    st.times(timezones=st.just(datetime.timezone.utc)),
    st.lists(st.integers()),
    st.sets(st.integers()),
)


@given(REFUSED, st.integers(0, 3))
@settings(deadline=None, max_examples=100)
def test_a_value_that_cannot_be_stored_is_refused_by_every_way_in(value, place):
    row = [1, 2, 3, 4]
    row[place] = value
    insert, by_name = "INSERT INTO t VALUES (?, ?, ?, ?)", "INSERT INTO t VALUES (:a, :b, :c, :d)"
    named = dict(zip("abcd", row))
    with blocking.connect(":memory:") as db:
        db.execute("CREATE TABLE t (a, b, c, d)")
        for write in [
            lambda: db.execute(insert, row),
            lambda: db.execute(insert, tuple(row)),
            lambda: db.execute(by_name, named),
            lambda: db.executemany(insert, [(1, 2, 3, 4), row]),
            lambda: db.executemany(by_name, [dict(zip("abcd", "1234")), named]),
            lambda: db.batch([(insert, (1, 2, 3, 4)), (insert, row)]),
            lambda: db.query_value("SELECT ? + ? + ? + ?", row),
        ]:
            with pytest.raises((flatwater.ProgrammingError, OverflowError, UnicodeEncodeError)) as caught:
                write()
            if isinstance(value, (float, complex)) or (isinstance(value, int) and value > 10**19):
                assert repr(value) not in str(caught.value)
            assert db.query_value("SELECT count(*) FROM t") == 0


FIRST = datetime.datetime(1, 1, 2)
LAST = datetime.datetime(9999, 12, 30)
ZONES = st.one_of(
    st.none(), st.timedeltas(datetime.timedelta(hours=-23), datetime.timedelta(hours=23)).map(datetime.timezone)
)


TIMES = st.datetimes(FIRST, LAST, timezones=ZONES)
# Times of one second with and without a fraction are next to each other.
WITH_THEIR_SECONDS = TIMES.flatmap(lambda time: st.sampled_from([time, time.replace(microsecond=0)]))


@given(st.lists(TIMES | WITH_THEIR_SECONDS, min_size=1, max_size=5))
@example([FIRST, LAST, datetime.datetime(2024, 3, 31, 2, 30, fold=1)])
@example([FIRST.replace(microsecond=1), FIRST])
@MANY
def test_times_come_back_and_are_in_order(times):
    def utc(time: datetime.datetime) -> datetime.datetime:
        return time if time.tzinfo is None else time.astimezone(datetime.timezone.utc).replace(tzinfo=None)

    with blocking.connect(":memory:") as db:
        db.execute("CREATE TABLE t (whole, day, time)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?)", [(time, time.date(), time.time()) for time in times])
        stored = db.query("SELECT whole, day, time FROM t")
        for row, time in zip(stored, times):
            assert datetime.datetime.fromisoformat(row[0]) == utc(time).replace(fold=0)
            assert datetime.date.fromisoformat(row[1]) == time.date()
            assert datetime.time.fromisoformat(row[2]) == time.time().replace(fold=0)
            # SQLite's own functions read the form too.
            assert db.query_value("SELECT strftime('%Y-%m-%d %H:%M:%S', ?)", (time,)) == row[0][:19]
            # A time of whole seconds is equal to what they write.
            assert db.query_value("SELECT datetime(?1) = ?1", (time,)) == (utc(time).microsecond == 0)
        in_order = db.query_values("SELECT whole FROM t ORDER BY whole")
        assert in_order == [time.isoformat(" ") for time in sorted(map(utc, times))]
    plain = sqlite3.connect(":memory:")
    try:
        # The forms that are the same there.
        for time in times:
            assert plain.execute("SELECT ?", (time.date().isoformat(),)).fetchone() == (str(time.date()),)
    finally:
        plain.close()


@given(st.uuids())
@MANY
def test_a_uuid_comes_back(value):
    with blocking.connect(":memory:") as db:
        assert uuid.UUID(db.query_value("SELECT ?", (value,))) == value


@pytest.mark.parametrize("size", [0, 1, 2**16, 2**20 + 1, 2**24 + 3])
def test_large_texts_and_blobs_come_back(file, size):
    blob, text = bytes(range(256)) * (size // 256) + b"\0" * (size % 256), "ä" * size
    with blocking.connect(file) as db:
        db.execute("CREATE TABLE t (a, b)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [(blob, text), (bytearray(blob), text), (memoryview(blob), text)])
        rows = db.query("SELECT a, b FROM t", into=tuple)
        assert [row == (blob, text) for row in rows] == [True] * 3
        assert db.query_one("SELECT length(a), length(b) FROM t") == (size, size)
