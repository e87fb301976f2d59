"""A short round of each act of `make torture` that Python is needed for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ACTS = Path(__file__).parents[1] / "torture"


def play(act: str, *given: str) -> None:
    ran = subprocess.run([sys.executable, ACTS / act, *given], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "nothing found" in ran.stdout


@pytest.mark.parametrize("act", ["sync_dependencies.py", "sqlite3_programs.py"])
def test_a_round_of_an_act_finds_nothing(act):
    if act == "sqlite3_programs.py" and sys.version_info < (3, 11):
        pytest.skip("`sqlite3` tells less of what has failed")
    play(act, "--seconds", "2")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a handler may raise between the end of a block and `__exit__`")
@pytest.mark.parametrize("kind", ["pooled", "own", "blocks"])
def test_a_handler_of_a_signal_that_raises_leaves_nothing_taken(kind):
    play("signals.py", "--kind", kind, "--seconds", "0", "--steps", "300")
