"""Runs the suite of SQLAlchemy for dialects, at two versions, and Alembic's tests, with SQLAlchemy's own drivers and
with those of Flatwater, and compares them.

    python run_dialects.py FOLDER [--short] [--write]

Owns which of them run on which databases. `FOLDER` has source releases, unpacked; their own code is run. Needs an
environment with SQLAlchemy, Alembic, aiosqlite and the package of this tree.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from beside import HERE, Outcomes, Side, outcomes_of, run

VERSIONS = ("2.0.58", "2.1.9")
ALEMBIC = "alembic-1.20.1"
# With its own driver, and with ours.
DRIVERS = {"asyncio": ("aiosqlite", "flatwater"), "synchronous": ("pysqlite", "flatwater_sync")}
# In the name of each test.
DRIVER = re.compile(r"_sqlite\+\w+")


def pytest(folder: Path, tests: str, path: list[Path], driver: str, database: str) -> Outcomes:
    """Runs tests in a folder, and returns what became of each."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", tests, "--maxfail=1000", f"--junitxml={report}"]
    command += ["-p", "no:cacheprovider", "--dburi", f"sqlite+{driver}:///{database}"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, HERE.parent.parent]))}
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if not report.exists():
        raise SystemExit(f"{driver}: {ran.stdout}{ran.stderr}")
    return {DRIVER.sub("", name): outcome for name, outcome in outcomes_of(report).items()}


def of_dialect(release: Path, database: str, driver: str) -> Outcomes:
    """SQLAlchemy's suite for dialects."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(HERE / "sqlalchemy", folder, dirs_exist_ok=True)
        (folder / "test").mkdir()
        for file in ("__init__.py", "requirements.py"):
            shutil.copy(release / "test" / file, folder / "test")
        return pytest(folder, "test_suite.py", [release / "lib"], driver, database)


def of_alembic(release: Path, driver: str) -> Outcomes:
    """Alembic's tests, which are run beside its code. They remove files that are open, so they run in memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("tests", "alembic"):
            shutil.copytree(release / part, folder / part)
        for file in ("setup.cfg", "pyproject.toml"):
            shutil.copy(release / file, folder)
        return pytest(folder, "tests", [folder], driver, ":memory:")


def main() -> int:
    is_short = "--short" in sys.argv
    folder = Path(sys.argv[1]).resolve()
    suites: dict[str, tuple[Side, Side]] = {}
    for version in VERSIONS:
        for kind, (theirs, ours) in DRIVERS.items():
            for database, where in ((":memory:", "in memory"), ("suite.db", "on a file")):
                suite = partial(of_dialect, folder / f"sqlalchemy-{version}", database)
                suites[f"SQLAlchemy {version}, {kind}, {where}"] = partial(suite, theirs), partial(suite, ours)
    theirs, ours = DRIVERS["synchronous"]
    suite = partial(of_alembic, folder / ALEMBIC)
    suites["Alembic 1.20.1"] = partial(suite, theirs), partial(suite, ours)
    if is_short:
        suites = {name: sides for name, sides in suites.items() if name == "SQLAlchemy 2.1.9, synchronous, in memory"}
    return run(suites, write="--write" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
