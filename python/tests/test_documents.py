"""The Python code in the pages for users runs as it stands there: whole programs in the READMEs, and in the guide the
blocks of a page one after the other, with `await` anywhere."""

from __future__ import annotations

import ast
import contextlib
import inspect
import logging
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import flatwater

PROJECT = Path(__file__).parents[2]
READMES = ["README.md", "python/README.md"]
GUIDE = {page.name: page for page in sorted((PROJECT / "docs/guide").glob("*.md"))}

# Pages about Rust and its libraries, and about what Python does not have.
ABOUT_RUST = {
    "coming-from-sqlx.md",
    "coming-from-tokio-rusqlite.md",
    "compile-errors.md",
    "libsql.md",
    "rqlite.md",
    "checked-sql.md",
    "rust-libraries.md",
    "scaling.md",
}

# Pages whose code needs the package `flatwater-sqlcipher`: `make test-wheel-sqlcipher` runs it.
ENCRYPTED = {"encryption.md"}

NOTES = "CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, text TEXT, stars INTEGER);"
USERS = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT UNIQUE);"
ADA_AND_EVE = f"{USERS} INSERT INTO users (name) VALUES ('Ada'), ('Eve');"

# The tables of the database `db` that the code of a page is given, where it opens none.
TABLES = {
    "blobs.md": "CREATE TABLE files (id INTEGER PRIMARY KEY, data BLOB);",
    "calls.md": f"{NOTES} INSERT INTO notes (text) VALUES ('buy tea');",
    "deadlines.md": ADA_AND_EVE,
    "errors.md": USERS,
    "json.md": f"""
        {USERS} INSERT INTO users VALUES (1, 'Bob'), (9223372036854775807, 'Ada');
        CREATE TABLE articles (id INTEGER PRIMARY KEY, author, title, words, tags);
        INSERT INTO articles VALUES (1, 1, 'Tea', 512, '["tea","home"]'), (4, 1, 'More tea', NULL, NULL);""",
    "live.md": """
        CREATE TABLE todos (id INTEGER PRIMARY KEY, list INTEGER, title TEXT, done INTEGER NOT NULL DEFAULT 0);
        INSERT INTO todos (list, title) VALUES (1, 'buy tea');""",
    "maintenance.md": ADA_AND_EVE,
    "reading.md": f"""
        {NOTES} INSERT INTO notes (title) VALUES ('buy tea'), ('rest');
        CREATE TABLE events (name, at, id);
        CREATE TABLE hosts (id INTEGER PRIMARY KEY, address);""",
    "streams.md": f"{NOTES} INSERT INTO notes (text) VALUES ('buy tea'), ('rest');",
    "transactions.md": """
        CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL);
        INSERT INTO accounts VALUES (1, 100), (2, 100);
        CREATE TABLE lines (text UNIQUE);
        CREATE TABLE totals (lines);""",
    "tuning.md": ADA_AND_EVE,
    "writing.md": """
        CREATE TABLE items (id INTEGER PRIMARY KEY, stock INTEGER);
        INSERT INTO items VALUES (1, 2), (2, 9);
        CREATE TABLE visits (page TEXT PRIMARY KEY, count INTEGER);
        CREATE TABLE tags (id INTEGER PRIMARY KEY, name);
        CREATE TABLE lines (number, text);
        CREATE TABLE orders (id INTEGER PRIMARY KEY, item, count);
        CREATE TABLE log (text);""",
}
# A query without an end, for pages that end it.
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def programs():
    for readme in READMES:
        for number, program in enumerate(blocks(PROJECT / readme)):
            yield pytest.param(program, id=f"{readme}-{number}")


@pytest.mark.parametrize("program", list(programs()))
def test_a_program_runs(program, tmp_path):
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Ada" in ran.stdout


def test_every_page_of_the_guide_with_rust_has_python_unless_it_is_about_rust():
    assert {name for name, page in GUIDE.items() if "```rust" in page.read_text() and not blocks(page)} <= ABOUT_RUST
    assert set(TABLES) <= set(GUIDE)


def test_the_table_of_suites_has_what_their_runs_must_give():
    page = GUIDE["suites.md"].read_text()
    beside = runpy.run_path(str(PROJECT / "python/tests/suites/beside.py"))
    assert beside["with_table"](page) == page, "make suites-table"
    assert page.count("\n| Django ") > 1


async def run_with_fixture(test, names, folder):
    """Runs a test of a page, which has one fixture: the folder, or one of the page with that folder."""
    [given] = inspect.signature(test).parameters
    if given == "tmp_path":
        await test(folder)
        return
    async with contextlib.asynccontextmanager(inspect.unwrap(names[given]))(folder) as value:
        await test(value)


@pytest.mark.parametrize("name", [name for name, page in GUIDE.items() if blocks(page) and name not in ENCRYPTED])
async def test_the_code_of_a_page_runs(name, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    # A level that a page sets is undone afterwards.
    caplog.set_level(logging.NOTSET, "flatwater")
    names = {"ENDLESS": ENDLESS}
    given = None
    if name in TABLES:
        names["db"] = given = await flatwater.connect("given.db")
        await given.executescript(TABLES[name])
    try:
        for block in blocks(GUIDE[name]):
            code = compile(block, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            running = eval(code, names)
            if inspect.isawaitable(running):
                await running
        for test in [names[name] for name in names if name.startswith("test_")]:
            tests = tmp_path / test.__name__
            tests.mkdir()
            await run_with_fixture(test, names, tests)
    finally:
        if given is not None:
            await given.close()
