"""What `changes()` and its kin tell after statements that ran in part or not at all: as in `sqlite3`."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "torture"))
import sqlite3_programs

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="`sqlite3` tells less of what has failed")

STATEMENTS = [
    "UPDATE t SET b = 'many' WHERE a = ?",
    "INSERT INTO t (a) SELECT ? WHERE 0",
    "INSERT INTO t (a) VALUES (?)",
    "UPDATE not_there SET a = ?",
]
# After the first row, or at it: too many values, a value that is too large, one of no type, a row that is none.
ROWS = [
    [],
    [(50,), (1, 2)],
    [(1, 2), (50,)],
    [(50,), (1 << 70,)],
    [(1 << 70,), (50,)],
    [(50,), (60,), (object(),)],
    [(object(),), (50,)],
    [(50,), 5],
    [(50,), ("\ud800",)],
]
EARLIER = [("all", 0, "INSERT INTO log VALUES (1), (2), (3)", None), ("commit",)]
# With a connection of one's own, where SQLite has counted nothing yet; and with that of the writer.
OWN = [("execute", 0, "CREATE TEMP TABLE temporary (a)", None)]
ASKS = [("all", 0, "SELECT changes(), total_changes(), last_insert_rowid()", None)]


@pytest.mark.parametrize("own", [OWN, []], ids=["own", "pooled"])
@pytest.mark.parametrize("level", ["", None])
def test_counts_are_those_of_what_has_run(own, level):
    for sql, rows, earlier in product(STATEMENTS, ROWS, ([], EARLIER)):
        for step in [("many", 1, sql, ("list", rows)), *(("all", 1, sql, row) for row in rows[-1:])]:
            program = [*earlier, *own, step, *ASKS]
            assert sqlite3_programs.differs(program, level, "dbapi") is None, program
