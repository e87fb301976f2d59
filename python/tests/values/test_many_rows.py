"""`executemany` of rows that are made as they come, in code without an event loop."""

from __future__ import annotations

import datetime
import threading

import pytest

import flatwater
from flatwater import blocking

MANY = 20 * blocking.PART + 7
INSERT = "INSERT INTO t VALUES (?)"
COUNT = "SELECT count(*) FROM t"


@pytest.fixture
def db(file):
    with blocking.connect(file) as db:
        db.execute("CREATE TABLE t (a UNIQUE)")
        yield db


class Row(list):
    """A row that knows how many of its kind there are."""

    alive = most = 0

    def __init__(self, value):
        super().__init__([value])
        Row.alive += 1
        Row.most = max(Row.most, Row.alive)

    def __del__(self):
        Row.alive -= 1


def test_few_rows_are_there_at_a_time(db):
    Row.alive = Row.most = 0
    assert db.executemany(INSERT, (Row(n) for n in range(MANY))) == MANY
    assert 0 < Row.most <= blocking.PART + 2 and Row.alive == 0
    assert db.query_values("SELECT a FROM t ORDER BY a") == list(range(MANY))


@pytest.mark.parametrize("count", [0, 1, blocking.PART - 1, blocking.PART, blocking.PART + 1, 3 * blocking.PART])
def test_each_row_is_run_once_in_a_transaction_and_out_of_one(db, count):
    assert db.executemany(INSERT, map(lambda n: (n,), range(count))) == count
    with db.transaction() as tx:
        assert tx.executemany(INSERT, ((n,) for n in range(-count, 0))) == count
    prepared = db.prepare("UPDATE t SET a = a + 0.5 WHERE a = ?")
    assert prepared.executemany(zip(range(-count, count))) == 2 * count
    assert db.query_values("SELECT a - 0.5 FROM t ORDER BY a") == list(range(-count, count))


def test_nobody_sees_a_part_of_it(db):
    seen = set()

    def rows():
        for n in range(MANY):
            if n % 100 == 0:
                seen.add(db.query_value(COUNT))
            yield (n,)

    db.executemany(INSERT, rows())
    assert seen == {0} and db.query_value(COUNT) == MANY


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ((1,), flatwater.IntegrityError, f"row {MANY - 3}, counted from 0: UNIQUE"),
        ((1, 2), flatwater.ProgrammingError, f"row {MANY - 3}, counted from 0: .* 2 value"),
        ((object(),), flatwater.ProgrammingError, rf"cannot be bound.*\(row {MANY - 3}\)"),
        (None, ZeroDivisionError, ""),
    ],
)
def test_a_row_that_fails_undoes_all_of_them_and_is_named(db, wrong, error, text):
    def rows():
        for n in range(MANY):
            yield wrong or (1 / 0,) if n == MANY - 3 else (n,)

    with pytest.raises(error) as caught:
        db.executemany(INSERT, rows())
    assert caught.match(text) if text else True
    assert db.query_value(COUNT) == 0
    with db.transaction() as tx:
        tx.execute(INSERT, (-1,))
        with pytest.raises(error):
            tx.executemany(INSERT, rows())
        tx.execute(INSERT, (-2,))
    assert db.query_values("SELECT a FROM t ORDER BY a") == [-2, -1]


def test_a_snapshot_refuses_it_and_a_list_is_one_call(db):
    logged = []
    with db.snapshot() as snapshot, pytest.raises(flatwater.ProgrammingError):
        snapshot.executemany(INSERT, ((n,) for n in range(MANY)))
    db.add_statement_listener(lambda query: logged.append(query.operation))
    db.executemany(INSERT, [(n,) for n in range(MANY)])
    db.executemany("DELETE FROM t WHERE a = ?", ((n,) for n in range(5)))
    assert logged == ["executemany"] * 2
    with pytest.raises(TypeError, match="not iterable"):
        db.executemany(INSERT, 5)
    with pytest.raises(flatwater.ProgrammingError, match="rows of parameters must not be a string"):
        db.executemany(INSERT, "ab")


def test_the_transaction_is_used_again_and_again_by_a_slow_generator(db, monkeypatch):
    """Which is idle for as long as a row takes, not a part."""
    logged = []
    monkeypatch.setattr(blocking, "TURN", 0)
    db.add_statement_listener(lambda query: logged.append((query.operation, query.changes)))
    assert db.executemany(INSERT, ((n,) for n in range(blocking.PART + 3))) == blocking.PART + 3
    many = [changes for operation, changes in logged if operation == "executemany"]
    assert many == [blocking.PART, 1, 1, 1]


def test_a_write_that_the_generator_makes_itself_is_refused(db):
    def rows():
        for n in range(MANY):
            if n == MANY - 1:
                db.execute(INSERT, (-1,))
            yield (n,)

    with pytest.raises(flatwater.ProgrammingError, match="inside its own transaction"):
        db.executemany(INSERT, rows())
    assert db.query_value(COUNT) == 0
    db.execute(INSERT, (-1,))


def test_other_writes_wait_until_the_generator_has_ended(db):
    order, began = [], threading.Event()

    def rows():
        for n in range(MANY):
            if n == MANY - 1:
                thread.start()
                began.wait()
            yield (n,)
        order.append("rows")

    def write():
        began.set()
        db.execute(INSERT, (-1,))
        order.append(db.query_value(COUNT))

    thread = threading.Thread(target=write)
    db.executemany(INSERT, rows())
    thread.join()
    assert order == ["rows", MANY + 1]


@pytest.mark.parametrize("timeout", [0.001, datetime.timedelta(milliseconds=1)])
def test_the_deadline_is_that_of_all_rows(db, timeout):
    def rows():
        while True:
            yield (None,)

    with pytest.raises(flatwater.Timeout):
        db.executemany(INSERT, rows(), timeout=timeout)
    assert db.query_value(COUNT) == 0
    with pytest.raises(ValueError, match="non-negative"):
        db.executemany(INSERT, rows(), timeout=-1)


def test_the_rows_of_all_runs_are_there_without_a_loop_too(db):
    returning = f"{INSERT} RETURNING a, rowid"
    assert db.query_many(returning, ((n,) for n in range(MANY)), into=tuple) == [(n, n + 1) for n in range(MANY)]
    with db.transaction() as tx:
        assert tx.query_many("DELETE FROM t WHERE a < ? RETURNING a", [(2,), (3,)]) == [(0,), (1,), (2,)]
    prepared = db.prepare(returning)
    assert [row["a"] for row in prepared.query_many([(0,), (1,)])] == [0, 1]
