"""SQL functions in Python beside those of the `sqlite3` module, in threads, after a fork, and at the ends of databases
and programs."""

from __future__ import annotations

import gc
import os
import random
import sqlite3
import sys
import threading
import time
import weakref

import pytest
from test_process import run

import flatwater
from flatwater import blocking


class Joined:
    def __init__(self):
        self.parts = []

    def step(self, part):
        if part == "fails":
            raise ValueError(part)
        self.parts.append(str(part))

    def inverse(self, part):
        self.parts.remove(str(part))

    def value(self):
        return "-".join(self.parts)

    finalize = value


def weight(text):
    if text == "fails":
        raise ValueError(text)
    return None if text is None else sum(str(text).encode())


def by_length(one, other):
    return (len(one) - len(other)) or (one > other) - (one < other)


def register(connection):
    """On a connection of the `sqlite3` module, and on a database."""
    connection.create_function("weight", 1, weight, deterministic=True)
    connection.create_function("pair", -1, lambda *values: repr(values))
    connection.create_aggregate("joined", 1, Joined)
    if hasattr(connection, "create_window_function"):
        connection.create_window_function("joined_over", 1, Joined)
    connection.create_collation("by_length", by_length)


SCHEMA = """
    CREATE TABLE t (
        id INTEGER PRIMARY KEY, a TEXT COLLATE by_length CHECK (weight(a) IS NOT 97), b,
        w AS (weight(a)) STORED, v AS (weight(b)) VIRTUAL
    );
    CREATE INDEX by_weight ON t (weight(a));
    CREATE INDEX by_a ON t (a, weight(b)) WHERE weight(b) > 100;
    CREATE TABLE log (what, w);
    CREATE TRIGGER inserted AFTER INSERT ON t BEGIN INSERT INTO log VALUES (pair(new.id, new.b), weight(new.a)); END;
    CREATE TRIGGER updated AFTER UPDATE ON t WHEN weight(old.a) > weight(new.a)
        BEGIN UPDATE log SET w = weight(new.b) WHERE what = pair(new.id, old.b); END;
    CREATE VIEW heavy AS SELECT a, joined(b) AS bs FROM t GROUP BY weight(a) % 7;
"""


def statement(chance):
    word = repr(chance.choice(["a", "b", "ab", "ba", "abc", "fails", "\u00e4", ""]) * chance.choice([1, 1, 1, 3]))
    number = chance.randrange(9)
    return chance.choice(
        [
            f"INSERT INTO t (a, b) VALUES ({word}, {number})",
            f"INSERT INTO t (a, b) VALUES ('abc', {word})",
            f"INSERT OR REPLACE INTO t (id, a, b) VALUES ({number}, {word}, {word})",
            f"UPDATE t SET a = {word} WHERE id % 9 = {number}",
            f"UPDATE OR IGNORE t SET b = {word} WHERE weight(a) > {number * 30}",
            f"DELETE FROM t WHERE a = {word} COLLATE by_length AND id % 3 = {number % 3}",
            f"SELECT a, b, w, v FROM t WHERE weight(a) >= {number * 40} ORDER BY a, id",
            f"SELECT * FROM heavy WHERE a > {word} ORDER BY 1, 2",
            f"SELECT joined(b), joined(a) FROM t WHERE a < {word}",
            "SELECT joined(a) FROM t WHERE 0",
            f"SELECT pair({word}, {number}, NULL, 1.5, x'00'), pair()",
            "SELECT what, w FROM log ORDER BY rowid",
        ]
        + [f"SELECT joined_over(a) OVER (ORDER BY id ROWS {number % 3} PRECEDING) FROM t ORDER BY id"]
        * (sys.version_info >= (3, 11))
    )


def outcome(run_it):
    """What a statement returns, or that a function failed, or the name of another error."""
    try:
        return [tuple(row) for row in run_it()]
    except sqlite3.Error as error:
        # The `sqlite3` module takes a comparison that fails for an equal one; none does here.
        if "raise" in str(error):
            return "failed"
        known = next(of for of in type(error).__mro__ if of.__module__ == "sqlite3")
        return known.__name__.replace("Database", "Operational")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("memory", [False, True])
def test_random_statements_do_what_they_do_in_sqlite3(tmp_path, memory, seed):
    chance = random.Random(seed)
    plain = sqlite3.connect(":memory:", isolation_level=None)
    register(plain)
    plain.executescript(SCHEMA)
    with blocking.connect(":memory:" if memory else tmp_path / "a.db", functions=register) as db:
        db.executescript(SCHEMA)

        def run_here(on, sql):
            return on.query(sql) if sql.startswith("SELECT") else on.execute(sql) and ()

        for _ in range(60):
            sql = statement(chance)
            assert outcome(lambda: run_here(db, sql)) == outcome(lambda: plain.execute(sql).fetchall()), sql  # noqa: B023
        plain.execute("BEGIN")
        with db.transaction() as tx:
            for _ in range(60):
                sql = statement(chance)
                assert outcome(lambda: run_here(tx, sql)) == outcome(lambda: plain.execute(sql).fetchall()), sql  # noqa: B023
        plain.execute("COMMIT")
        for sql in ["SELECT * FROM t ORDER BY id", "SELECT * FROM log ORDER BY rowid", "PRAGMA integrity_check"]:
            assert [tuple(row) for row in db.query(sql)] == plain.execute(sql).fetchall()
    plain.close()


def test_threads_call_functions_and_create_them_at_once(file):
    with blocking.connect(file, readers=4) as db:
        db.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)")
        failures = []

        def work(number):
            try:
                for turn in range(30):
                    db.create_function(f"own{number}", 1, lambda value, turn=turn: value + turn)
                    assert db.query_values(f"SELECT own{number}(a) FROM t") == [1 + turn, 2 + turn, 3 + turn]
                    db.execute(f"UPDATE t SET a = own{number}(a) - {turn}")
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert db.query_values("SELECT a FROM t") == [1, 2, 3]


def gone(reference):
    end = time.monotonic() + 60
    while reference() is not None and time.monotonic() < end:
        gc.collect()
        # Objects that a thread of the database let go of are freed by the next call.
        flatwater._native.options()
        time.sleep(0.001)
    return reference() is None


class Code:
    """A function that refers to its database."""

    def __init__(self, db):
        self.db = db

    def __call__(self, *values):
        return len(values)


@pytest.mark.parametrize("place", ["file", "memory"])
def test_a_function_is_freed_when_it_is_replaced_removed_or_its_database_closed(tmp_path, place):
    path = ":memory:" if place == "memory" else tmp_path / "a.db"
    db = blocking.connect(path)
    references = []
    for end in ["replaced", "removed", "closed"]:
        code = Code(db)
        references.append(weakref.ref(code))
        db.create_function("f", 1, code)
        assert db.query_value("SELECT f(1)") == 1
        del code
        if end == "replaced":
            db.create_function("f", 1, len)
        elif end == "removed":
            db.create_function("f", 1, None)
        else:
            db.close()
        if end != "closed":
            # Each connection lets go of it at its next use.
            for _ in range(20):
                db.query_value("SELECT 1 WHERE 1 = 1")
                db.execute("CREATE TABLE IF NOT EXISTS t (a)")
    assert all(gone(reference) for reference in references[2:])
    assert all(gone(reference) for reference in references)


def test_a_thread_of_the_database_keeps_what_is_local_to_it_until_it_ends(file):
    class Held:
        count = 0

    local, references = threading.local(), []

    def counts():
        if not hasattr(local, "held"):
            local.held = Held()
            references.append(weakref.ref(local.held))
        local.held.count += 1
        return local.held.count

    with blocking.connect(file, readers=1) as db:
        db.create_function("counts", 0, counts)
        assert db.query_values("SELECT counts() UNION ALL SELECT counts() UNION ALL SELECT counts()") == [1, 2, 3]
        [reference] = references
        assert reference() is not None
    assert gone(reference), "the thread ends with the database"


def test_a_deterministic_function_runs_on_the_thread_that_waits_once_its_reads_were_short(file):
    threads, local = [], threading.local()
    local.name = "waits"

    def here(value):
        threads.append((threading.get_ident(), getattr(local, "name", None)))
        return value

    with blocking.connect(file) as db:
        db.create_function("here", 1, here, deterministic=True)
        while (threading.get_ident(), "waits") not in threads:
            assert db.query_value("SELECT here(?)", (7,)) == 7
        assert threads[0][1] is None


def test_what_failed_and_what_aggregates_had_is_freed(file):
    class Held:
        pass

    references = []

    class Fails:
        def __init__(self):
            self.held = Held()
            references.append(weakref.ref(self.held))

        def step(self, value):
            if value == 3:
                raise ValueError(self.held)

        def finalize(self):
            return 1

    with blocking.connect(file) as db:
        db.create_aggregate("fails", 1, Fails)
        with pytest.raises(flatwater.OperationalError):
            db.query("SELECT fails(a) FROM (SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT 3)")
        assert db.query_value("SELECT fails(1)") == 1
        assert len(references) == 2
        assert all(gone(reference) for reference in references)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_no_function_is_reached_from_a_forked_child(file):
    program = """
        import os, sys, flatwater
        from flatwater import blocking
        db = blocking.connect(sys.argv[1])
        calls = []
        db.create_function("f", 0, lambda: calls.append(os.getpid()) or len(calls))
        assert db.query_value("SELECT f()") == 1
        child = os.fork()
        if child == 0:
            refused = 0
            for attempt in [
                lambda: db.query_value("SELECT f()"), lambda: db.create_function("g", 0, len),
                lambda: db.create_function("f", 0, None),
            ]:
                try:
                    attempt()
                except flatwater.ProgrammingError as error:
                    refused += "fork" in str(error)
            os._exit(0 if refused == 3 and calls == [os.getppid()] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert db.query_value("SELECT f()") == 2
        db.close()
        print("done")
    """
    assert run(program, file)[:2] == (0, "done")


@pytest.mark.parametrize("ending", ["pass", "sys.exit(0)", "raise SystemExit(0)", "db.close()", "del db"])
def test_a_program_ends_while_functions_run(file, ending):
    program = f"""
        import atexit, sys, threading, time, warnings, flatwater
        from flatwater import blocking
        warnings.simplefilter("ignore")
        def slow(value):
            time.sleep(0.0001)
            return value
        class Sum:
            def __init__(self): self.sum = 0
            def step(self, value): self.sum += slow(value)
            def finalize(self): return self.sum
        db = blocking.connect(sys.argv[1], tuning={{"close_wait": 0.05}})
        db.execute("CREATE TABLE t (a)")
        ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT slow(n + 1) FROM c) SELECT total_of(n) FROM c"
        db.create_function("slow", 1, slow)
        db.create_aggregate("total_of", 1, Sum)
        def read(db):
            try:
                db.query(ENDLESS)
            except flatwater.Error:
                pass
        def write(db):
            try:
                while True:
                    db.execute("INSERT INTO t VALUES (slow(1))")
            except flatwater.Error:
                pass
        for work in [read, read, write, write]:
            threading.Thread(target=work, args=(db,), daemon=True).start()
        time.sleep(0.05)
        {ending}
    """
    code, _, errors = run(program, file)
    assert code == 0, errors
    assert "panic" not in errors and "Fatal" not in errors, errors


@pytest.mark.parametrize("waits", ["while True: pass", "threading.Event().wait()"])
def test_a_program_ends_though_a_function_does_not_return(file, waits):
    program = f"""
        import sys, threading, flatwater
        from flatwater import blocking
        db = blocking.connect(sys.argv[1], tuning={{"close_wait": 0.05}})
        inside = threading.Event()
        def forever():
            inside.set()
            {waits}
        db.create_function("forever", 0, forever)
        threading.Thread(target=db.query, args=("SELECT forever()",), daemon=True).start()
        inside.wait()
        print("the end")
    """
    code, output, errors = run(program, file)
    assert (code, output) == (0, "the end"), errors
    assert "panic" not in errors and "Fatal" not in errors, errors
