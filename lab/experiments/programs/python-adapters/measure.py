"""Measures what programs written for aiosqlite and for SQLAlchemy do, on Flatwater and on aiosqlite, in turns.

    python measure.py [--quick] [--runs 5] [--json FILE]

Owns the plan, the medians and the table. A trial is one workload of one side in a process of its own, with a fresh
file; every second run has the sides the other way round. Leaves out the workloads: `surface.py` and `orm.py`, which
check their own work.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import orm
import surface

SIDES = ["flatwater", "aiosqlite"]
WORKLOADS = {**surface.WORKLOADS, **orm.WORKLOADS}


def arguments():
    parser = argparse.ArgumentParser(description="Measures the package's adapters for Python beside aiosqlite.")
    parser.add_argument("--quick", action="store_true", help="small workloads: shows that they run, not how fast")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="where the figures of all trials are written")
    parser.add_argument("--trial", nargs=3, metavar=("SIDE", "WORKLOAD", "FILE"), help="runs one trial only")
    return parser.parse_args()


def trial(side, workload, quick):
    """The microseconds of one operation, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--trial", side, workload, str(Path(folder, "trial.db"))]
        ran = subprocess.run(command + ["--quick"] * quick, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{workload} on {side}: {ran.stderr}")
    return float(ran.stdout)


def measured(runs, quick):
    """The figures of all trials by workload and side."""
    figures = {workload: {side: [] for side in SIDES} for workload in WORKLOADS}
    for run in range(runs):
        for workload in WORKLOADS:
            for side in SIDES if run % 2 == 0 else reversed(SIDES):
                figures[workload][side].append(trial(side, workload, quick))
    return figures


def table(figures):
    """Medians, and how many times as fast Flatwater is."""
    yield f"{'workload':<48}" + "".join(f"{side:>14}" for side in SIDES) + f"{'times':>8}"
    for workload, sides in figures.items():
        flatwater, aiosqlite = (statistics.median(sides[side]) for side in SIDES)
        about = WORKLOADS[workload].__doc__
        yield f"{about:<48}{flatwater:>11.1f} us{aiosqlite:>11.1f} us{aiosqlite / flatwater:>8.2f}"


def main():
    given = arguments()
    if given.trial:
        side, workload, file = given.trial
        count = 1 if given.quick else 20
        print(asyncio.run(WORKLOADS[workload](side, file, count)))
        return
    figures = measured(given.runs, given.quick)
    if given.json:
        given.json.write_text(json.dumps({"quick": given.quick, "microseconds": figures}, indent=1) + "\n")
    print("\n".join(table(figures)))


if __name__ == "__main__":
    main()
