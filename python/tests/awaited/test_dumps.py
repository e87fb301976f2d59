"""The dump of a database as SQL, and loading one."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess

import pytest

import flatwater
from flatwater import blocking

SCHEMA = """
CREATE TABLE child (id INTEGER PRIMARY KEY AUTOINCREMENT, p REFERENCES parent (id), t TEXT, twice AS (id * 2));
CREATE TABLE parent (id INTEGER PRIMARY KEY, b BLOB, r REAL);
CREATE TABLE w (k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO parent VALUES (1, x'00ff', 0.1), (2, NULL, -1e300);
INSERT INTO child (p, t) VALUES (1, 'it''s; -- no
comment'), (2, ''), (NULL, 'ÄÖ'), (1, NULL);
DELETE FROM child WHERE id = 4;
INSERT INTO w VALUES ('a', 9223372036854775807);
CREATE INDEX child_p ON child (p) WHERE p > 0;
CREATE VIEW two AS SELECT * FROM child JOIN parent ON parent.id = p;
CREATE TRIGGER noise AFTER INSERT ON parent BEGIN UPDATE child SET t = 'noise; END' WHERE p = new.id; END;
ANALYZE;
"""


def _rows(path) -> list:
    with sqlite3.connect(path) as plain:
        tables = ["child", "parent", "w", "sqlite_sequence", "sqlite_stat1", "two"]
        rows = [plain.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
        schema = plain.execute(
            "SELECT type, name, sql FROM sqlite_schema WHERE name <> 'sqlite_stat4' ORDER BY type, name"
        ).fetchall()
    plain.close()
    return [schema, *rows]


@pytest.fixture
def file(tmp_path):
    """A database that the `sqlite3` module has made, and its dump by that module."""
    path = tmp_path / "plain.db"
    plain = sqlite3.connect(path)
    plain.executescript(SCHEMA)
    dump = list(plain.iterdump())
    plain.close()
    return path, dump


async def test_a_dump_is_that_of_sqlite3(file):
    copy, expected = file
    async with flatwater.connect(copy) as db:
        lines = [line async for line in db.iterdump()]
        only = [line async for line in db.iterdump(filter="par%")]
    assert lines == expected
    assert only[1].startswith("CREATE TABLE parent") and len(only) == 5
    with blocking.connect(copy) as db:
        assert list(db.iterdump()) == lines


async def test_a_dump_is_loaded_and_is_the_same_database(file, tmp_path, place):
    path, _ = file
    async with flatwater.connect(path) as db:
        script = "\n".join([line async for line in db.iterdump()])
    async with flatwater.connect(tmp_path / "loaded.db") as db:
        await db.executescript(script)
        assert await db.query_value("PRAGMA foreign_keys") == 1
        assert [line async for line in db.iterdump()] == _lines(script)
    assert _rows(tmp_path / "loaded.db") == _rows(path)
    async with flatwater.connect(place) as db:
        await db.executescript(script)
        assert await db.query_value("SELECT count(*) FROM two") == 2


def _lines(script: str) -> list[str]:
    lines, rest = [], ""
    for line in script.split("\n"):
        rest += line
        if sqlite3.complete_statement(rest):
            lines.append(rest)
            rest = ""
        else:
            rest += "\n"
    return lines


async def test_a_dump_of_the_sqlite3_module_is_loaded(file, tmp_path):
    path, expected = file
    script = "\n".join(expected)
    async with flatwater.connect(tmp_path / "loaded.db") as db:
        await db.executescript(script)
        assert await db.query_value("SELECT count(*) FROM child") == 3
        with pytest.raises(flatwater.IntegrityError):
            await db.execute("INSERT INTO child (p) VALUES (99)")


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the shell of SQLite is not installed")
async def test_a_dump_of_the_shell_is_loaded(file, tmp_path):
    path, _ = file
    script = subprocess.run(["sqlite3", path, ".dump"], capture_output=True, text=True, check=True).stdout
    async with flatwater.connect(tmp_path / "loaded.db") as db:
        await db.executescript(script)
    assert _rows(tmp_path / "loaded.db") == _rows(path)


async def test_a_dump_has_the_index_of_a_full_text_search(tmp_path):
    async with flatwater.connect(tmp_path / "a.db") as db:
        await db.executescript("CREATE VIRTUAL TABLE f USING fts5(x); INSERT INTO f VALUES ('hello world')")
        script = "\n".join([line async for line in db.iterdump()])
    async with flatwater.connect(tmp_path / "b.db") as db:
        await db.executescript(script)
        assert await db.query("SELECT x FROM f WHERE f MATCH 'world'") == [("hello world",)]
        await db.execute("INSERT INTO f(f) VALUES ('integrity-check')")


async def test_names_of_any_form_are_dumped(tmp_path):
    # Some versions of the `sqlite3` module fail for them.
    odd = '[it\'s "odd"]'
    schema = f"CREATE TABLE {odd} ([a 'b' \"c\" ] PRIMARY KEY, [select]); CREATE TABLE [x;--] ([ö])"
    async with flatwater.connect(tmp_path / "a.db") as db:
        await db.executescript(schema)
        await db.execute(f"INSERT INTO {odd} VALUES (?, ?)", ("a", None))
        await db.execute("INSERT INTO [x;--] VALUES (1.5)")
        lines = [line async for line in db.iterdump()]
    async with flatwater.connect(tmp_path / "b.db") as db:
        await db.executescript("\n".join(lines))
        assert [line async for line in db.iterdump()] == lines
        assert await db.query("SELECT ö FROM [x;--]") == [(1.5,)]


async def test_a_dump_is_of_one_point_in_time(tmp_path):
    async with flatwater.connect(tmp_path / "a.db") as db:
        await db.executescript("CREATE TABLE a (n); INSERT INTO a VALUES (1); CREATE TABLE b (n)")
        lines = []
        async for line in db.iterdump():
            if not lines:
                await db.executescript("UPDATE a SET n = 2; INSERT INTO b VALUES (2); CREATE TABLE c (n)")
            lines.append(line)
        assert [line for line in lines if "2" in line or "c (n)" in line] == []


async def test_a_dump_that_fails_leaves_nothing(place):
    async with flatwater.connect(place) as db:
        with pytest.raises(flatwater.IntegrityError, match="not applied: it adds 1 foreign key violation"):
            await db.executescript(
                "BEGIN TRANSACTION; CREATE TABLE c (p REFERENCES p (id)); INSERT INTO c VALUES (7);"
                "CREATE TABLE p (id INTEGER PRIMARY KEY); COMMIT;"
            )
        assert await db.query("SELECT * FROM sqlite_schema") == []


async def test_the_first_lines_of_a_program_are_answered(place):
    async with flatwater.connect(place, busy_timeout=5) as db:
        mode = "wal" if place != ":memory:" else "memory"
        await db.execute("PRAGMA journal_mode=WAL")
        assert await db.query_value("PRAGMA journal_mode=WAL") == mode
        await db.execute("PRAGMA foreign_keys=ON")
        assert await db.query("PRAGMA foreign_keys = ON") == []
        await db.executescript("PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=5000;")
        assert await db.query_one("PRAGMA busy_timeout = 5000") == (5000,)
        with pytest.raises(flatwater.ProgrammingError, match="`durability`"):
            await db.execute("PRAGMA synchronous = OFF")


async def test_an_earlier_statement_is_told_of_by_results_only(place):
    async with flatwater.connect(place) as db:
        await db.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, n)")
        assert (await db.execute("INSERT INTO p VALUES (41, 1)")).last_insert_rowid == 41
        for sql in ("SELECT last_insert_rowid()", "SELECT changes()", "SELECT total_changes()"):
            with pytest.raises(flatwater.ProgrammingError, match="RETURNING"):
                await db.query_value(sql)
            with pytest.raises(flatwater.ProgrammingError, match="RETURNING"):
                await db.query_json(sql)
        async with db.transaction() as tx:
            await tx.execute("INSERT INTO p VALUES (42, 1)")
            assert await tx.query_value("SELECT last_insert_rowid()") == 42
