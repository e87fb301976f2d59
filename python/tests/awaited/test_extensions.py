"""Extensions of SQLite, which each connection loads."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import sqlite_vec

import flatwater
from flatwater import blocking

PATH = sqlite_vec.loadable_path()
ENTRY = (PATH, "sqlite3_vec_init")


@pytest.mark.parametrize("given", [PATH, Path(PATH), PATH.encode(), ENTRY, [PATH], [ENTRY, Path(PATH)]], ids=repr)
async def test_every_connection_has_what_an_extension_registers(place, given):
    async with flatwater.connect(place, load_extension=given, readers=4) as db:
        await db.execute("CREATE VIRTUAL TABLE v USING vec0 (at float[2])")
        await db.executemany(
            "INSERT INTO v (at) VALUES (?)", [(sqlite_vec.serialize_float32([n, n]),) for n in range(9)]
        )
        nearest = "SELECT rowid, distance FROM v WHERE at MATCH ? ORDER BY distance LIMIT 1"
        reads = [db.query_one(nearest, (f"[{n}, {n}]",)) for n in range(9)]
        assert await asyncio.gather(*reads) == [(n + 1, 0.0) for n in range(9)]
        await db.execute("DROP TABLE v")
    if place == ":memory:":
        with blocking.connect(place, load_extension=given) as other:
            assert other.query_value("SELECT vec_version()").startswith("v")


async def test_what_cannot_be_loaded_is_named_and_what_is_no_path_is_refused(place):
    with pytest.raises(flatwater.OperationalError, match="the extension .*missing.* cannot be loaded"):
        await flatwater.connect(place, load_extension="/missing/extension")
    with pytest.raises(flatwater.OperationalError, match="cannot be loaded"):
        await flatwater.connect(place, load_extension=(PATH, "no_such_entry"))
    for wrong in [1, (PATH, 1), (PATH,), [[1]], (PATH, "a", "b"), {"path": PATH}]:
        with pytest.raises(TypeError, match='"load_extension" must be a path'):
            await flatwater.connect(place, load_extension=wrong)


async def test_sql_loads_nothing(place):
    async with flatwater.connect(place, load_extension=PATH) as db:
        with pytest.raises(flatwater.OperationalError):
            await db.query("SELECT load_extension(?)", (PATH,))
