"""Results as columns, and what libraries make of them that read Arrow. Without one of these, the tests fail."""

from __future__ import annotations

import asyncio
import math
import pickle
import threading
from collections.abc import Generator

import pandas
import polars
import pyarrow
import pytest

import flatwater
from flatwater import blocking

# The values 0, 1, ... of a column `n`; more than one chunk.
MANY = "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c LIMIT 200000) SELECT {} FROM c"
ALL = range(200_000)


async def columns(sql: str, params: flatwater.Params = None) -> flatwater.Columns:
    async with flatwater.connect(":memory:") as db:
        return await db.query_columns(sql, params)


def table(made: flatwater.Columns) -> pyarrow.Table:
    """What pyarrow reads, checked by pyarrow, and against the lists."""
    read = pyarrow.table(made)
    read.validate(full=True)
    assert read.to_pydict() == made.to_dict() and read.num_rows == made.row_count
    return read


def values_of(*values: object) -> tuple[str, tuple[object, ...]]:
    """A query for a column `a` of these values."""
    return " UNION ALL ".join(["SELECT ? AS a"] * len(values)), values


def types(read: pyarrow.Table) -> list[str]:
    return [str(kind) for kind in read.schema.types]


async def test_columns_have_names_values_and_a_number_of_rows():
    made = await columns("SELECT 1 AS id, 'Ada' AS name UNION ALL SELECT 2, NULL")
    assert (made.names, made.row_count) == (("id", "name"), 2)
    assert made["id"] == made["ID"] == made[0] == made[-2] == [1, 2] and made["name"] == made[1] == ["Ada", None]
    assert made.to_dict() == {"id": [1, 2], "name": ["Ada", None]}
    assert repr(made) == "<flatwater.Columns: 2 rows of ('id', 'name')>"
    with pytest.raises(KeyError, match="no column named.*the result has id, name"):
        made["age"]
    with pytest.raises(IndexError):
        made[2]
    with pytest.raises(TypeError, match="a position or a name"):
        made[1.5]  # type: ignore[index]
    with pytest.raises(TypeError, match="not iterable"):
        iter(made)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(made)
    with pytest.raises(AttributeError, match="pandas.DataFrame.from_arrow"):
        made.to_pandas  # type: ignore[attr-defined]


async def test_every_place_that_has_query_has_it(file):
    sql, params = "SELECT ? AS a", (7,)
    async with flatwater.connect(file) as db:
        made = [await db.query_columns(sql, params), await (await db.prepare(sql)).query_columns(params)]
        made.append(await db.query_columns(flatwater.Sql("SELECT ").bind(7).push(" AS a")))
        async with db.transaction() as tx, tx.transaction() as nested:
            made += [await tx.query_columns(sql, params), await nested.query_columns(sql, params)]
        async with db.snapshot() as snapshot:
            made.append(await snapshot.query_columns(sql, params, timeout=60))
    with blocking.connect(file) as waits:
        made += [waits.query_columns(sql, params), waits.prepare(sql).query_columns(params)]
        with waits.transaction() as tx:
            made.append(tx.query_columns(sql, params))
        with waits.snapshot() as snapshot:
            made.append(snapshot.query_columns(sql, params))
    assert [one.to_dict() for one in made] == [{"a": [7]}] * 10


@pytest.mark.parametrize(
    ("values", "kind", "read"),
    [
        ((1, None, -(2**63)), "int64", [1, None, -(2**63)]),
        ((0.5, None, math.inf), "double", [0.5, None, math.inf]),
        (("", None, "a\0é\U0001f41f"), "string", ["", None, "a\0é\U0001f41f"]),
        ((b"", None, b"\0\xff"), "binary", [b"", None, b"\0\xff"]),
        ((None, None, None), "null", [None, None, None]),
        # A float equals each of the integers.
        ((1, None, 0.5, -(2**53), 2**62), "double", [1.0, None, 0.5, -(2.0**53), 2.0**62]),
        ((-0.0, 0), "double", [-0.0, 0.0]),
    ],
)
async def test_the_type_of_a_column_is_that_of_its_values(values, kind, read):
    made = table(await columns(*values_of(*values)))
    assert types(made) == [kind]
    assert repr(made["a"].to_pylist()) == repr(read)
    # The NULLs may come first, too.
    made = table(await columns(*values_of(None, None, *values)))
    assert types(made) == [kind] and repr(made["a"].to_pylist()) == repr([None, None, *read])


async def test_a_column_without_values_has_the_type_that_it_was_declared_as(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (a INTEGER, b DOUBLE, c VARCHAR(10), d BLOB, e DATE, f, g INT)")
        of_none = ["int64", "double", "string", "binary", "null", "null", "int64"]
        empty = table(await db.query_columns("SELECT *, max(a, b) AS h FROM t"))
        assert types(empty) == [*of_none, "null"] and empty.num_rows == 0
        await db.execute("INSERT INTO t (g) VALUES ('x')")
        of_nulls = table(await db.query_columns("SELECT * FROM t"))
        assert types(of_nulls) == [*of_none[:6], "string"] and of_nulls.num_rows == 1


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((None, 1, 2, "x"), "INTEGER in row 1 and TEXT in row 3"),
        (("x", 0.5), "TEXT in row 0 and REAL in row 1"),
        ((b"x", "x"), "BLOB in row 0 and TEXT in row 1"),
        ((1, 0.5, b"x"), "REAL in row 1 and BLOB in row 2"),
        ((1, 2**53 + 1, 0.5), "REAL in row 2, and in row 1 an INTEGER that no float equals"),
        ((1, 0.5, 2**63 - 1), "REAL in row 1, and in row 2 an INTEGER that no float equals"),
    ],
)
async def test_values_of_two_types_are_refused_with_the_rows_and_what_to_do(values, said):
    with pytest.raises(flatwater.DataError, match=f'the column "a" has {said}') as caught:
        await columns(*values_of(*values))
    assert "CAST(... AS TEXT)" in caught.value.hint


async def test_what_cannot_be_a_column_is_refused():
    for sql in ["SELECT 1 AS id, 2 AS b, 3 AS id", "SELECT 1 AS id, 2 AS id WHERE 0"]:
        with pytest.raises(flatwater.ProgrammingError, match='two columns are named "id"'):
            await columns(sql)
    with pytest.raises(flatwater.OperationalError, match='the text in column "a" is not UTF-8'):
        await columns("SELECT CAST(x'ff' AS TEXT) AS a")
    with pytest.raises(flatwater.OperationalError, match="no such column"):
        await columns("SELECT a")


async def test_libraries_take_the_columns_as_a_table():
    made = await columns("SELECT 1 AS id, 'Ada' AS name, 0.5 AS x UNION ALL SELECT 2, NULL, NULL")
    frame = polars.DataFrame(made)
    assert frame.to_dict(as_series=False) == made.to_dict()
    assert frame.dtypes == [polars.Int64, polars.String, polars.Float64]
    # The pandas of Python 3.10 takes what pyarrow makes.
    of_pandas = getattr(pandas.DataFrame, "from_arrow", lambda one: pyarrow.table(one).to_pandas())(made)
    assert list(of_pandas["id"]) == [1, 2] and of_pandas["name"].isna().tolist() == [False, True]
    assert of_pandas["x"][0] == 0.5 and of_pandas["x"].dtype == "float64"
    # An integer of 32 bits is what the reader makes of it.
    wanted = pyarrow.schema([("id", pyarrow.int32()), ("name", pyarrow.string()), ("x", pyarrow.float64())])
    assert pyarrow.table(made).cast(wanted).schema == wanted


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("n", "int64", lambda n: n),
        ("iif(n % 3 = 0, NULL, n)", "int64", lambda n: n if n % 3 else None),
        ("iif(n < 70000, NULL, n)", "int64", lambda n: n if n >= 70_000 else None),
        ("iif(n = 140000, NULL, n)", "int64", lambda n: n if n != 140_000 else None),
        # Each chunk that has ended changes its type.
        ("iif(n = 199999, 0.5, n)", "double", lambda n: 0.5 if n == 199_999 else float(n)),
        ("iif(n < 150000, NULL, iif(n < 190000, 7, n / 2.0))", "double", None),
        ("'text ' || n", "string", lambda n: f"text {n}"),
        ("iif(n % 2, NULL, 'é' || n)", "string", lambda n: None if n % 2 else f"é{n}"),
        ("zeroblob(n % 50)", "binary", lambda n: bytes(n % 50)),
        ("iif(n = 199999, x'01', NULL)", "binary", lambda n: b"\1" if n == 199_999 else None),
    ],
)
async def test_a_long_column_has_its_values_in_order(file, value, kind, expected):
    async with flatwater.connect(file) as db:
        made = await db.query_columns(MANY.format(f"{value} AS a, n"))
    read = table(made)
    assert types(read) == [kind, "int64"] and read["n"].to_pylist() == list(ALL)
    assert read["a"].num_chunks > 1
    if expected is not None:
        assert read["a"].to_pylist() == [expected(n) for n in ALL]


class Counted:
    """A call, and how often it let other tasks run: rows that are there it adds in slices, and for others it waits."""

    def __init__(self, call: flatwater.Call[flatwater.Columns]) -> None:
        self._call = call
        self.turns = 0

    def __await__(self) -> Generator[object, None, flatwater.Columns]:
        steps = self._call.__await__()
        while True:
            try:
                step = next(steps)
            except StopIteration as done:
                return done.value
            self.turns += 1
            yield step


async def test_rows_are_added_in_slices(place):
    async with flatwater.connect(place) as db:
        call = Counted(db.query_columns(MANY.format("n, n AS a, n AS b, n AS c, iif(n = 199999, 0.5, n) AS d")))
        assert (await call).row_count == 200_000
        assert call.turns > 3


async def test_a_wide_result_is_a_table():
    made = table(await columns("SELECT " + ", ".join(f"{n} AS c{n}" for n in range(1500))))
    assert made.num_columns == 1500 and made.to_pylist() == [{f"c{n}": n for n in range(1500)}]


async def test_a_value_that_does_not_fit_ends_the_query(file):
    async with flatwater.connect(file, readers=1) as db:
        for wrong in ["iif(n = 3, 'x', n)", "iif(n = 150000, 'x', n)", "iif(n = 199999, 'x', n)"]:
            with pytest.raises(flatwater.DataError, match="INTEGER in row 0 and TEXT"):
                await db.query_columns(MANY.format(f"{wrong} AS a"))
        assert (await db.query_columns("SELECT 1 AS a"))["a"] == [1]
        with pytest.raises(flatwater.OperationalError, match="overflow"):
            await db.query_columns(MANY.format("iif(n = 150000, abs(-9223372036854775807 - 1), n) AS a"))
    with blocking.connect(file) as waits:
        with pytest.raises(flatwater.DataError, match="INTEGER in row 0 and TEXT in row 150000"):
            waits.query_columns(MANY.format("iif(n = 150000, 'x', n) AS a"))
        assert waits.query_columns(MANY.format("n"))["n"] == list(ALL)


async def test_a_query_that_is_cancelled_or_late_returns_its_reader(file):
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c"
    async with flatwater.connect(file, readers=1) as db:
        task = asyncio.create_task(db.query_columns(endless))
        for _ in range(100):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(flatwater.Timeout):
            await db.query_columns(endless, timeout=0.01)
        assert (await db.query_columns("SELECT 1 AS a"))["a"] == [1]


async def test_returning_is_a_result_too(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)")
        made = await db.query_columns("INSERT INTO t (a) VALUES ('x'), ('y') RETURNING id, a")
        assert made.to_dict() == {"id": [1, 2], "a": ["x", "y"]}
        with pytest.raises(flatwater.ProgrammingError, match="returns no rows"):
            await db.query_columns("DELETE FROM t")


async def test_a_stream_is_new_each_time_and_what_is_read_outlives_all(file):
    async with flatwater.connect(file) as db:
        made = await db.query_columns(MANY.format("n, 'text ' || n AS t"))
    reader = pyarrow.RecordBatchReader.from_stream(made)
    first = reader.read_next_batch()
    assert pyarrow.table(made).num_rows == 200_000, "another stream begins with the first row"
    column = first.column(1)
    # The stream that was read in part, the columns and the batch are gone.
    del reader, made, first
    assert column[0].as_py() == "text 0" and column[-1].as_py() == f"text {len(column) - 1}"


async def test_any_thread_reads_and_releases_a_stream():
    made = await columns(MANY.format("n, 'text ' || n AS t"))
    streams = [pyarrow.RecordBatchReader.from_stream(made) for _ in range(4)]
    del made
    sums: list[int] = []

    def read() -> None:
        sums.append(sum(batch.num_rows for batch in streams.pop()))

    threads = [threading.Thread(target=read) for _ in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [200_000] * 4 and not streams


async def test_a_query_logger_is_told_its_name(file):
    told: list[str] = []
    async with flatwater.connect(file) as db:
        db.add_statement_listener(lambda query: told.append(query.operation))
        await db.query_columns("SELECT 1")
        await asyncio.sleep(0)
    assert told == ["query_columns"]
