"""Datetimes in the form of the `sqlite3` module, for files that it has written."""

from __future__ import annotations

import datetime
import re
import sqlite3
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flatwater
from flatwater import blocking

ZONES = st.one_of(
    st.none(),
    st.just(datetime.timezone.utc),
    st.builds(lambda seconds: datetime.timezone(datetime.timedelta(seconds=seconds)), st.integers(-80_000, 80_000)),
)
VALUES = st.one_of(
    st.datetimes(timezones=ZONES),
    st.datetimes(timezones=ZONES).map(lambda value: value.replace(microsecond=0)),
    st.dates(),
)


def of_sqlite3(value: object) -> object:
    """What the `sqlite3` module stores."""
    plain = sqlite3.connect(":memory:")
    try:
        with warnings.catch_warnings():
            # From Python 3.12 on its adapters are deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            return plain.execute("SELECT ?", (value,)).fetchone()[0]
    finally:
        plain.close()


@given(st.lists(VALUES, min_size=1, max_size=20))
@settings(deadline=None, max_examples=100)
def test_datetimes_have_the_form_of_sqlite3_in_both_directions(values):
    with blocking.connect(":memory:", datetimes="sqlite3") as db:
        for value in values:
            stored = db.query_value("SELECT ?", (value,))
            assert stored == of_sqlite3(value)
            assert type(value).fromisoformat(stored) == value


async def test_every_way_to_bind_keeps_the_form(file):
    value = datetime.datetime(2024, 2, 29, 23, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    text = "2024-02-29 23:05:00+02:00"
    sql = "SELECT a FROM t WHERE a = ?"
    async with flatwater.connect(file, datetimes="sqlite3") as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        await db.execute("INSERT INTO t (a) VALUES (?)", (value,))
        await db.executemany("INSERT INTO t (a) VALUES (:a)", [{"a": value}])
        await db.batch([("INSERT INTO t (a) VALUES (?)", [value]), flatwater.Sql("SELECT ").bind(value)])
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO t (a) VALUES (?)", (value,))
            async with tx.transaction() as nested:
                await nested.execute("INSERT INTO t (a) VALUES (?)", (value,))
        statement = await db.prepare(sql)
        assert await db.query_values(sql, (value,)) == await statement.query_values((value,)) == [text] * 5
        async with db.snapshot() as snapshot, db.stream(sql, (value,)) as rows:
            assert len(await snapshot.query(sql, (value,))) == len([row async for row in rows]) == 5
        async with db.live(sql, (value,)) as results, db.live_group([(sql, (value,))]) as group:
            assert len(await anext(results)) == len((await anext(group))[0]) == 5
        async with db.live("SELECT id, a FROM t WHERE a = ?", (value,)).changes() as changes:
            full = (await anext(changes)).full
            assert full is not None and len(full) == 5
        # Another handle of the same file has its own form.
        async with flatwater.connect(file) as other:
            assert await other.query(sql, (value,)) == []
            assert await other.query_value("SELECT ?", (value,)) == "2024-02-29 21:05:00"
    # A time of day, which the module refuses, has the form of Flatwater.
    with blocking.connect(file, datetimes="sqlite3") as db:
        assert db.query_value("SELECT ?", (datetime.time(5),)) == "05:00:00"


PAGE = (Path(__file__).parents[3] / "docs/guide/from-sqlite3.md").read_text()
[CONVERT] = re.findall(r'CONVERT = """(.*?)"""', PAGE, re.DOTALL)
[ADAPTER] = re.findall(r"`flatwater.register_adapter\(datetime.datetime, (lambda .*?)\)` does", PAGE)
WHOLE_MINUTES = st.builds(
    lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes)), st.integers(-14 * 60, 14 * 60)
)
# What SQLite's functions and the zones of the world have.
REAL = st.datetimes(datetime.datetime(2, 1, 1), datetime.datetime(9998, 1, 1), timezones=st.none() | WHOLE_MINUTES)


@given(st.lists(REAL | REAL.map(lambda value: value.replace(microsecond=0)), min_size=1, max_size=20))
@settings(deadline=None, max_examples=100)
def test_the_update_of_the_guide_converts_what_sqlite3_has_stored(values):
    with blocking.connect(":memory:") as db:
        db.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, at TEXT)")
        db.executemany("INSERT INTO events (at) VALUES (?)", [(of_sqlite3(value),) for value in values])
        # It is done once or again, and leaves other texts as they are.
        others = ["", "2024-02-29", "x" * 40, None, "2024-02-29 23:05:00+01:00:01"]
        db.executemany("INSERT INTO events (at) VALUES (?)", zip(others))
        for _ in range(2):
            db.execute(CONVERT)
            found = db.query_values("SELECT at FROM events ORDER BY id")
            assert found == [db.query_value("SELECT ?", (value,)) for value in values] + others


def test_the_adapter_of_the_guide_keeps_the_form():
    value = datetime.datetime(2024, 2, 29, 23, 5, tzinfo=datetime.timezone.utc)
    flatwater.register_adapter(datetime.datetime, eval(ADAPTER))
    try:
        with blocking.connect(":memory:") as db:
            assert db.query_value("SELECT ?", (value,)) == of_sqlite3(value) == "2024-02-29 23:05:00+00:00"
    finally:
        flatwater._given.values._adapters.pop(datetime.datetime)


@pytest.mark.parametrize("value", ["iso", 1])
def test_another_form_is_refused(file, value):
    with pytest.raises(TypeError, match='"utc" or "sqlite3"'):
        flatwater.connect(file, datetimes=value)
    with pytest.raises(TypeError, match='"utc" or "sqlite3"'):
        blocking.connect(file, datetimes=value)
    assert not file.exists()
    with blocking.connect(file, datetimes="utc") as db:
        at = datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc)
        assert db.query_value("SELECT ?", (at,)) == "2024-02-29 00:00:00"


@pytest.mark.parametrize("datetimes", ["utc", "sqlite3"])
def test_pages_by_a_time_that_sqlite_wrote_have_each_row_once(datetimes):
    with blocking.connect(":memory:", datetimes=datetimes) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, at DEFAULT CURRENT_TIMESTAMP)")
        written = [datetime.datetime(2024, 2, 29, 10, 0, 0, microsecond) for microsecond in (1, 10, 999_999)]
        db.executemany("INSERT INTO t (at) VALUES (?)", [(at,) for at in written])
        for _ in range(4):
            db.execute("INSERT INTO t DEFAULT VALUES")
        last, seen = (datetime.datetime.min, 0), []
        while row := db.query_optional("SELECT at, id FROM t WHERE (at, id) > (?, ?) ORDER BY at, id LIMIT 1", last):
            last = (datetime.datetime.fromisoformat(row["at"]), row["id"])
            assert row["id"] in db.query_values("SELECT id FROM t WHERE at = ?", (last[0],))
            seen.append(row["id"])
        assert seen == [1, 2, 3, 4, 5, 6, 7]
