"""Tables of Arrow as rows of parameters: stored as the same rows of tuples are, or refused by their columns."""

from __future__ import annotations

import datetime
import decimal
import random

import pandas
import polars
import pyarrow
import pytest

import flatwater
from flatwater import blocking

UTC = datetime.timezone.utc
# Each type with a value of it.
KINDS = {
    pyarrow.null(): lambda r: None,
    pyarrow.bool_(): lambda r: r.random() < 0.5,
    pyarrow.int8(): lambda r: r.randrange(-(2**7), 2**7),
    pyarrow.uint8(): lambda r: r.randrange(2**8),
    pyarrow.int16(): lambda r: r.randrange(-(2**15), 2**15),
    pyarrow.uint16(): lambda r: r.randrange(2**16),
    pyarrow.int32(): lambda r: r.randrange(-(2**31), 2**31),
    pyarrow.uint32(): lambda r: r.randrange(2**32),
    pyarrow.int64(): lambda r: r.randrange(-(2**63), 2**63),
    pyarrow.uint64(): lambda r: r.randrange(2**63),
    pyarrow.float32(): lambda r: r.randrange(-1000, 1000) / 8,
    pyarrow.float64(): lambda r: r.uniform(-1e300, 1e300),
    pyarrow.string(): lambda r: text(r),
    pyarrow.large_string(): lambda r: text(r),
    pyarrow.string_view(): lambda r: text(r),
    pyarrow.binary(): lambda r: text(r).encode(),
    pyarrow.large_binary(): lambda r: text(r).encode(),
    pyarrow.binary_view(): lambda r: text(r).encode(),
    pyarrow.binary(3): lambda r: r.randbytes(3),
    pyarrow.date32(): lambda r: moment(r).date(),
    pyarrow.date64(): lambda r: moment(r).date(),
    pyarrow.timestamp("s"): lambda r: moment(r).replace(microsecond=0),
    pyarrow.timestamp("ms"): lambda r: moment(r).replace(microsecond=r.randrange(1000) * 1000),
    pyarrow.timestamp("us"): lambda r: moment(r),
    pyarrow.timestamp("us", "Europe/Berlin"): lambda r: moment(r).replace(tzinfo=UTC),
    pyarrow.time32("s"): lambda r: moment(r).time().replace(microsecond=0),
    pyarrow.time32("ms"): lambda r: moment(r).time().replace(microsecond=r.randrange(1000) * 1000),
    pyarrow.time64("us"): lambda r: moment(r).time(),
    pyarrow.time64("ns"): lambda r: moment(r).time(),
    pyarrow.dictionary(pyarrow.int8(), pyarrow.string()): lambda r: r.choice("abc"),
    pyarrow.dictionary(pyarrow.uint32(), pyarrow.int64()): lambda r: r.randrange(5),
}


def text(r: random.Random) -> str:
    return "".join(r.choice("aä\u20ac\U0001f600\0") for _ in range(r.choice((0, 3, 12, 13, 40))))


def moment(r: random.Random) -> datetime.datetime:
    first = datetime.datetime(1, 1, 1)
    seconds = r.randrange(int((datetime.datetime(9999, 12, 31) - first).total_seconds()))
    return first + datetime.timedelta(seconds=seconds, microseconds=r.choice((0, r.randrange(10**6))))


def stored(db: blocking.Database, columns: int, rows: object) -> list[tuple[object, ...]]:
    names = ", ".join(f"c{number}" for number in range(columns))
    db.executescript(f"DROP TABLE IF EXISTS t; CREATE TABLE t ({names})")
    db.executemany(f"INSERT INTO t VALUES ({', '.join('?' * columns)})", rows)
    return db.query("SELECT * FROM t ORDER BY rowid", into=tuple)


@pytest.fixture
def db():
    with blocking.connect(":memory:") as db:
        yield db


@pytest.mark.parametrize("seed", range(12))
def test_a_random_table_is_stored_as_the_same_rows(db, seed):
    r = random.Random(seed)
    kinds = r.sample(list(KINDS), r.randrange(1, 9))
    count = r.choice((0, 1, 7, 70, 700))
    rows = [tuple(None if r.random() < 0.2 else KINDS[kind](r) for kind in kinds) for _ in range(count)]
    columns = [pyarrow.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    table = pyarrow.table(columns, names=[f"c{at}" for at in range(len(kinds))])
    expected = stored(db, len(kinds), rows)
    assert len(expected) == count
    chunks = [table.slice(at, 50) for at in range(0, count, 50)]
    parts = pyarrow.concat_tables(chunks) if chunks else table
    # Its batches begin within longer buffers.
    for given in (table, parts, parts.to_reader(), table.combine_chunks()):
        assert stored(db, len(kinds), given) == expected, kinds
    for batch in parts.to_batches()[:3]:
        assert stored(db, len(kinds), batch) == stored(db, len(kinds), list(zip(*batch.to_pydict().values())))


def test_frames_are_taken(db):
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None], "c": pandas.to_datetime(["2026-11-30", None])})
    assert stored(db, 3, frame) == [(1, "x", "2026-11-30 00:00:00"), (2, None, None)]
    day = datetime.date(2026, 11, 30)
    frame = polars.DataFrame({"a": [1.5, None], "b": ["long enough for a view", "short"], "c": [day, day]})
    assert stored(db, 3, frame) == [(1.5, "long enough for a view", "2026-11-30"), (None, "short", "2026-11-30")]
    assert stored(db, 3, db.query_columns("SELECT 1, 'x', x'00'")) == [(1, "x", b"\0")]


def test_columns_are_the_parameters_of_their_names(db):
    table = pyarrow.table({"b": [1, 2], "a": ["x", "y"]})
    db.execute("CREATE TABLE t (a, b, c)")
    assert db.executemany("INSERT INTO t VALUES (:a, @b, :a)", table) == 2
    assert db.query("SELECT * FROM t", into=tuple) == [("x", 1, "x"), ("y", 2, "y")]
    assert db.query_many("UPDATE t SET c = $a WHERE b = :b RETURNING c", table, into=tuple) == [("x",), ("y",)]
    for sql, said in [
        ("INSERT INTO t (a) VALUES (:a)", 'no parameter for the column "b"'),
        ("INSERT INTO t (a) VALUES (:a || :b || :gone)", 'no column for the parameter "gone"; it has b, a'),
    ]:
        with pytest.raises(flatwater.ProgrammingError, match=said) as refused:
            db.executemany(sql, table)
        assert refused.value.code == "parameter_name"
    with pytest.raises(flatwater.ProgrammingError) as refused:
        db.executemany("INSERT INTO t (a) VALUES (?)", table)
    assert refused.value.code == "parameter_count"
    assert db.query_value("SELECT count(*) FROM t") == 2


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pyarrow.array([[1]]), 'the column "bad" of the table is a list'),
        (pyarrow.array([{"a": 1}]), "a struct"),
        (pyarrow.array([datetime.timedelta(1)]), "a duration"),
        (pyarrow.array([[1]], pyarrow.list_(pyarrow.int8(), 1)), "a list"),
        (pyarrow.array([2**63], pyarrow.uint64()), r'column "bad": an integer beyond 64 bits .*\(row 0\)'),
        (pyarrow.array([decimal.Decimal("1.234567890123456")]), r"15 digits"),
        (pyarrow.array([10**18], pyarrow.timestamp("s")), "out of the range"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_its_column(db, column, said):
    db.execute("CREATE TABLE t (a, b)")
    for rows in (
        pyarrow.table({"good": pyarrow.nulls(1), "bad": column}),
        pyarrow.record_batch({"g": [1], "bad": column}),
    ):
        with pytest.raises(flatwater.ProgrammingError, match=said) as refused:
            db.executemany("INSERT INTO t VALUES (?, ?)", rows)
        assert refused.value.code == "invalid_value"
    assert db.query_value("SELECT count(*) FROM t") == 0


def test_a_column_alone_is_no_table(db):
    with pytest.raises(flatwater.ProgrammingError, match="a column of Arrow, not a table"):
        db.executemany("SELECT ?", pyarrow.array([1]))
    with pytest.raises(flatwater.ProgrammingError, match="a column of Arrow, not a table"):
        db.executemany("SELECT ?", pyarrow.chunked_array([[1]]))


def test_decimals_are_texts_with_the_zeros_of_their_scale(db):
    values = ["0", "-0.05", "12.30", "-1234567890123.45", "99999999999999.00"]
    numbers = [decimal.Decimal(value) for value in values]
    expected = [("0.00",), ("-0.05",), ("12.30",), ("-1234567890123.45",), ("99999999999999.00",)]
    for kind in (pyarrow.decimal128(38, 2), pyarrow.decimal256(76, 2), pyarrow.decimal64(18, 2)):
        assert stored(db, 1, pyarrow.table([pyarrow.array(numbers, kind)], ["a"])) == expected
    small = pyarrow.array([decimal.Decimal("1.5"), None], pyarrow.decimal32(9, 1))
    assert stored(db, 1, pyarrow.table([small], ["a"])) == [("1.5",), (None,)]


def test_floats_of_16_bits_are_floats(db):
    numpy = pytest.importorskip("numpy")
    values = numpy.array([0.0, -1.5, 65504.0, 6e-8, numpy.inf], dtype=numpy.float16)
    assert stored(db, 1, pyarrow.table([pyarrow.array(values)], ["a"])) == [(float(value),) for value in values]


def test_moments_with_a_zone_have_the_form_of_the_database(file):
    at = pyarrow.array([datetime.datetime(2026, 11, 30, 12, tzinfo=UTC)])
    with blocking.connect(file) as db:
        assert stored(db, 1, pyarrow.table([at], ["a"])) == [("2026-11-30 12:00:00",)]
    with blocking.connect(":memory:", datetimes="sqlite3") as db:
        assert stored(db, 1, pyarrow.table([at], ["a"])) == [("2026-11-30 12:00:00+00:00",)]
        ahead = at.cast(pyarrow.timestamp("us", "+05:30"))
        assert stored(db, 1, pyarrow.table([ahead], ["a"])) == [("2026-11-30 17:30:00+05:30",)]
        with pytest.raises(flatwater.ProgrammingError, match="convert it to UTC"):
            stored(db, 1, pyarrow.table([at.cast(pyarrow.timestamp("us", "Europe/Berlin"))], ["a"]))


def test_what_a_reader_raises_is_raised_and_nothing_is_stored(db):
    schema = pyarrow.schema([("a", pyarrow.int64())])

    def batches():
        yield pyarrow.record_batch({"a": [1]})
        raise ValueError("it is over")

    db.execute("CREATE TABLE t (a)")
    with pytest.raises(ValueError, match="it is over"):
        db.executemany("INSERT INTO t VALUES (?)", pyarrow.RecordBatchReader.from_batches(schema, batches()))
    assert db.query_value("SELECT count(*) FROM t") == 0


def test_a_table_is_let_go_with_its_call(db):
    db.execute("CREATE TABLE t (a)")
    before = pyarrow.total_allocated_bytes()
    table = pyarrow.table({"a": pyarrow.array(list(range(100_000)))})
    assert db.executemany("INSERT INTO t VALUES (?)", table) == 100_000
    with pytest.raises(flatwater.OperationalError, match="1 columns but 2"):
        db.executemany("INSERT INTO t VALUES (?, ?)", table)
    del table
    assert pyarrow.total_allocated_bytes() == before
