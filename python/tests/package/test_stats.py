"""The counters: their names and types are those of Rust, and those that type checkers know."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest

import flatwater
from flatwater import blocking

SOURCES = Path(__file__).parents[3] / "crates/flatwater/src/stats"

# The dictionary of Python and the type of Rust have one name. The kind of a call is the key of its dictionary.
TYPES = {
    "Stats": flatwater.Stats,
    "CallStats": flatwater.CallStats,
    "InlineStats": flatwater.InlineStats,
    "WalStats": flatwater.WalStats,
    "LeaseStats": flatwater.LeaseStats,
    "TurnStats": flatwater.TurnStats,
    "LiveStats": flatwater.LiveStats,
}
IN_PYTHON = {
    "u32": int,
    "u64": int,
    "usize": int,
    "bool": bool,
    "String": str,
    "Option<Duration>": typing.Optional[datetime.timedelta],
    "Option<WalBlocker>": typing.Optional[flatwater.WalBlocker],
    "Vec<CallStats>": dict[str, flatwater.CallStats],
    **TYPES,
}


def of_rust(name):
    """The fields of a type of Rust, with the types that they have in Python."""
    source = "".join(path.read_text() for path in SOURCES.glob("*.rs"))
    [body] = re.findall(rf"^ *pub struct {name} {{\n(.*?)^ *}}", source, re.DOTALL | re.MULTILINE)
    fields = dict(re.findall(r"^ +pub (\w+): (.*?)(?: = Counter)?,$", body, re.MULTILINE))
    if name == "CallStats":
        assert fields.pop("kind") == "&'static str"
    return {field: IN_PYTHON[kind] for field, kind in fields.items()}


@pytest.mark.parametrize("name", TYPES)
def test_stats_have_the_names_of_rust(name):
    assert typing.get_type_hints(TYPES[name]) == of_rust(name) != {}


def check(value, kind):
    """Checks that a value has exactly the fields of its type, and that each has its type."""
    arguments = typing.get_args(kind)
    if typing.is_typeddict(kind):
        fields = typing.get_type_hints(kind)
        assert set(value) == set(fields)
        for field, of in fields.items():
            check(value[field], of)
    elif typing.get_origin(kind) is dict:
        assert value, "there were calls"
        for key, item in value.items():
            assert type(key) is arguments[0]
            check(item, arguments[1])
    elif typing.get_origin(kind) in (typing.Union, types.UnionType):
        if value is not None:
            check(value, arguments[0])
    elif typing.get_origin(kind) is typing.Literal:
        assert value in arguments
    else:
        assert type(value) is kind


def test_stats_have_the_types_that_they_promise(place):
    with blocking.connect(place) as db:
        db.execute("CREATE TABLE t (a)")
        check(db.stats(), flatwater.Stats)
        assert db.stats()["calls"]["execute"]["count"] == 1
        assert db.stats()["wal"]["cause"] is None


READER = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1])
other.execute("BEGIN")
other.execute("SELECT count(*) FROM t").fetchall()
print("reads", flush=True)
sys.stdin.readline()
"""


async def test_stats_say_what_blocks_the_wal(file):
    async with flatwater.connect(file, tuning={"wal_limit_bytes": 256 << 10}) as db:

        async def cause():
            """What blocks the WAL, when it has grown enough to be started over."""
            count = db.stats()["wal"]["starved"]
            while db.stats()["wal"]["starved"] == count:
                await db.execute("INSERT INTO t VALUES (zeroblob(8000))")
            return db.stats()["wal"]["cause"]

        await db.execute("CREATE TABLE t (a)")
        async with db.snapshot() as snapshot:
            assert await snapshot.query_value("SELECT count(*) FROM t") == 0
            blocker = await cause()
            check(db.stats(), flatwater.Stats)
            assert (blocker["kind"], blocker["sql"]) == ("read", "a snapshot")
            assert datetime.timedelta(0) < blocker["age"] and datetime.timedelta(0) < db.stats()["wal"]["oldest_read"]
        with subprocess.Popen(
            [sys.executable, "-c", READER, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout.readline() == b"reads\n"
            assert await cause() == {"kind": "foreign", "age": None, "sql": None}
            other.communicate(b"\n")
        assert other.returncode == 0
