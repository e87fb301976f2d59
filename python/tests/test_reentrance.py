"""Code of the program that a call of `flatwater.dbapi` runs, and that uses the connection."""

from __future__ import annotations

import gc
import signal
import sqlite3
import threading

import pytest

import flatwater
from flatwater import blocking, dbapi

COUNT = "SELECT count(*) FROM b"
RECURSIVE = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
# More than a result holds in memory.
ROWS = 100_000


@pytest.fixture(params=["sqlite3", "pooled", "own"])
def connection(request, file):
    module = sqlite3 if request.param == "sqlite3" else dbapi
    connection = module.connect(file)
    if request.param == "own":
        connection.execute("CREATE TEMP TABLE q (x)")
    connection.executescript("CREATE TABLE a (x); CREATE TABLE b (x)")
    yield connection
    connection.close()


class Adapted:
    def __init__(self, code):
        self.code = code

    def __conform__(self, _):
        return self.code()


def test_rows_come_from_a_cursor_of_the_connection(connection):
    connection.execute(RECURSIVE + "INSERT INTO a SELECT i FROM n", (ROWS,))
    assert connection.executemany("INSERT INTO b VALUES (?)", connection.execute("SELECT x FROM a")).rowcount == ROWS
    assert connection.execute(COUNT).fetchone() == (ROWS,)


def test_a_generator_of_rows_reads_and_writes(connection):
    def rows():
        for n in range(3):
            connection.execute("INSERT INTO a VALUES (?)", (n,))
            yield connection.execute("SELECT x FROM a WHERE x = ?", (n,)).fetchone()

    assert connection.executemany("INSERT INTO b VALUES (?)", rows()).rowcount == 3
    assert connection.in_transaction
    assert connection.execute("SELECT x FROM b").fetchall() == [(0,), (1,), (2,)]


def test_a_generator_of_rows_commits(connection):
    def rows():
        yield (1,)
        connection.commit()
        yield (2,)

    assert connection.executemany("INSERT INTO b VALUES (?)", rows()).rowcount == 2
    connection.commit()
    assert connection.execute(COUNT).fetchone() == (2,)


def test_adapters_and_factories_use_the_connection(connection):
    connection.execute("INSERT INTO b VALUES (?)", (Adapted(lambda: connection.execute("SELECT 7").fetchone()[0]),))
    connection.executemany("INSERT INTO b VALUES (?)", [(Adapted(lambda: connection.execute(COUNT).fetchone()[0]),)])
    connection.row_factory = lambda _, row: (connection.cursor().execute("SELECT 1"), row)[1]
    connection.text_factory = lambda text: (connection.execute("INSERT INTO a VALUES (1)"), text.decode())[1]
    assert connection.execute("SELECT x, 'x' FROM b").fetchall() == [(7, "x"), (1, "x")]


def test_a_cursor_is_not_used_by_what_makes_its_rows(connection):
    cursor = connection.execute("SELECT 1 UNION SELECT 2")
    with pytest.raises(sqlite3.ProgrammingError, match="Recursive use of cursors"):
        cursor.executemany("INSERT INTO b VALUES (?)", cursor)
    with pytest.raises(sqlite3.ProgrammingError, match="Recursive use of cursors"):
        cursor.executemany("INSERT INTO b VALUES (?)", ((cursor.execute("SELECT 1").fetchone()[0],) for _ in range(3)))
    assert connection.execute(COUNT).fetchone() == (0,)


def test_a_cursor_whose_rows_failed_is_used_again(connection):
    cursor = connection.cursor()
    with pytest.raises(ZeroDivisionError):
        cursor.executemany("INSERT INTO b VALUES (?)", ((1 // (1 - n),) for n in range(3)))
    assert cursor.execute(COUNT).fetchone() == (1,)


def test_a_connection_is_closed_within_a_half_read_result(connection):
    connection.execute(RECURSIVE + "INSERT INTO a SELECT zeroblob(100) FROM n", (ROWS,))
    connection.commit()
    rows = connection.execute("SELECT x FROM a")
    rows.fetchone()
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError):
        rows.fetchone()


def refused(call):
    """Returns true if a call is refused, which is said and does not take long."""
    with pytest.raises(flatwater.ProgrammingError, match="would wait for itself") as raised:
        call()
    assert raised.value.kind == "misuse" and raised.value.hint
    return True


@pytest.fixture
def mine(file):
    connection = dbapi.connect(file)
    connection.executescript("CREATE TABLE b (x)")
    yield connection
    connection.close()


def test_a_function_that_uses_its_connection_is_refused(mine):
    found = []
    calls = [lambda: mine.execute("SELECT 1"), mine.commit, mine.rollback, mine.close, lambda: mine.executescript("")]

    def code(*_):
        found.extend(refused(call) for call in calls)
        return 0

    class Sums:
        step = finalize = code

    mine.create_function("f", 1, code)
    mine.create_function("g", 1, code, deterministic=True)
    mine.create_aggregate("s", 1, Sums)
    mine.create_collation("c", code)
    for expression in ("f(1)", "g(1)", "s(1)", "'a' = 'b' COLLATE c"):
        found.clear()
        mine.execute(f"SELECT {expression}").fetchall()
        assert found and all(found)


def test_a_hook_that_uses_its_connection_is_refused(mine):
    found = []

    def hook(*_):
        found.append(refused(mine.commit))
        return 0

    for give in (mine.set_authorizer, mine.set_trace_callback, lambda code: mine.set_progress_handler(code, 1)):
        found.clear()
        give(hook)
        mine.execute(RECURSIVE + "SELECT max(i) FROM n", (50,)).fetchall()
        give(None) if give is not mine.set_progress_handler else None
        assert found and all(found)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="there is no such signal")
def test_the_handler_of_a_signal_that_waits_for_what_it_interrupts_is_refused(mine):
    found, runs, handled = [], threading.Event(), threading.Event()
    mine.create_function("held", 0, lambda: (runs.set(), handled.wait(30))[1])
    before = signal.signal(signal.SIGALRM, lambda *_: (found.append(refused(mine.commit)), handled.set()))
    sender = threading.Thread(
        target=lambda: (runs.wait(), signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM))
    )
    sender.start()
    try:
        assert mine.execute("SELECT held()").fetchall() == [(1,)]
    finally:
        sender.join()
        signal.signal(signal.SIGALRM, before)
    assert found == [True]
    assert mine.execute("SELECT 1").fetchall() == [(1,)]


def test_a_destructor_uses_the_connection_at_any_time(mine):
    answers = []

    class Last:
        def __init__(self):
            self.itself = self

        def __del__(self):
            try:
                answers.append(mine.execute(COUNT).fetchone())
            except flatwater.ProgrammingError as error:
                answers.append(str(error))

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for n in range(50):
            Last()
            mine.execute("INSERT INTO b VALUES (?)", (n,))
            mine.commit()
    finally:
        gc.set_threshold(*threshold)
    assert answers
    assert mine.execute(COUNT).fetchone() == (50,)


def test_a_thread_that_waits_for_another_one_is_not_refused(mine):
    mine.create_function("held", 0, lambda: (entered.set(), go_on.wait(30))[1])
    entered, go_on, done = threading.Event(), threading.Event(), []
    holder = threading.Thread(target=lambda: mine.execute("SELECT held()").fetchall())
    waiter = threading.Thread(target=lambda: done.append(mine.execute(COUNT).fetchone()))
    holder.start()
    entered.wait()
    waiter.start()
    go_on.set()
    holder.join()
    waiter.join()
    assert done == [(0,)]


@pytest.mark.parametrize("nested", [False, True])
def test_a_database_is_not_closed_inside_of_its_own_block(file, nested):
    with blocking.connect(file) as db, blocking.connect(file) as other:
        db.execute("CREATE TABLE t (a)")
        with db.transaction() as tx:
            tx.execute("INSERT INTO t VALUES (1)")
            with tx.transaction() if nested else tx.stream("SELECT 1"):
                with pytest.raises(flatwater.ProgrammingError, match="inside of a transaction's block") as raised:
                    db.close()
                assert raised.value.kind == "misuse" and raised.value.hint
            # That of another handle of the file waits for nothing.
            other.close()
        assert db.query_value("SELECT count(*) FROM t") == 1
