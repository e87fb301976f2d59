"""The notebook: Django's models on Flatwater."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "notebook/notebook.py"
PRINTED = """\
not stored: UNIQUE constraint failed: notes_tag.name
committed: 4 notes
to buy: buy milk, buy tea
of 2026: 2
at home: 3
stars: 201
a view: {'titles': ['buy milk'], 'stars': 201}
"""


def test_a_program_with_djangos_models_runs(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    ran = subprocess.run(
        [sys.executable, "-X", "dev", PROGRAM, file], capture_output=True, text=True, check=False, timeout=300
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, PRINTED, "")
    plain = sqlite3.connect(file)
    try:
        assert plain.execute("SELECT title, stars FROM notes_note ORDER BY id").fetchall() == [
            ("buy tea", 0),
            ("buy milk", 201),
            ("rest", 0),
            ("buy nothing", 0),
        ]
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert plain.execute("PRAGMA foreign_key_check").fetchall() == []
    finally:
        plain.close()
