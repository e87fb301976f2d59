"""Datetimes in the form of the `sqlite3` module, for files that it has written."""

from __future__ import annotations

import datetime
import sqlite3
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flatwater
from flatwater import blocking

ZONES = st.one_of(
    st.none(),
    st.just(datetime.timezone.utc),
    st.builds(
        datetime.timezone,
        st.timedeltas(datetime.timedelta(hours=-23), datetime.timedelta(hours=23)),
    ),
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
            assert await other.query_value("SELECT ?", (value,)) == "2024-02-29 21:05:00.000000"
    # A time of day, which the module refuses, has the form of Flatwater.
    with blocking.connect(file, datetimes="sqlite3") as db:
        assert db.query_value("SELECT ?", (datetime.time(5),)) == "05:00:00.000000"


@pytest.mark.parametrize("value", ["iso", 1])
def test_another_form_is_refused(file, value):
    with pytest.raises(TypeError, match='"utc" or "sqlite3"'):
        flatwater.connect(file, datetimes=value)
    with pytest.raises(TypeError, match='"utc" or "sqlite3"'):
        blocking.connect(file, datetimes=value)
    assert not file.exists()
    with blocking.connect(file, datetimes="utc") as db:
        assert db.query_value("SELECT ?", (datetime.datetime(2024, 2, 29),)) == "2024-02-29 00:00:00.000000"
