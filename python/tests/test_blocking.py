"""The calls that wait for their result."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading

import pytest
from conftest import SECONDS

import flatwater
from flatwater import blocking
from flatwater._told import names

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


def test_every_call_waits_for_its_result(place, tmp_path):
    with blocking.connect(place) as db:
        assert db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)").changes == 0
        assert db.execute("INSERT INTO t (a) VALUES (?)", ("x",)).last_insert_rowid == 1
        assert db.executemany("INSERT INTO t (a) VALUES (:a)", ({"a": n} for n in range(1000))) == 1000
        assert db.executescript("DELETE FROM t WHERE id > 3; UPDATE t SET a = 'y'") is None
        assert db.query("SELECT id, a FROM t") == [(1, "y"), (2, "y"), (3, "y")]
        assert db.query("SELECT id FROM t", into=dict) == [{"id": 1}, {"id": 2}, {"id": 3}]
        assert (db.query_one("SELECT a FROM t"), db.query_value("SELECT count(*) FROM t")) == (("y",), 3)
        assert (db.query_optional("SELECT a FROM t"), db.query_optional_value("SELECT a FROM t")) == (("y",), "y")
        none = "SELECT a FROM t WHERE id > 3"
        assert db.query_optional(none) is db.query_optional(none, into=dict) is db.query_optional_value(none) is None
        for call in (db.query_one, db.query_value):
            with pytest.raises(flatwater.RowNotFound, match="returned no row"):
                call(none)
        assert db.query_json("SELECT a FROM t LIMIT 1") == '[{"a":"y"}]'
        assert [one.changes for one in db.batch(["DELETE FROM t", ("INSERT INTO t (a) VALUES (?)", (1,))])] == [3, 1]
        assert db.migrate([("0001_u", "CREATE TABLE u (a)")]) == ["0001_u"]
        assert db.backup(tmp_path / "copy.db") is None
        with blocking.connect(tmp_path / "copy.db") as copy:
            assert copy.query("SELECT a FROM t") == [(1,)]
        with db.stream("SELECT a FROM t") as rows:
            assert [row["a"] for row in rows] == [1]
        with db.batches("SELECT a FROM t") as batches:
            assert [list(rows) for rows in batches] == [[(1,)]]
        assert db.stats()["one_connection"] == (place == ":memory:")
    with pytest.raises(flatwater.ProgrammingError, match="closed"):
        db.query("SELECT 1")


def test_transactions_and_snapshots_are_blocks(file):
    with blocking.connect(file) as db:
        db.execute("CREATE TABLE t (a)")
        with db.transaction() as tx:
            tx.execute("INSERT INTO t VALUES (1)")
            with pytest.raises(ZeroDivisionError), tx.transaction() as nested:
                nested.execute("INSERT INTO t VALUES (2)")
                raise ZeroDivisionError
            with pytest.raises(flatwater.ProgrammingError, match="inside its own transaction"):
                db.execute("INSERT INTO t VALUES (3)")
        with pytest.raises(ZeroDivisionError), db.transaction() as tx:
            tx.execute("INSERT INTO t VALUES (4)")
            raise ZeroDivisionError
        with db.snapshot() as snapshot:
            db.execute("INSERT INTO t VALUES (5)")
            assert snapshot.query("SELECT a FROM t") == [(1,)]
        assert db.query("SELECT a FROM t") == [(1,), (5,)]


def test_threads_share_a_database(file):
    with blocking.connect(file) as db:
        db.execute("CREATE TABLE t (a)")

        def work():
            for n in range(100):
                db.execute("INSERT INTO t VALUES (?)", (n,))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert db.query_value("SELECT count(*) FROM t") == 400


def test_an_interrupt_of_the_program_ends_a_call_that_waits(file):
    with blocking.connect(file, readers=1) as db:
        timer = threading.Timer(0.05, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            db.query_value(ENDLESS, timeout=SECONDS)
        timer.join()
        assert db.query_value("SELECT 1") == 1


def test_other_threads_run_while_a_call_waits(file):
    with blocking.connect(file) as db:
        ran = threading.Event()
        thread = threading.Thread(target=ran.set)
        thread.start()
        with pytest.raises(flatwater.Timeout):
            db.query_value(ENDLESS, timeout=0.05)
        thread.join()
        assert ran.is_set()


def test_hints_of_errors_are_for_code_without_an_event_loop():
    with blocking.connect(":memory:") as db:
        with pytest.raises(flatwater.ProgrammingError, match="-- begin it with `with db.transaction\\(\\)`") as caught:
            db.execute("BEGIN")
        assert caught.value.hint == "begin it with `with db.transaction()`"


def test_names_of_other_libraries_are_answered_with_a_hint():
    said = "no attribute 'commit': each statement is committed when its call returns; several belong into `with db"
    with blocking.connect(":memory:") as db, pytest.raises(AttributeError, match=said):
        db.commit()


@pytest.mark.parametrize("table", ["_HINTS", "_IN_TRANSACTION", "_OF_RESULT", "_OF_ROWS", "_OF_BATCHES", "_OF_MODULE"])
def test_hints_of_names_are_for_code_with_and_without_an_event_loop(table):
    for hint in getattr(names, table).values():
        awaiting, waiting = names._said(hint, blocking=False), names._said(hint, blocking=True)
        assert "{" not in awaiting + waiting
        assert not any(word in waiting for word in ("await", "async"))


LOCKED = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.executescript("CREATE TABLE t (a); BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


def interrupted(call):
    timer = threading.Timer(0.05, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
    timer.join()


def test_a_signal_ends_a_connect_that_waits_for_another_process(file):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", LOCKED, str(file)], **pipes) as other:
        assert other.stdout.readline() == b"held\n"
        interrupted(lambda: blocking.connect(file, busy_timeout=SECONDS))
        other.communicate()
    with blocking.connect(file) as db:
        assert db.query("SELECT a FROM t") == []


def test_a_signal_ends_a_write_that_runs_and_nothing_of_it_is_kept(file):
    with blocking.connect(file) as db:
        db.execute("CREATE TABLE t (a)")
        interrupted(lambda: db.execute(f"INSERT INTO t {ENDLESS}"))
        with db.transaction() as tx:
            tx.execute("INSERT INTO t VALUES (1)")
        assert db.query("SELECT a FROM t") == [(1,)]


def test_a_signal_ends_the_wait_for_a_close(file):
    db = blocking.connect(file, tuning={"close_wait": SECONDS})
    held = threading.Event()
    ends = threading.Event()

    def hold():
        with db.transaction():
            held.set()
            ends.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    interrupted(db.close)
    ends.set()
    thread.join()
