"""Parameters: which types are bound, and as what the `sqlite3` module has them."""

from __future__ import annotations

import array
import collections
import datetime
import enum
import fractions
import sqlite3
import sys

import numpy
import pytest

import flatwater
from flatwater import blocking

UTC = datetime.timezone.utc


@pytest.fixture
def db():
    with blocking.connect(":memory:") as db:
        yield db


@pytest.fixture
def plain():
    plain = sqlite3.connect(":memory:")
    yield plain
    plain.close()


class Upper(str):
    pass


class Level(enum.IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -1,
        0.5,
        "Ada",
        b"\0\xff",
        Upper("Ada"),
        Level.HIGH,
        bytearray(b"ab"),
        memoryview(b"ab"),
        memoryview(array.array("d", [0.5, 2])),
        memoryview(b"abcd").cast("B", (2, 2)),
        array.array("i", [1, 2]),
        array.array("d"),
        numpy.array([0.5, 2]),
        numpy.array([[1, 2], [3, 4]]),
        numpy.float64(0.5),
        numpy.str_("Ada"),
        numpy.bytes_(b"ab"),
    ],
    ids=repr,
)
def test_a_value_is_stored_as_by_sqlite3(db, plain, value):
    sql = "SELECT typeof(?1), ?1"
    assert tuple(db.query_one(sql, (value,))) == plain.execute(sql, (value,)).fetchone()


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (numpy.int8(-3), ("integer", -3)),
        (numpy.int64(2**62), ("integer", 2**62)),
        (numpy.uint64(7), ("integer", 7)),
        (numpy.float32(0.1), ("real", 0.10000000149011612)),
        (numpy.float16(2.5), ("real", 2.5)),
        (numpy.longdouble(0.25), ("real", 0.25)),
        (numpy.bool_(True), ("integer", 1)),
        (numpy.bool_(False), ("integer", 0)),
    ],
    ids=repr,
)
def test_a_number_of_numpy_is_a_number(db, plain, value, stored):
    """Which `sqlite3` stores as the bytes that it has in memory, unless it derives from Python's float."""
    assert tuple(db.query_one("SELECT typeof(?1), ?1", (value,))) == stored
    assert plain.execute("SELECT typeof(?)", (value,)).fetchone() == ("blob",)


class Index:
    def __index__(self):
        return 5


def test_a_number_that_is_an_integer_by_its_own_word_is_one(db):
    assert db.query_value("SELECT ?", (Index(),)) == 5


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (numpy.uint64(2**64 - 1), OverflowError, "64 bits"),
        (numpy.float32("nan"), flatwater.ProgrammingError, "NaN"),
        (numpy.longdouble(1) / 3, flatwater.ProgrammingError, "numpy.longdouble is not a float"),
        (numpy.complex64(1), flatwater.ProgrammingError, "numpy.complex64 cannot be bound.*item"),
        (numpy.datetime64("2024-02-29"), flatwater.ProgrammingError, "numpy.datetime64 cannot be bound"),
        (numpy.datetime64("2024-02-29", "ns"), flatwater.ProgrammingError, "numpy.datetime64 cannot be bound"),
        (numpy.timedelta64(5, "D"), flatwater.ProgrammingError, "numpy.timedelta64 cannot be bound"),
        (fractions.Fraction(1, 2), flatwater.ProgrammingError, "fractions.Fraction cannot be bound"),
        (numpy.array([None, 1]), flatwater.ProgrammingError, "numpy.ndarray cannot be bound"),
        (1j, flatwater.ProgrammingError, "type complex cannot be bound"),
        (datetime.timedelta(1), flatwater.ProgrammingError, "type datetime.timedelta cannot be bound"),
    ],
    ids=repr,
)
def test_a_number_that_would_be_stored_as_something_else_is_refused(db, value, error, text):
    with pytest.raises(error, match=text):
        db.query_value("SELECT ?", (value,))


class Refusing:
    def __conform__(self, protocol):
        raise ValueError("of the program")


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (2**63, OverflowError),
        (float("nan"), flatwater.ProgrammingError),
        ("secret\ud83d", UnicodeEncodeError),
        (1j, flatwater.ProgrammingError),
        (Refusing(), ValueError),
    ],
    ids=["int", "nan", "surrogate", "complex", "adapter"],
)
def test_a_refused_value_is_named_by_its_parameter_and_the_sql(db, value, error):
    def said(caught):
        return " ".join([str(caught), str(getattr(caught, "sql", "")), *getattr(caught, "__notes__", [])])

    for call, place, sql in [
        (lambda: db.query("SELECT ?, ?", (1, value)), "2", "SELECT ?, ?"),
        (lambda: db.query("SELECT ?, ?", [1, value]), "2", "SELECT ?, ?"),
        (lambda: db.query("SELECT :a, :b", {"a": 1, "b": value}), '"b"', "SELECT :a, :b"),
        (lambda: db.executemany("UPDATE t SET a = ?", [(1,), (value,)]), "1", "UPDATE t SET a = ?"),
        (lambda: db.batch([("SELECT ?, 2", (1,)), ("SELECT ?", (value,))]), "1", "SELECT ?"),
        (lambda: db.query(flatwater.Sql("SELECT ").bind(1).push(", ").bind(value)), "2", "SELECT ?, ?"),
    ]:
        with pytest.raises(error) as caught:
            call()
        if error is ValueError and sys.version_info < (3, 11):
            continue
        assert f"parameter {place}" in said(caught.value) and sql in said(caught.value)
        assert "secret" not in str(caught.value)


class NaT(datetime.datetime):
    """As that of pandas: a datetime that is none."""

    def isoformat(self, sep="T", timespec="auto"):
        return "NaT"


class Nanoseconds(datetime.datetime):
    """As a timestamp of pandas."""

    def isoformat(self, sep="T", timespec="nanoseconds"):
        return super().isoformat(sep, "microseconds") + ("001" if timespec == "nanoseconds" else "")


class Own(datetime.datetime):
    pass


class Day(datetime.date):
    def isoformat(self):
        return self.strftime("%d.%m.%Y")


class Hour(datetime.time):
    def isoformat(self, timespec="auto"):
        return "noon"


@pytest.mark.parametrize("datetimes", ["utc", "sqlite3"])
@pytest.mark.parametrize(
    "value",
    [NaT(1, 1, 1), NaT(2, 2, 2, tzinfo=UTC), Day(2024, 2, 29), Hour(12)],
    ids=lambda value: type(value).__name__,
)
def test_a_datetime_whose_text_says_something_else_is_refused(value, datetimes):
    with blocking.connect(":memory:", datetimes=datetimes) as db:
        with pytest.raises(
            flatwater.ProgrammingError, match="test_parameters.* does not have the form of a .*bind None"
        ) as caught:
            db.query_value("SELECT ?", (value,))
    assert "2024" not in str(caught.value)


def test_a_datetime_of_a_derived_class_has_the_form(db):
    assert db.query_value("SELECT ?", (Nanoseconds(2024, 2, 29),)) == "2024-02-29 00:00:00"
    summer = datetime.timezone(datetime.timedelta(hours=2))
    assert db.query_value("SELECT ?", (Own(2024, 2, 29, 23, 5),)) == "2024-02-29 23:05:00"
    assert db.query_value("SELECT ?", (Own(2024, 3, 1, 1, 5, tzinfo=summer),)) == "2024-02-29 23:05:00"


class Named(dict):
    def __missing__(self, name):
        return f"no {name}"


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("SELECT :a, @b, $c", {"a": 1, "b": "x", "c": None}),
        ("SELECT :a, ':b', :a", Named(a=1)),
        ("SELECT :a, :b", Named(a=1)),
        ("SELECT :a, :b", Named()),
        ("SELECT :a", collections.defaultdict(int)),
        ("SELECT :a, :b", collections.OrderedDict(a=1, b=2)),
        ("SELECT ?, ?", collections.deque([1, 2])),
        ("SELECT ?, ?", numpy.array([0.5, 2])),
        ("SELECT ?, ?", array.array("i", [1, 2])),
        ("SELECT ?, ?", range(2)),
    ],
    ids=repr,
)
def test_parameters_are_found_as_by_sqlite3(db, plain, sql, params):
    assert tuple(db.query_one(sql, params)) == plain.execute(sql, params).fetchone()
    assert tuple(db.batch([(sql, params)])[0].rows[0]) == plain.execute(sql, params).fetchone()


def test_each_row_of_many_is_asked_for_the_names_of_the_statement(db):
    db.execute("CREATE TABLE t (a, b)")
    assert db.executemany("INSERT INTO t VALUES (:a, :b)", [Named(a=1), Named(), {"a": 2, "b": 3}]) == 3
    assert db.query("SELECT * FROM t") == [(1, "no b"), ("no a", "no b"), (2, 3)]


@pytest.mark.parametrize("params", [{"a": 1}, {}], ids=repr)
def test_a_mapping_that_lacks_a_name_is_told_which(db, params):
    lacks = "b" if params else "a"
    with pytest.raises(flatwater.ProgrammingError, match=f"no value was given for the parameter :?{lacks}"):
        db.query("SELECT :a, :b", params)
    db.execute("CREATE TABLE t (a)")
    with pytest.raises(flatwater.ProgrammingError, match=f"no value was given for the parameter :?{lacks}"):
        db.executemany("UPDATE t SET a = :a WHERE a = :b", [{"a": 1, "b": 2}, params])


def test_the_name_of_a_type_has_its_module(db):
    kind = f"{Index.__module__}.Index"
    with pytest.raises(flatwater.ProgrammingError, match=f"mapping, not {kind}"):
        db.query("SELECT ?", Index())
    flatwater.register_adapter(Own, lambda value: Index())
    try:
        with pytest.raises(TypeError, match=f"an adapter returned {kind}"):
            db.query("SELECT ?", (Own(2024, 1, 1),))
    finally:
        flatwater._given.values._adapters.pop(Own)
    with pytest.raises(TypeError, match="SQL must be a str, a t-string or an Sql, not numpy.bool"):
        db.query(numpy.bool_(True))
    with pytest.raises(TypeError, match="cannot be numpy.ndarray"):
        blocking.connect(":memory:", readers=numpy.array([1]))


def test_paths_are_bytes_too(file, tmp_path):
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_t.sql").write_text("CREATE TABLE t (a)")
    other = tmp_path / "other.db"
    with blocking.connect(bytes(file), tuning={"attach": {"other": bytes(other)}}) as db:
        assert db.migrate(bytes(folder)) == ["0001_t"]
        assert db.backup(bytes(tmp_path / "copy.db")) is None
        assert "test.db'" in repr(db)
    assert other.exists() and (tmp_path / "copy.db").exists()
    with pytest.raises(TypeError, match="PathLike"):
        blocking.connect(5)
