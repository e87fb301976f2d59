"""A short round of each act of `make torture` that Python is needed for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ACTS = Path(__file__).parents[1] / "torture"


@pytest.mark.parametrize("act", ["sync_dependencies", "sqlite3_programs"])
def test_a_round_of_an_act_finds_nothing(act):
    if act == "sqlite3_programs" and sys.version_info < (3, 11):
        pytest.skip("`sqlite3` tells less of what has failed")
    ran = subprocess.run(
        [sys.executable, ACTS / f"{act}.py", "--seconds", "2"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "nothing found" in ran.stdout
