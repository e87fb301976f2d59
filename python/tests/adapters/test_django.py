"""The backend of Django: what it adds to Django's own, whose tests run in `make test-python-suites`."""

from __future__ import annotations

import multiprocessing
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import django
import pytest
from asgiref.local import Local
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import IntegrityError, connection, connections, transaction
from django.db.utils import NotSupportedError
from django.utils.functional import empty

import flatwater.django
from flatwater._logical.own import Own
from flatwater._logical.pooled import Pooled

MEMORY = "file:memorydb_default?mode=memory&cache=shared"


def forget() -> None:
    """Closes the connections, and forgets the settings, which a process has once."""
    if not settings.configured:
        return
    for one in connections.all(initialized_only=True):
        one._close()
    # Those of other tasks and threads, too.
    connections._connections = Local(connections.thread_critical)
    connections.__dict__.pop("settings", None)
    connections._settings = None
    settings._wrapped = empty


@pytest.fixture
def opened() -> Iterator[Any]:
    """Makes the settings of a program: one database, with a name and OPTIONS."""
    forget()

    def make(name: Any, **options: Any) -> None:
        settings.configure(DATABASES={"default": {"ENGINE": "flatwater.django", "NAME": name, "OPTIONS": options}})
        django.setup()

    yield make
    forget()


def rows(sql: str, *params: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        return cursor.fetchall() if cursor.description else []


def mode() -> type:
    return type(connection.connection._logical.mode)


def test_a_connection_shares_the_readers_though_it_has_djangos_functions(file, opened):
    opened(file)
    assert rows("SELECT django_date_extract('year', '2026-01-02'), %s REGEXP 'T.a', LPAD('x', 3, '-')", "Tea") == [
        (2026, 1, "--x")
    ]
    rows("CREATE TABLE t (a INTEGER PRIMARY KEY, b REFERENCES t)")
    with transaction.atomic():
        rows("INSERT INTO t VALUES (%s, %s)", 1, None)
    with pytest.raises(IntegrityError):
        rows("INSERT INTO t VALUES (%s, %s)", 2, 7)
    assert mode() is Pooled
    assert rows("SELECT '%', a FROM t") == [("%", 1)]
    with connection.constraint_checks_disabled():
        rows("INSERT INTO t VALUES (2, 7)")
    assert mode() is Own
    rows("DELETE FROM t WHERE a = 2")


def test_options_are_those_of_connect(file, opened):
    def functions(database: Any) -> None:
        database.create_function("initial", 1, lambda name: name[:1], deterministic=True)

    own = {"timeout": 2, "functions": functions, "init_command": "PRAGMA cache_size = 99; ", "durability": "full"}
    opened(file, transaction_mode="IMMEDIATE", **own)
    assert rows("SELECT initial('Ada'), SIGN(-2)") == [("A", -1)]
    assert rows("PRAGMA cache_size") == [(99,)]
    assert rows("PRAGMA busy_timeout") == [(2000,)]
    with pytest.raises(TypeError, match="durabilty"):
        connections.create_connection("default").get_new_connection({"database": file, "durabilty": "full"})


async def test_calls_of_the_package_are_beside_djangos(file, opened):
    opened(file)
    try:
        async with flatwater.django.connect() as db:
            await db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b REFERENCES t)")
        await sync_to_async(rows)("INSERT INTO t VALUES (%s, %s)", 7, None)
        async with flatwater.django.connect() as db, db.live("SELECT a, SIGN(a) FROM t") as results:
            assert await anext(results) == [(7, 1)]
            await sync_to_async(rows)("DELETE FROM t")
            assert await anext(results) == []
            with pytest.raises(flatwater.IntegrityError):
                await db.execute("INSERT INTO t VALUES (1, 2)")
    finally:
        await sync_to_async(connections.close_all)()


def test_a_database_in_memory_has_djangos_calls_only(opened):
    opened(MEMORY)
    with pytest.raises(NotSupportedError, match="in memory"):
        flatwater.django.connect()


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("name", ["test.db", MEMORY])
def test_a_worker_of_tests_has_a_whole_copy(opened, tmp_path, monkeypatch, name, start):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda: start)
    opened(name)
    rows("CREATE TABLE t (a)")
    rows("INSERT INTO t VALUES (%s)", 7)
    creation = connection.creation
    for _ in range(2):
        creation._clone_test_db("1", 0)
    copy = Path(creation.get_test_db_clone_settings("1")["NAME"])
    with closing(sqlite3.connect(copy)) as plain:
        assert plain.execute("SELECT a FROM t").fetchall() == [(7,)]
    of_parent = connection.connection
    creation.setup_worker_connection("1")
    rows("INSERT INTO t VALUES (8)")
    assert connection.is_in_memory_db() == (name == MEMORY)
    assert rows("SELECT a FROM t") == [(7,), (8,)]
    assert of_parent.execute("SELECT a FROM t").fetchall() == [(7,)]
    connection._close()
    creation._destroy_test_db(str(copy), 0)
    assert not list(tmp_path.glob(f"{copy.stem}.*"))
    of_parent.close()
