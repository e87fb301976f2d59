"""The small form of every lane of the lab, on this package, and of the program that measures its adapters. Each checks
its own work."""

import json
import subprocess
import sys
from pathlib import Path

DRIVER = Path(__file__).parents[2] / "lab/peers/python/driver.py"
ADAPTERS = Path(__file__).parents[2] / "lab/experiments/programs/python-adapters/measure.py"


def drive(*arguments):
    ran = subprocess.run(
        [sys.executable, DRIVER, "--as", "py-flatwater", *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{arguments}: {ran.stderr}"
    return json.loads(ran.stdout)


def test_every_lane_runs(tmp_path):
    lanes = [lane["name"] for lane in drive("--list")["lanes"]]
    assert {"one_row", "one_insert", "rows_10k", "loop_holds", "import"} <= set(lanes)
    for lane in lanes:
        directory = tmp_path / lane
        directory.mkdir()
        figures = drive("--lane", lane, "--dir", directory, "--quick")
        assert figures["lane"] == lane and figures["ops"] > 0


def test_the_program_that_measures_the_adapters_runs(tmp_path):
    file = tmp_path / "figures.json"
    ran = subprocess.run(
        [sys.executable, ADAPTERS, "--quick", "--runs", "1", "--json", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    figures = json.loads(file.read_text())["microseconds"]
    assert len(figures) == len(ran.stdout.splitlines()) - 1 == 10
    assert all(figure > 0 for sides in figures.values() for side in sides.values() for figure in side)
