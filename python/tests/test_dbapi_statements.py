"""Statements on `flatwater.dbapi` beside `sqlite3`: what is stored, what begins a transaction and what ends one."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from flatwater import dbapi
from flatwater._logical.statement import Kind, Statement
from flatwater._native import Statements

KEYS = """
CREATE TABLE p (id INTEGER PRIMARY KEY);
CREATE TABLE c (a REFERENCES p DEFERRABLE INITIALLY DEFERRED);
"""
TABLES = """
CREATE TABLE t (a UNIQUE); CREATE VIEW v AS SELECT 1; CREATE TABLE computed (a, b AS (a));
CREATE TABLE w (k PRIMARY KEY) WITHOUT ROWID; INSERT INTO t VALUES ('there');
"""


@pytest.fixture(params=[dbapi, sqlite3], ids=["ours", "theirs"])
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["pooled", "own"])
def own(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "own")


def connected(module: Any, path: Any, own: bool = False, **options: Any) -> Any:
    db = module.connect(path, **options)
    if own:
        db.execute("CREATE TEMP TABLE temporary (a)")
    return db


# What SQL is.


@pytest.mark.parametrize("call", ["changes()", "last_insert_rowid()", "total_changes()"])
def test_a_text_is_stored_as_it_is_written(module, place, call):
    with closing(module.connect(place)) as db:
        db.execute(f"CREATE TABLE t (a, b DEFAULT 'x {call} y')")
        db.execute(f"INSERT INTO t (a) VALUES ('SELECT {call} -- '' {call}')")
        db.execute(f"UPDATE t SET a = a || '{call}' WHERE a <> '{call}'")
        assert db.execute("SELECT * FROM t").fetchall() == [(f"SELECT {call} -- ' {call}{call}", f"x {call} y")]
        db.execute(f"ALTER TABLE t ADD COLUMN c DEFAULT '{call}'")
        assert db.execute("SELECT c FROM t").fetchall() == [(call,)]
        cursor = db.execute(f"SELECT count(*) AS \"{call}\" /* {call} */ FROM t WHERE c = '{call}'")
        assert (cursor.description[0][0], cursor.fetchall()) == (call, [(1,)])


def test_what_asks_for_earlier_statements_is_told_of_them_however_it_is_written(module, place, own):
    with closing(connected(module, place, own)) as db:
        db.execute("CREATE TABLE t (a)")
        db.execute("INSERT INTO t VALUES (5), (3), (4)")
        for end in (None, db.commit):
            if end is not None:
                end()
            cursor = db.execute('SELECT Changes ( ), "changes"()+1, changes(/* x */) AS "(1)" -- changes()')
            names = ["Changes ( )", '"changes"()+1', "(1)"]
            assert ([column[0] for column in cursor.description], cursor.fetchall()) == (names, [(3, 4, 3)])
            # It is an expression, and not the number of a column.
            assert db.execute("SELECT a FROM t ORDER BY changes() - 2").fetchall() == [(5,), (3,), (4,)]
            assert db.execute("SELECT last_insert_rowid(), total_changes()").fetchall() == [(3, 3)]


def test_the_words_of_a_statement_are_its_tokens():
    for sql, kind, control in [
        ("SELECT 1 /* RETURNING */", Kind.READ, ("", "")),
        (" ; -- INSERT\nVALUES (1)", Kind.READ, ("", "")),
        ("WITH x AS (SELECT replace('a', 'b', 'c')) SELECT 1", Kind.READ, ("", "")),
        ("WITH x AS (SELECT 1) DELETE FROM t", Kind.WRITE, ("", "")),
        ("CREATE TEMP TABLE x (a)", Kind.OWN, ("", "")),
        ("CREATE TRIGGER [temp]./* */x AFTER INSERT ON t BEGIN SELECT 1; END", Kind.OWN, ("", "")),
        ("CREATE TABLE temperature (a)", Kind.WRITE, ("", "")),
        ("begin/**/immediate transaction 'x';", Kind.CONTROL, ("begin", "IMMEDIATE")),
        ("ROLLBACK TRANSACTION x TO SAVEPOINT `a``b`", Kind.CONTROL, ("rollback_to", "a`b")),
        ("ROLLBACK TRANSACTION TO [a b]", Kind.CONTROL, ("rollback_to", "a b")),
        ('SAVEPOINT"a"', Kind.CONTROL, ("savepoint", "a")),
        ("COMMIT; SELECT 1", Kind.WRONG, ("", "")),
        ("SAVEPOINT", Kind.WRONG, ("", "")),
        ("'INSERT' INTO t", Kind.WRITE, ("", "")),
        ("/* nothing", Kind.NOTHING, ("", "")),
    ]:
        what = Statement(sql)
        assert (what.kind, (what.control, what.name)) == (kind, control), sql
    for sql, timeout in [
        ("PRAGMA busy_timeout", -1),
        ("pragma main./* */Busy_Timeout ( 70 );", 70),
        ("PRAGMA busy_timeout = -5", 0),
        ("PRAGMA cache_size = 'busy_timeout'", None),
    ]:
        assert Statement(sql).busy_timeout == timeout, sql
    trigger = "CREATE TRIGGER x BEFORE INSERT ON t BEGIN SELECT 1; SELECT 2; END;"
    script = f"SELECT ';' -- ;\n; {trigger}; EXPLAIN SELECT 1;/*;*/ "
    assert [one.strip() for one in Statements(script)] == [
        "SELECT ';' -- ;\n;",
        trigger,
        "EXPLAIN SELECT 1;",
    ]


@pytest.mark.parametrize("sql", ["PRAGMA foreign_keys = OFF", "pragma main.foreign_keys(0); -- off"])
@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN IMMEDIATE", "SAVEPOINT s", "INSERT INTO p VALUES (1)"])
def test_foreign_keys_are_left_as_they_are_in_a_transaction(module, file, own, begin, sql):
    options = {"foreign_keys": True} if module is dbapi else {}
    with closing(connected(module, file, own, **options)) as db:
        db.executescript("PRAGMA foreign_keys = 1;" * (module is sqlite3) + KEYS)
        db.execute(begin)
        cursor = db.execute(sql)
        assert (cursor.description, cursor.fetchall(), db.in_transaction) == (None, [], True)
        assert db.execute("PRAGMA foreign_keys").fetchall() == [(1,)]
        db.execute("INSERT INTO c VALUES (7)")
        with pytest.raises(module.IntegrityError, match="FOREIGN KEY constraint failed"):
            db.commit()
        db.rollback()
        db.execute(sql)
        assert db.execute("PRAGMA foreign_keys").fetchall() == [(0,)]


# A COMMIT that fails.


def test_a_commit_that_fails_leaves_the_transaction_open(module, file, own):
    options = {"foreign_keys": True} if module is dbapi else {}
    with closing(connected(module, file, own, **options)) as db:
        db.executescript("PRAGMA foreign_keys = 1;" * (module is sqlite3) + KEYS)

        def fails(end: Any) -> None:
            with pytest.raises(module.IntegrityError, match="FOREIGN KEY constraint failed"):
                end()
            assert db.in_transaction

        db.execute("INSERT INTO c VALUES (7)")
        for _ in range(2):
            fails(db.commit)
        fails(lambda: db.execute("COMMIT"))
        db.execute("INSERT INTO p VALUES (7)")
        db.commit()
        assert db.execute("SELECT a, id FROM c, p").fetchall() == [(7, 7)]
        db.execute("BEGIN")
        db.execute("SAVEPOINT s")
        db.execute("INSERT INTO c VALUES (8)")
        fails(db.commit)
        db.execute("ROLLBACK TO s")
        db.commit()
        db.execute("SAVEPOINT outermost")
        db.execute("INSERT INTO c VALUES (9)")
        fails(lambda: db.execute("RELEASE outermost"))
        db.execute("DELETE FROM c WHERE a = 9")
        db.execute("RELEASE outermost")
        assert not db.in_transaction
        with pytest.raises(module.IntegrityError), db:
            db.execute("INSERT INTO c VALUES (10)")
        assert not db.in_transaction
        assert db.execute("SELECT a FROM c").fetchall() == [(7,)]


def test_a_level_that_is_taken_away_is_gone_though_the_commit_fails(module, file, own):
    if module is sqlite3 and sys.version_info < (3, 11):
        pytest.skip("sqlite3 kept the level")
    options = {"foreign_keys": True} if module is dbapi else {}
    with closing(connected(module, file, own, **options)) as db:
        db.executescript("PRAGMA foreign_keys = 1;" * (module is sqlite3) + KEYS)
        db.execute("INSERT INTO c VALUES (7)")
        with pytest.raises(module.IntegrityError, match="FOREIGN KEY constraint failed"):
            db.isolation_level = None
        assert (db.isolation_level, db.in_transaction) == (None, True)
        db.rollback()
        db.execute("INSERT INTO p VALUES (7)")
        assert not db.in_transaction


def test_a_statement_by_itself_whose_commit_fails_leaves_nothing(module, file, own):
    options = {"foreign_keys": True} if module is dbapi else {}
    with closing(connected(module, file, own, isolation_level=None, **options)) as db:
        db.executescript("PRAGMA foreign_keys = 1;" * (module is sqlite3) + KEYS)
        with pytest.raises(module.IntegrityError):
            db.execute("INSERT INTO c VALUES (7)")
        assert not db.in_transaction
        assert db.execute("SELECT count(*) FROM c").fetchall() == [(0,)]


def test_the_idle_limit_ends_a_transaction_whose_commit_has_failed(file):
    with closing(dbapi.connect(file, foreign_keys=True, tuning={"transaction_idle": 0.05})) as db:
        db.executescript(KEYS)
        db.execute("INSERT INTO c VALUES (7)")
        with pytest.raises(dbapi.IntegrityError):
            db.commit()
        while db.in_transaction:
            pass
        with pytest.raises(dbapi.OperationalError, match="was not used for"):
            db.commit()
        db.commit()
        assert db.execute("SELECT count(*) FROM c").fetchall() == [(0,)]


# What begins a transaction.

NOT_COMPILED = [
    "INSERT INTO none VALUES (1)",
    "UPDATE none SET a = 1",
    "DELETE FROM none",
    "INSERT INTO t VALUES (1, 2, 3)",
    "INSERT INTO t (none) VALUES (1)",
    "INSERT INTO t VALUES (none(1))",
    "REPLACE INTO v VALUES (1)",
    "UPDATE t SET a = (",
    "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)",
    "INSERT INTO t SELECT * FROM none",
    "DELETE FROM v",
    "INSERT INTO computed VALUES (1, 2)",
    "INSERT INTO sqlite_schema VALUES (1, 2, 3, 4, 5)",
    "CREATE TABLE t (a)",
    "SELECT * FROM none",
]


@pytest.mark.parametrize("sql", NOT_COMPILED)
@pytest.mark.parametrize("many", [False, True])
def test_a_statement_that_is_not_compiled_begins_nothing(module, file, own, sql, many):
    with closing(module.connect(file)) as first:
        first.executescript(TABLES)
    with closing(connected(module, file, own)) as db, closing(module.connect(file)) as other:
        for given in ((), (object(),)):
            with pytest.raises((module.DatabaseError, module.Warning)):
                db.executemany(sql, [given]) if many else db.execute(sql, given)
            assert not db.in_transaction
        other.execute("INSERT INTO t VALUES (1)")
        other.commit()
        # It commits by itself.
        db.execute("CREATE TABLE later (a)")
        assert other.execute("SELECT count(*) FROM later").fetchall() == [(0,)]
        # In a transaction that was begun before it leaves that open.
        db.execute("BEGIN")
        with pytest.raises((module.DatabaseError, module.Warning)):
            db.executemany(sql, [()]) if many else db.execute(sql)
        assert db.in_transaction
        other.execute("INSERT INTO t VALUES (2)")
        other.commit()


def test_what_a_full_text_table_writes_at_a_commit_is_not_of_the_next_statement(module, file, own):
    with closing(connected(module, file, own)) as db:
        db.execute("CREATE VIRTUAL TABLE f USING fts5(a)")
        db.execute("INSERT INTO f VALUES ('some words')")
        db.commit()
        with pytest.raises(module.OperationalError, match="no such table: none"):
            db.execute("INSERT INTO none VALUES (1)")
        assert not db.in_transaction


@pytest.mark.parametrize("given", [(), (1, 2), (object(),), 5, {"b": 1}, ("\ud800",), [("\udfff" + "x")]])
def test_parameters_that_do_not_fit_begin_a_transaction_that_takes_nothing(module, file, own, given):
    with closing(connected(module, file, own)) as db, closing(module.connect(file)) as other:
        other.execute("CREATE TABLE t (a)")
        with pytest.raises((module.ProgrammingError, module.InterfaceError, UnicodeEncodeError)):
            db.execute("INSERT INTO t VALUES (:a)" if isinstance(given, dict) else "INSERT INTO t VALUES (?)", given)
        assert db.in_transaction
        other.execute("INSERT INTO t VALUES (1)")
        other.commit()
        db.execute("INSERT INTO t VALUES (2)")
        db.rollback()
        assert db.execute("SELECT a FROM t").fetchall() == [(1,)]


def rows_that_end() -> Iterator[tuple[int]]:
    yield (1,)
    yield (2,)
    raise KeyError("of the program")


@pytest.mark.parametrize("rows", [[(1,), (2,), ()], [(1,), (2,), (1,)], [(1,), (2,), (object(),)], rows_that_end])
def test_rows_before_one_that_fails_stay_in_the_transaction(module, file, own, rows):
    with closing(connected(module, file, own)) as db:
        db.execute("CREATE TABLE t (a UNIQUE)")
        with pytest.raises((module.Error, KeyError)):
            db.executemany("INSERT INTO t VALUES (?)", rows() if callable(rows) else rows)
        assert (db.in_transaction, db.total_changes) == (True, 2)
        assert db.execute("SELECT changes(), last_insert_rowid()").fetchall() == [(1 - (rows == [(1,), (2,), (1,)]), 2)]
        assert db.execute("SELECT a FROM t").fetchall() == [(1,), (2,)]


def test_a_constraint_leaves_the_transaction_open_that_its_statement_began(module, file, own):
    with closing(module.connect(file)) as first:
        first.executescript(TABLES)
    with closing(connected(module, file, own)) as db:
        with pytest.raises(module.IntegrityError):
            db.execute("INSERT INTO t VALUES ('there')")
        assert db.in_transaction


def test_what_or_fail_has_done_before_it_failed_stays(module, file, own):
    with closing(connected(module, file, own, isolation_level=None)) as db:
        db.executescript(TABLES)
        with pytest.raises(module.IntegrityError):
            db.execute("INSERT OR FAIL INTO t VALUES (1), (2), (1), (3)")
        assert not db.in_transaction
        assert db.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (2,), ("there",)]
        assert db.execute("SELECT changes(), last_insert_rowid(), total_changes()").fetchall() == [(2, 3, 3)]


# What a connection tells.


def test_a_connection_that_became_its_own_tells_of_its_earlier_statements(module, file):
    with closing(module.connect(file)) as db, closing(module.connect(file)) as other:
        db.executescript(TABLES)
        db.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
        db.commit()
        other.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(10, 20)])
        other.commit()
        db.execute("CREATE TEMP TABLE temporary (a)")
        numbers = "SELECT last_insert_rowid(), total_changes()"
        for sql, told in [
            ("SELECT 1", (3, 3)),
            ("DELETE FROM t WHERE a = 'none'", (3, 3)),
            ("UPDATE t SET a = 3 WHERE a = 2", (3, 4)),
            ("INSERT INTO w VALUES (1)", (3, 5)),
            ("INSERT INTO t VALUES (100)", (14, 6)),
        ]:
            cursor = db.execute(sql)
            assert (cursor.lastrowid, db.total_changes) == told, sql
            assert db.execute(numbers).fetchall() == [told], sql


@pytest.mark.parametrize(
    ("sql", "parameters", "changes"),
    [
        ("INSERT INTO t VALUES (?)", (1, 2), 2),
        ("INSERT INTO missing VALUES (?)", (1,), 2),
        ("INSERT INTO t VALUES (?)", ("there",), 0),
    ],
)
@pytest.mark.parametrize("many", [False, True])
def test_a_statement_that_did_not_run_leaves_the_changes_of_the_one_before_it(
    module, place, own, sql, parameters, changes, many
):
    with closing(connected(module, place)) as db:
        db.executescript(TABLES)
        db.executescript("INSERT INTO t VALUES (1), (2); UPDATE t SET a = a + 10 WHERE a < 10; DROP VIEW v")
        db.execute("UPDATE t SET a = a + 10 WHERE a < 20")
        db.commit()
        if own:
            db.execute("CREATE TEMP TABLE temporary (a)")
        with pytest.raises(module.Error):
            db.executemany(sql, [parameters]) if many else db.execute(sql, parameters)
        assert db.execute("SELECT changes(), total_changes()").fetchall() == [(changes, 7)]


def test_the_rowid_is_that_of_this_connection_and_not_of_another(module, file):
    with closing(module.connect(file)) as db, closing(module.connect(file)) as other:
        db.executescript(TABLES)
        inserts = ["INSERT INTO w VALUES (5) RETURNING k", "INSERT OR IGNORE INTO w VALUES (5)"]
        for sql in ["UPDATE t SET a = 'else'", *inserts]:
            other.execute("INSERT INTO t VALUES (random())")
            other.commit()
            cursor = db.cursor()
            cursor.execute("DELETE FROM t WHERE a <> 'there'")
            cursor.execute(sql).fetchall()
            assert cursor.lastrowid == 1, sql
            assert db.execute("SELECT last_insert_rowid()").fetchall() == [(1,)]
            db.execute("UPDATE t SET a = 'there'")
            db.commit()
        other.executemany("INSERT INTO w VALUES (?)", [(7,), (8,)])
        other.commit()
        db.executemany("INSERT INTO w VALUES (?)", [(9,), (10,)])
        assert db.execute("SELECT 1").lastrowid == 1


def test_a_statement_that_failed_past_its_first_row_is_told_of(module, place, own):
    with closing(connected(module, place, own)) as db:
        db.executescript(TABLES)
        cursor = db.cursor()
        with pytest.raises(module.IntegrityError):
            cursor.execute("INSERT INTO t VALUES (1), (2), ('there')")
        assert (cursor.lastrowid, cursor.rowcount, cursor.description) == (None, -1, None)
        told = db.execute("SELECT last_insert_rowid(), changes(), total_changes()").fetchall()
        assert told == [(3, 0, 1)]
        assert db.execute("SELECT 1").lastrowid == 3


def test_a_cursor_tells_nothing_of_the_statement_before_one_that_fails(module, place):
    with closing(module.connect(place)) as db:
        cursor = db.execute("SELECT 1 AS a")
        assert cursor.description is not None
        with pytest.raises(module.OperationalError):
            cursor.execute("SELECT none")
        assert (cursor.description, cursor.rowcount, cursor.fetchall()) == (None, -1, [])


def test_an_isolation_level_is_read_in_the_spelling_of_sqlite(place):
    with closing(dbapi.connect(place, isolation_level="deferred")) as db:
        assert db.isolation_level == "DEFERRED"
        db.isolation_level = "Immediate"
        assert db.isolation_level == "IMMEDIATE"


def test_a_file_is_detached_in_a_transaction_that_did_not_use_it(module, file, tmp_path):
    with closing(module.connect(file)) as db, closing(module.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE x (a)")
        db.execute("CREATE TABLE t (a)")
        db.execute("ATTACH ? AS other", (str(tmp_path / "other.db"),))
        other.execute("INSERT INTO x VALUES (1)")
        # Its lock is not taken.
        db.execute("INSERT INTO t VALUES (1)")
        other.commit()
        db.execute("DETACH other")
        assert db.in_transaction
        db.commit()
        assert db.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_rows_that_many_statements_return_are_dropped(module, place, own):
    if module is sqlite3 and sys.version_info < (3, 11):
        pytest.skip("it refuses them")
    with closing(connected(module, place, own)) as db:
        db.execute("CREATE TABLE t (a UNIQUE)")
        cursor = db.executemany("INSERT INTO t VALUES (?) RETURNING a", [(1,), (2,)])
        assert (cursor.description[0][0], cursor.fetchall()) == ("a", [])
        with pytest.raises(module.IntegrityError):
            db.executemany("INSERT INTO t VALUES (?) RETURNING a", [(3,), (3,)])
        assert (db.in_transaction, db.total_changes) == (True, 3)
        assert db.execute("SELECT a FROM t").fetchall() == [(1,), (2,), (3,)]


@pytest.mark.parametrize("half", ["\ud800", "\udfff"])
def test_half_of_a_character_is_refused_wherever_it_is_given(module, place, own, tmp_path, half):
    with closing(connected(module, place, own)) as db:
        db.execute("CREATE TABLE t (a)")
        for refused in [
            lambda: db.execute(f"SELECT '{half}'"),
            lambda: db.execute(f"INSERT INTO t VALUES ('{half}')"),
            lambda: db.executemany(f"INSERT INTO t VALUES ('{half}')", [()]),
            lambda: db.executescript(f"SELECT 1; SELECT '{half}'"),
            lambda: db.execute("SELECT ?", (half,)),
            lambda: db.execute("INSERT INTO t VALUES (:a)", {"a": half}),
            lambda: db.executemany("INSERT INTO t VALUES (?)", [("a",), (half,)]),
            lambda: module.connect(f"{tmp_path}/\ud800.db"),
        ]:
            with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
                refused()
        assert db.execute("SELECT a FROM t").fetchall() == [("a",)]


def test_many_rows_are_for_every_statement_that_writes(module, place, own):
    if module is sqlite3 and sys.version_info < (3, 11):
        pytest.skip("it takes INSERT, UPDATE, DELETE and REPLACE")
    with closing(connected(module, place, own)) as db:
        db.execute("CREATE TABLE t (a)")
        cursor = db.executemany("WITH n(x) AS (SELECT ?) INSERT INTO t SELECT x FROM n", [(1,), (2,)])
        assert (cursor.rowcount, db.in_transaction, db.total_changes) == (-1, False, 2)
        for sql, error in [("SELECT ?", module.ProgrammingError), ("SELECT none", module.OperationalError)]:
            with pytest.raises(error):
                db.executemany(sql, [(1,)])
        db.execute("BEGIN")
        with pytest.raises(module.ProgrammingError, match="supplied"):
            db.execute("PRAGMA user_version", (1,))
        assert db.in_transaction
