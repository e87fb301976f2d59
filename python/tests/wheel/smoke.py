"""What must work where only the wheel is installed: run by `make test-wheel`, by a Python that has nothing else."""

import asyncio
import importlib.metadata
import importlib.util
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import flatwater
from flatwater import blocking


async def main(file: Path) -> None:
    async with flatwater.connect(file) as db:
        await db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)")
        async with db.live("SELECT name FROM users ORDER BY name") as results:
            assert len(await anext(results)) == 0
            async with db.transaction() as tx:
                await tx.executemany("INSERT INTO users (name) VALUES (?)", [("Ada",), ("Eve",)])
            assert [row["name"] for row in await anext(results)] == ["Ada", "Eve"]
        assert await db.query_one("SELECT id, name FROM users WHERE name = :name", {"name": "Eve"}) == (2, "Eve")
        async with db.stream("SELECT name FROM users ORDER BY id") as rows:
            assert [row["name"] async for row in rows] == ["Ada", "Eve"]
        columns = await db.query_columns("SELECT id, name FROM users ORDER BY id")
        assert columns.to_dict() == {"id": [1, 2], "name": ["Ada", "Eve"]}
        assert "arrow_array_stream" in repr(columns.__arrow_c_stream__())
        for wrong, error in [
            ("INSERT INTO users (name) VALUES ('Ada')", sqlite3.IntegrityError),
            ("INSERT INTO nowhere VALUES (1)", sqlite3.OperationalError),
            ("SELECT 1", flatwater.ProgrammingError),
        ]:
            try:
                await db.execute(wrong)
            except error as raised:
                assert isinstance(raised, flatwater.Error), raised
            else:
                raise AssertionError(f"{wrong} raised nothing")

        # What the SQLite in the wheel is built with.
        assert await db.query_value("SELECT sqrt(pow(3, 2) + pow(4, 2))") == 5.0
        assert await db.query_value("SELECT json_extract(?, '$.a[1]')", ('{"a": [1, 2]}',)) == 2
        await db.execute("CREATE VIRTUAL TABLE notes USING fts5 (body)")
        await db.execute("INSERT INTO notes VALUES ('a boat on flat water')")
        assert await db.query_value("SELECT count(*) FROM notes WHERE notes MATCH 'water'") == 1
        await db.execute("CREATE VIRTUAL TABLE places USING rtree (id, west, east)")
        await db.execute("INSERT INTO places VALUES (1, 10, 20)")
        assert await db.query_value("SELECT id FROM places WHERE west < 15 AND east > 15") == 1
        print(
            f"flatwater {flatwater.__version__}, SQLite",
            await db.query_value("SELECT sqlite_version()"),
        )


async def surfaces(file: Path) -> None:
    """The modules that have the surface of others, which are folders of the package."""
    from flatwater import aiosqlite, dbapi

    with dbapi.connect(file) as db:
        db.execute("CREATE TABLE t (a)")
        db.execute("INSERT INTO t VALUES (1)")
    db.close()
    async with aiosqlite.connect(file) as also:
        assert await also.execute_fetchall("SELECT a FROM t") == [(1,)]
    [driver] = importlib.metadata.entry_points(group="sqlalchemy.dialects", name="sqlite.flatwater")
    assert importlib.util.find_spec(driver.module)


if __name__ == "__main__":
    assert not shutil.which("cargo") and not importlib.util.find_spec("maturin"), "this is not a clean environment"
    assert Path(flatwater.__file__).is_relative_to(sys.prefix), flatwater.__file__
    assert (
        Path(flatwater.__file__).with_name("py.typed").exists()
        and Path(flatwater.__file__).with_name("_native.pyi").exists()
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "smoke.db")
        asyncio.run(main(path))
        asyncio.run(surfaces(Path(folder, "surfaces.db")))
        with blocking.connect(path) as db:
            assert db.query_values("SELECT name FROM users ORDER BY id") == ["Ada", "Eve"]
