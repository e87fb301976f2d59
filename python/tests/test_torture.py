"""A short round of the act of `make torture` that Python is needed for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "torture/sync_dependencies.py"


def test_a_round_of_blocks_that_run_on_any_thread_finds_nothing():
    ran = subprocess.run([sys.executable, PROGRAM, "--seconds", "2"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "nothing found" in ran.stdout
