"""What type checkers say of a call that is not awaited."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

FORGOTTEN = """
import flatwater

async def forgotten(db: flatwater.Database, statement: flatwater.Prepared) -> None:
    db.execute("DELETE FROM t")  # !
    db.executemany("INSERT INTO t VALUES (?)", [(1,)])  # !
    db.executescript("DELETE FROM t")  # !
    db.batch(["DELETE FROM t"])  # !
    db.query("SELECT 1")  # !
    db.query("SELECT 1", into=dict)  # !
    db.query_one("SELECT 1")  # !
    db.query_optional("SELECT 1")  # !
    db.query_value("SELECT 1")  # !
    db.query_optional_value("SELECT 1")  # !
    db.prepare("SELECT 1")  # !
    db.migrate([])  # !
    db.backup("copy.db")  # !
    db.checkpoint()  # !
    db.close()  # !
    flatwater.process.close_all(1)  # !
    statement.execute()  # !
    async with db.transaction() as tx:
        tx.execute("DELETE FROM t")  # !
        tx.rollback()  # !
        await tx.execute("DELETE FROM t")
    async with db.batches("SELECT 1") as batches:
        batches.next_batch()  # !
    async with db.snapshot() as snapshot:
        snapshot.query("SELECT 1")  # !
    await db.execute("DELETE FROM t")
"""
EXPECTED = [number for number, line in enumerate(FORGOTTEN.splitlines(), 1) if line.endswith("# !")]


def lines(command: list[str], pattern: str, folder: Path) -> list[int]:
    file = folder / "forgotten.py"
    file.write_text(FORGOTTEN)
    done = subprocess.run([sys.executable, "-m", *command, str(file)], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    return [int(line) for line in re.findall(pattern, done.stdout)]


def test_mypy_reports_each_of_them(tmp_path):
    found = lines(
        ["mypy", "--strict", "--no-color-output"], r"forgotten.py:(\d+): error: .*\[unused-coroutine\]", tmp_path
    )
    assert found == EXPECTED


def test_pyright_reports_each_of_them(tmp_path):
    pytest.importorskip("pyright")
    command = ["pyright", "--pythonpath", sys.executable]
    assert lines(command, r"forgotten.py:(\d+):\d+ - error: .*\(reportUnusedCoroutine\)", tmp_path) == EXPECTED
