"""The programs in the pages for users run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGES = ["README.md", "python/README.md"]


def programs():
    for page in PAGES:
        for number, program in enumerate(re.findall(r"```python\n(.*?)```", (PROJECT / page).read_text(), re.DOTALL)):
            yield pytest.param(program, id=f"{page}-{number}")


@pytest.mark.parametrize("program", list(programs()))
def test_a_program_runs(program, tmp_path):
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Ada" in ran.stdout
