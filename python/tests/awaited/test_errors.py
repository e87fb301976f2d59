"""Exceptions: their classes and what they say."""

from __future__ import annotations

import sqlite3

import pytest

import flatwater


async def test_errors_are_those_of_the_sqlite3_module_too(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE users (email TEXT UNIQUE)")
        await db.execute("INSERT INTO users VALUES ('a')")
        with pytest.raises(sqlite3.IntegrityError) as caught:
            await db.execute("INSERT INTO users VALUES (?)", ("a",))
        error = caught.value
        assert isinstance(error, flatwater.IntegrityError) and isinstance(error, sqlite3.DatabaseError)
        assert str(error) == "UNIQUE constraint failed: users.email"
        assert (error.sqlite_errorcode, error.sqlite_errorname) == (2067, "SQLITE_CONSTRAINT_UNIQUE")
        assert (error.kind, error.retryable, error.sql) == ("constraint", False, "INSERT INTO users VALUES (?)")
        with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"):
            await db.query("SELECT * FROM nowhere")
        with pytest.raises(sqlite3.OperationalError) as caught:
            await db.query("SELECT * FORM users")
        assert caught.value.offset == 9


async def test_a_file_that_is_no_database_is_a_database_error(tmp_path):
    (tmp_path / "no.db").write_bytes(b"x" * 4096)
    with pytest.raises(sqlite3.DatabaseError) as caught:
        await flatwater.connect(tmp_path / "no.db")
    assert type(caught.value) is flatwater.DatabaseError


async def test_bound_values_are_in_no_error(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a UNIQUE CHECK (length(a) < 10))")
        for value in ["secret", "secret secret secret"]:
            for _ in range(2):
                try:
                    await db.execute("INSERT INTO t VALUES (?)", (value,))
                except flatwater.Error as error:
                    assert "secret" not in f"{error} {error.__dict__}"


def test_the_hierarchy_is_that_of_pep_249():
    for name in [
        "DataError",
        "OperationalError",
        "IntegrityError",
        "InternalError",
        "ProgrammingError",
        "NotSupportedError",
    ]:
        own = getattr(flatwater, name)
        assert issubclass(own, flatwater.DatabaseError) and issubclass(own, getattr(sqlite3, name))
    assert issubclass(flatwater.InterfaceError, flatwater.Error) and issubclass(flatwater.Error, sqlite3.Error)
    assert issubclass(flatwater.Timeout, TimeoutError)
    assert issubclass(flatwater.RowNotFound, flatwater.ProgrammingError)
