"""`flatwater.dbapi`: what a program of `sqlite3` relies on, the same tests for `sqlite3` itself; and what differs."""

from __future__ import annotations

import asyncio
import datetime
import gc
import sqlite3
import threading
import warnings
from contextlib import closing
from typing import Any

import pandas
import pytest
import sqlite_vec

import flatwater
from flatwater import dbapi


@pytest.fixture(params=[dbapi, sqlite3], ids=["ours", "theirs"])
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_the_module_says_what_pep_249_asks(module):
    assert (module.apilevel, module.paramstyle) == ("2.0", "qmark")
    assert module.threadsafety in (1, 2, 3)
    errors = [
        ("Warning", Exception),
        ("Error", Exception),
        ("InterfaceError", module.Error),
        ("DatabaseError", module.Error),
        ("DataError", module.DatabaseError),
        ("OperationalError", module.DatabaseError),
        ("IntegrityError", module.DatabaseError),
        ("InternalError", module.DatabaseError),
        ("ProgrammingError", module.DatabaseError),
        ("NotSupportedError", module.DatabaseError),
    ]
    with closing(module.connect(":memory:")) as db:
        for name, base in errors:
            assert issubclass(getattr(module, name), base)
            assert getattr(db, name) is getattr(module, name)
    assert module.Date(2026, 1, 2).isoformat() == "2026-01-02"
    assert module.Binary(b"x") == b"x"
    day, ticks = datetime.datetime(2026, 1, 2, 3, 4, 5), 1_767_323_045
    assert module.Timestamp(2026, 1, 2, 3, 4, 5) == day and module.Time(3, 4, 5) == day.time()
    assert module.TimestampFromTicks(ticks) == datetime.datetime.fromtimestamp(ticks)
    assert module.DateFromTicks(ticks) == datetime.date.fromtimestamp(ticks)
    assert module.TimeFromTicks(ticks) == datetime.datetime.fromtimestamp(ticks).time()


def test_type_objects_are_equal_to_the_types_of_their_values():
    kinds = [dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID]
    for value, of in (
        ("x", [dbapi.STRING]),
        (dbapi.Binary(b"x"), [dbapi.BINARY]),
        (1, [dbapi.NUMBER, dbapi.ROWID]),
        (1.5, [dbapi.NUMBER]),
        (dbapi.Timestamp(2026, 1, 2, 3, 4, 5), [dbapi.DATETIME]),
        (None, []),
    ):
        assert [kind for kind in kinds if kind == value.__class__] == of, value
    assert len(set(kinds)) == 5 and all(kind == kind for kind in kinds) and repr(kinds[0]) == "STRING"


def test_a_cursor_runs_statements_and_is_an_iterator_over_rows(module, place):
    with closing(module.connect(place)) as db:
        cursor = db.cursor()
        assert cursor.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)") is cursor
        assert (cursor.description, cursor.rowcount, cursor.connection) == (None, -1, db)
        assert cursor.executemany("INSERT INTO t (b) VALUES (?)", iter([("x",), ("y",), ("z",)])) is cursor
        assert cursor.rowcount == 3
        cursor.execute("INSERT INTO t (b) VALUES (:b)", {"b": None})
        assert (cursor.rowcount, cursor.lastrowid) == (1, 4)
        cursor.execute("SELECT a, b FROM t ORDER BY a")
        assert [column[0] for column in cursor.description] == ["a", "b"]
        assert all(column[1:] == (None,) * 6 for column in cursor.description)
        assert cursor.fetchone() == (1, "x")
        assert cursor.fetchmany() == [(2, "y")]
        cursor.arraysize = 2
        assert cursor.fetchmany() == [(3, "z"), (4, None)]
        assert (cursor.fetchone(), cursor.fetchmany(1), cursor.fetchall()) == (None, [], [])
        assert list(db.execute("SELECT a FROM t")) == [(1,), (2,), (3,), (4,)]
        iterator = iter(db.execute("SELECT a FROM t"))
        assert next(iterator) == (1,)
        cursor.setinputsizes([1])
        cursor.setoutputsize(1)
        cursor.close()
        with pytest.raises(module.ProgrammingError):
            cursor.execute("SELECT 1")


def test_a_block_commits_or_rolls_back_and_does_not_close(module, file):
    with closing(module.connect(file)) as db:
        with db:
            db.execute("CREATE TABLE t (a)")
            db.execute("INSERT INTO t VALUES (1)")
            assert db.in_transaction
        assert not db.in_transaction
        with pytest.raises(ZeroDivisionError), db:
            db.execute("INSERT INTO t VALUES (2)")
            raise ZeroDivisionError
        assert db.execute("SELECT a FROM t").fetchall() == [(1,)]
        assert db.total_changes == 2


def test_autocommit_and_transactions_as_text(module, file):
    with closing(module.connect(file, isolation_level=None)) as db, closing(module.connect(file)) as other:
        db.execute("CREATE TABLE t (a)")
        db.execute("INSERT INTO t VALUES (1)")
        assert other.execute("SELECT a FROM t").fetchall() == [(1,)]
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO t VALUES (2)")
        db.execute("SAVEPOINT s")
        db.execute("DELETE FROM t")
        db.execute("ROLLBACK TO s")
        assert other.execute("SELECT a FROM t").fetchall() == [(1,)]
        db.execute("COMMIT")
        assert other.execute("SELECT a FROM t").fetchall() == [(1,), (2,)]
        other.executescript("INSERT INTO t VALUES (3); INSERT INTO t VALUES (4);")
        assert db.execute("SELECT count(*) FROM t").fetchone() == (4,)


def test_rows_by_name_and_values_as_types(module, place):
    declared = module.PARSE_DECLTYPES | module.PARSE_COLNAMES
    with closing(module.connect(place, detect_types=declared)) as db:
        db.row_factory = module.Row
        module.register_converter("flag", lambda value: value == b"1")
        db.execute("CREATE TABLE t (a flag, b)")
        db.execute("INSERT INTO t VALUES (?, ?)", (True, module.Binary(b"\0x")))
        row = db.execute("SELECT a, b FROM t").fetchone()
        assert (row["a"], row["b"], row.keys()) == (True, b"\0x", ["a", "b"])
        db.text_factory = bytes
        assert tuple(db.execute("SELECT 'x' AS x").fetchone()) == (b"x",)


@pytest.mark.skipif(not hasattr(sqlite3, "SQLITE_LIMIT_COLUMN"), reason="sqlite3 has no limits")
def test_limits_are_told_and_hold(module, place):
    with closing(module.connect(place)) as db:
        limits = [db.getlimit(category) for category in range(12)]
        assert all(limit > 0 for limit in limits[:11]) and limits[11] == 0
        most = db.getlimit(sqlite3.SQLITE_LIMIT_COLUMN)
        assert len(db.execute("SELECT " + ", ".join("1" * most)).fetchone()) == most
        with pytest.raises(module.OperationalError, match="too many columns"):
            db.execute("SELECT " + ", ".join("1" * (most + 1)))
        with pytest.raises(module.ProgrammingError, match="'category' is out of bounds"):
            db.getlimit(12)


def test_errors(module, place):
    db = module.connect(place)
    with pytest.raises(module.OperationalError, match="^no such table: absent$"):
        db.execute("SELECT * FROM absent")
    with pytest.raises(module.ProgrammingError):
        db.execute("SELECT ?", (1, 2))
    db.execute("CREATE TABLE t (a UNIQUE)")
    db.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(module.IntegrityError, match="^UNIQUE constraint failed: t.a$"):
        db.execute("INSERT INTO t VALUES (1)")
    db.close()
    db.close()
    for call in (db.commit, db.cursor, lambda: db.execute("SELECT 1")):
        with pytest.raises(module.ProgrammingError):
            call().execute("SELECT 1")


def test_a_factory_makes_connections_and_cursors(module, place):
    class Connection(module.Connection):
        pass

    class Cursor(module.Cursor):
        def execute(self, sql, *parameters):
            return super().execute(sql.replace("%s", "?"), *parameters)

    with closing(module.connect(place, factory=Connection)) as db:
        assert type(db) is Connection
        assert db.cursor(factory=Cursor).execute("SELECT %s", (1,)).fetchone() == (1,)


@pytest.mark.parametrize("is_own", [False, True])
def test_a_collation_that_raises_leaves_no_part_of_a_row_in_a_transaction(place, is_own):
    fails = [False]

    def descending(one: str, other: str) -> int:
        if fails[0]:
            raise ValueError("planted")
        return (one < other) - (one > other)

    insert = "INSERT INTO t VALUES (?)"
    with closing(dbapi.connect(place)) as db:
        db.create_collation("c", descending)
        db.executescript("CREATE TABLE t (a COLLATE c); CREATE INDEX i ON t (a)")
        if is_own:
            db.execute("CREATE TEMP TABLE q (x)")
        db.executemany(insert, [(f"m{n:02}",) for n in range(30)])
        db.commit()
        for name, rows in (("execute", ("m155",)), ("executemany", [("m155",), ("m156",)])):
            db.execute(insert, ("first",))
            fails[0] = True
            with pytest.raises(dbapi.Error, match="the collation c raised ValueError"):
                getattr(db, name)(insert, rows)
            fails[0] = False
            assert db.in_transaction
            db.commit()
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT count(*) FROM t NOT INDEXED").fetchone() == (32,)
        # Plain SQLite, which checks the file after the test, has no such collation.
        db.execute("DROP TABLE t")
        db.commit()


def test_functions_and_collations_of_a_connection(module, place):
    class Longest:
        def __init__(self):
            self.found = ""

        def step(self, text):
            self.found = max(self.found, text, key=len)

        def finalize(self):
            return self.found

    with closing(module.connect(place)) as db:
        db.create_function("shout", 1, str.upper, deterministic=True)
        db.create_aggregate("longest", 1, Longest)
        db.create_collation("by_length", lambda one, other: len(one) - len(other))
        values = "(SELECT 'ab' AS a UNION ALL SELECT 'b')"
        assert db.execute(f"SELECT shout(a) FROM {values} ORDER BY a COLLATE by_length").fetchall() == [("B",), ("AB",)]
        assert db.execute(f"SELECT longest(a) FROM {values}").fetchone() == ("ab",)
        db.create_function("shout", 1, None)
        db.create_collation("by_length", None)
        # The text is another one in some versions of `sqlite3`.
        with pytest.raises(module.OperationalError):
            db.execute("SELECT shout('a')")
        with pytest.raises(module.OperationalError, match="no such collation sequence: by_length"):
            db.execute(f"SELECT a FROM {values} ORDER BY a COLLATE by_length").fetchall()


def test_hooks_of_a_connection(module, file):
    texts = []
    with closing(module.connect(file)) as db:
        db.execute("CREATE TABLE t (a)")
        db.set_trace_callback(texts.append)
        db.execute("INSERT INTO t VALUES (1)")
        db.commit()
        assert "INSERT INTO t VALUES (1)" in texts
        db.set_trace_callback(None)
        db.set_authorizer(lambda action, *_: sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_DELETE else 0)
        with pytest.raises(module.DatabaseError, match="not authorized"):
            db.execute("DELETE FROM t")
        db.set_authorizer(None)
        db.set_progress_handler(lambda: 1, 1)
        with pytest.raises(module.OperationalError, match="interrupted"):
            db.execute("SELECT * FROM t")
        db.set_progress_handler(None, 0)
        assert db.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_an_extension_is_an_option(place):
    with closing(dbapi.connect(place)) as db:
        with pytest.raises(dbapi.NotSupportedError, match="option `load_extension`"):
            db.load_extension("x")
        assert not hasattr(db, "enable_load_extension")
    with closing(dbapi.connect(":memory:", load_extension=[(sqlite_vec.loadable_path(), "sqlite3_vec_init")])) as db:
        db.enable_load_extension(True)
        sqlite_vec.load(db)
        db.enable_load_extension(False)
        assert db.execute("SELECT vec_length('[1, 2]')").fetchall() == [(2,)]
        with pytest.raises(dbapi.NotSupportedError, match="option `load_extension`"):
            db.load_extension("x")


def test_a_name_in_double_quotes_that_is_no_column_is_a_text(module, place):
    with closing(module.connect(place)) as db:
        db.execute('CREATE TABLE t (a CHECK (a <> "bad"))')
        db.execute('INSERT INTO t VALUES ("a text")')
        assert db.execute('SELECT a || "!" FROM t').fetchall() == [("a text!",)]


def test_a_program_may_turn_texts_in_double_quotes_off(place):
    with closing(dbapi.connect(place, tuning={"double_quoted_strings": False})) as db:
        with pytest.raises(dbapi.OperationalError, match='no such column: "gone"'):
            db.execute('SELECT "gone"')


def test_copies(module, tmp_path):
    with closing(module.connect(tmp_path / "a.db")) as db, closing(module.connect(tmp_path / "b.db")) as target:
        with db:
            db.execute("CREATE TABLE t (a)")
            db.execute("INSERT INTO t VALUES (1)")
        assert 'INSERT INTO "t" VALUES(1);' in db.iterdump()
        db.backup(target)
        assert target.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_a_file_that_is_attached_is_created(module, file, tmp_path):
    with closing(module.connect(file)) as db:
        db.execute("ATTACH ? AS side", (str(tmp_path / "side.db"),))
        db.execute("CREATE TABLE side.t (a)")
        db.execute("INSERT INTO side.t VALUES (1)")
        db.commit()
    with closing(sqlite3.connect(tmp_path / "side.db")) as plain:
        assert plain.execute("SELECT a FROM t").fetchall() == [(1,)]


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy:UserWarning")
def test_pandas_writes_and_reads_tables(module, place):
    frame = pandas.DataFrame(
        {
            "number": [1, 2, 3],
            "text": ["x", None, "z"],
            "real": [1.5, float("nan"), 3.0],
            "day": pandas.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"]),
        }
    )
    with closing(module.connect(place)) as db:
        assert frame.to_sql("t", db, index=False) == 3
        frame.to_sql("t", db, index=False, if_exists="append")
        frame.to_sql("t", db, index=False, if_exists="replace")
        assert not db.in_transaction
        found = pandas.read_sql("SELECT * FROM t WHERE number > ?", db, params=(1,), parse_dates=["day"])
        assert list(found["number"]) == [2, 3] and list(found["day"]) == list(frame["day"][1:])
        assert [len(part) for part in pandas.read_sql("SELECT * FROM t", db, chunksize=2)] == [2, 1]
        with pytest.raises(ValueError, match="already exists"):
            frame.to_sql("t", db)


def test_threads_share_a_connection(file):
    with closing(dbapi.connect(file, isolation_level=None)) as db:
        db.execute("CREATE TABLE t (a)")

        def work():
            for number in range(50):
                db.execute("INSERT INTO t VALUES (?)", (number,))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert db.execute("SELECT count(*) FROM t").fetchone() == (400,)


def test_two_threads_have_a_connection_each(file):
    with closing(dbapi.connect(file)) as db:
        db.execute("CREATE TABLE t (a)")
    failed = []

    def work():
        try:
            with closing(dbapi.connect(file, timeout=3600)) as db:
                for _ in range(50):
                    db.execute("BEGIN IMMEDIATE")
                    db.execute("INSERT INTO t SELECT count(*) FROM t")
                    db.commit()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with closing(dbapi.connect(file)) as db:
        assert db.execute("SELECT a FROM t ORDER BY a").fetchall() == [(number,) for number in range(100)]
    assert not failed


@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
def test_what_runs_in_another_thread_is_interrupted(module, file, own):
    rows = "(WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 1000000) SELECT x FROM n)"
    with closing(module.connect(file)) as db:
        db.execute("CREATE TABLE t (a)")
        if own:
            db.execute("CREATE TEMP TABLE own (a)")
        for sql in (
            f"SELECT count(*) FROM {rows} a, {rows} b",
            f"INSERT INTO t SELECT a.x FROM {rows} a, {rows} b",
        ):
            ended = threading.Event()

            def interrupts(ended=ended):
                while not ended.wait(0.001):
                    db.interrupt()

            thread = threading.Thread(target=interrupts)
            thread.start()
            try:
                with pytest.raises(module.OperationalError, match="^interrupted$"):
                    db.execute(sql)
            finally:
                ended.set()
                thread.join()
        db.rollback()
        assert db.execute("SELECT count(*) FROM t").fetchall() == [(0,)]


def test_the_rest_of_a_result_is_interrupted(file):
    rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x, zeroblob(9999) FROM n"
    with closing(dbapi.connect(file)) as db:
        cursor = db.execute(rows)
        ended = threading.Event()

        def interrupts():
            while not ended.wait(0.001):
                db.interrupt()

        thread = threading.Thread(target=interrupts)
        thread.start()
        try:
            with pytest.raises(dbapi.OperationalError, match="^interrupted$"):
                while cursor.fetchmany(100):
                    pass
        finally:
            ended.set()
            thread.join()
        assert db.execute("SELECT 1").fetchall() == [(1,)]


async def test_a_live_query_sees_what_is_committed(file):
    async with flatwater.connect(file) as native:
        with closing(dbapi.connect(file)) as db:
            db.execute("CREATE TABLE t (a)")
            async with native.live("SELECT count(*) FROM t") as results:
                assert await asyncio.wait_for(anext(results), 60) == [(0,)]
                with db:
                    db.execute("INSERT INTO t VALUES (1)")
                assert await asyncio.wait_for(anext(results), 60) == [(1,)]


def test_a_connection_that_is_dropped_warns_and_rolls_back(file):
    db = dbapi.connect(file)
    with db:
        db.execute("CREATE TABLE t (a)")
    db.execute("INSERT INTO t VALUES (1)")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del db
        gc.collect()
    assert [warning.category for warning in caught] == [ResourceWarning]
    with closing(dbapi.connect(file)) as db:
        with db:
            db.execute("INSERT INTO t VALUES (2)")
        assert db.execute("SELECT a FROM t").fetchall() == [(2,)]


def test_options_of_the_engine_are_further_arguments(file):
    def functions(to):
        to.create_function("twice", 1, lambda value: 2 * value, deterministic=True)

    with closing(dbapi.connect(file, functions=functions, readers=1)) as db:
        assert db.execute("SELECT twice(21)").fetchone() == (42,)
    with pytest.raises(TypeError):
        dbapi.connect(file, absent=1)


@pytest.mark.parametrize("own", [False, True], ids=["pooled", "own"])
@pytest.mark.parametrize("module", [sqlite3, dbapi])
@pytest.mark.parametrize("target", ["file", ":memory:"])
def test_a_target_of_a_backup_that_fails_lives_on_as_it_was(module, target, own, tmp_path):
    source = module.connect(tmp_path / "source.db")
    source.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(100000))")
    if own:
        source.execute("CREATE TEMP TABLE own (a)")
    into = module.connect(":memory:" if target == ":memory:" else tmp_path / "target.db")
    into.executescript("CREATE TABLE old (a); INSERT INTO old VALUES (1)")

    def stop(*_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        source.backup(into, pages=1, progress=stop)
    assert into.execute("SELECT a FROM old").fetchall() == [(1,)]
    into.execute("INSERT INTO old VALUES (2)")
    into.commit()
    source.backup(into, pages=1, progress=lambda *_: source.execute("SELECT 1").fetchall(), sleep=0)
    assert into.execute("SELECT length(a) FROM t").fetchall() == [(100000,)]
    source.close()
    into.close()


def test_a_backup_into_the_same_file_is_refused_and_both_live_on(file):
    with closing(dbapi.connect(file)) as source, closing(dbapi.connect(file)) as target:
        source.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        with pytest.raises(sqlite3.Error):
            source.backup(target)
        for connection in (source, target):
            connection.execute("INSERT INTO t VALUES (2)")
            connection.commit()
        assert source.execute("SELECT count(*) FROM t").fetchall() == [(3,)]


def test_a_backup_whose_target_is_locked_leaves_it_open(tmp_path):
    with closing(dbapi.connect(":memory:")) as source, closing(dbapi.connect(tmp_path / "a.db")) as target:
        source.executescript("CREATE TABLE t (a)")
        target.execute("CREATE TABLE old (a)")
        with pytest.raises(sqlite3.OperationalError, match="in use"):
            target.execute("INSERT INTO old VALUES (1)")
            source.backup(target)
        target.commit()
        assert target.execute("SELECT a FROM old").fetchall() == [(1,)]
