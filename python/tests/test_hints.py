"""Errors: how large they are, what they keep to themselves, and what they say to do."""

from __future__ import annotations

import gc
import weakref

import pytest

import flatwater


async def test_a_mebibyte_that_sqlite_quotes_is_hidden_and_the_message_is_short():
    async with flatwater.connect(":memory:") as db:
        await db.executescript("""
            CREATE VIRTUAL TABLE d USING fts5(body);
            CREATE TABLE t (a);
            CREATE TRIGGER r BEFORE INSERT ON t BEGIN SELECT RAISE(ABORT, 'bad ' || new.a); END;
        """)
        for kib in (1, 4, 16, 1024):
            search, name = "a" * kib * 1024 + ":x", "b" * kib * 1024
            with pytest.raises(flatwater.OperationalError) as searched:
                await db.query("SELECT * FROM d WHERE d MATCH ?", (search,))
            with pytest.raises(flatwater.IntegrityError) as inserted:
                await db.execute("INSERT INTO t VALUES (?)", (name,))
            with pytest.raises(flatwater.IntegrityError) as many:
                await db.executemany("INSERT INTO t VALUES (?)", [(name,)] * 2)
            texts = [str(raised.value) for raised in (searched, inserted, many)]
            assert all("(a bound value)" in text and len(text) < 700 for text in texts), texts
            assert not any("aaaa" in text or "bbbb" in text for text in texts)


async def test_the_highest_rowid_is_no_full_disk():
    async with flatwater.connect(":memory:") as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a)")
        await db.execute("INSERT INTO t VALUES (9223372036854775807, 1)")
        with pytest.raises(flatwater.OperationalError, match="has used the highest rowid") as raised:
            await db.execute("INSERT INTO t (a) VALUES (2)")
        assert (raised.value.kind, raised.value.sqlite_errorname) == ("sql", "SQLITE_FULL")
        assert "disk" not in str(raised.value)


@pytest.mark.parametrize("sql", ["SELECT %s", "SELECT 1 WHERE 1 = %(a)s", "INSERT INTO t VALUES ({})"])
async def test_placeholders_of_other_libraries_are_answered_with_those_of_sqlite(sql):
    async with flatwater.connect(":memory:") as db:
        with pytest.raises(flatwater.OperationalError) as raised:
            await db.execute(sql, (1,))
        assert raised.value.hint and "`?`" in raised.value.hint and "`:name`" in raised.value.hint


async def test_a_rebuild_names_the_view_in_its_way_and_nothing_of_rust():
    async with flatwater.connect(":memory:") as db:
        await db.executescript("CREATE TABLE t (a); CREATE VIEW v AS SELECT a FROM t; CREATE TABLE n (a)")
        with pytest.raises(flatwater.OperationalError) as raised:
            await db.executescript("DROP TABLE t; ALTER TABLE n RENAME TO t")
        hint = raised.value.hint or ""
        assert "drop the view v before" in hint and "::" not in hint


async def test_columns_of_a_wide_row_are_found_by_name():
    names = [f"Column{number}" for number in range(300)]
    async with flatwater.connect(":memory:") as db:
        row = await db.query_one("SELECT " + ", ".join(f"{at} AS {name}" for at, name in enumerate(names)))
        assert [row[name] for name in names] == list(range(300))
        assert [row[name.lower()] for name in names] == list(range(300))
        with pytest.raises(KeyError):
            row["column300"]


def references() -> int:
    gc.collect()
    return sum(type(one) is weakref.ref for one in gc.get_objects())


async def test_rows_of_a_live_query_that_are_dropped_leave_nothing():
    async with flatwater.connect(":memory:") as db:
        await db.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES (1, 0), (2, 0)")
        async with db.live("SELECT id, a FROM t") as results:
            assert [tuple(row) for row in await anext(results)] == [(1, 0), (2, 0)]
            before = references()
            # There are few different rows, and each result has new objects of them.
            for number in range(1, 301):
                await db.execute("UPDATE t SET a = ? WHERE id = 2", (number % 2,))
                assert [row["a"] for row in await anext(results)] == [0, number % 2]
            assert references() - before < 100


def test_identifiers_of_a_long_text_are_quoted_apart():
    sql = flatwater.Sql("SELECT ")
    for number in range(20_000):
        sql.push("").push_identifier(f"c{number}").push("")
    assert sql.text.startswith("SELECT `c0` `c1` `c2`") and sql.text.endswith("`c19998` `c19999`")
