"""Runs the tests of Tortoise and of Peewee with their own drivers and on Flatwater, and compares them.

    python run_orms.py FOLDER [--write]

Owns which of them run, and how each is pointed to Flatwater: by the folder `shim`, whose modules come before those that
they import. `FOLDER` has the source release of Tortoise, unpacked. Peewee's has no tests: they are those of its
repository; FLATWATER_GIT=file:///srv/mirror/ says where it is if not at GitHub, and without it they are skipped. Needs
the environment of `requirements.txt`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from beside import HERE, Outcomes, Side, outcomes_of, run

IS_OURS = """
import aiosqlite, pysqlite3
assert (aiosqlite.__name__, pysqlite3.dbapi2.__name__) == ("flatwater.aiosqlite", "flatwater.dbapi")
"""
TORTOISE = "tortoise_orm-1.1.9"
# Of other databases, of web frameworks, of programs that the release does not have, and what measures.
WITHOUT = (
    *("backends/test_connection_params.py", "benchmarks", "contrib/postgres", "contrib/test_blacksheep.py"),
    *("contrib/test_decorator.py", "contrib/test_fastapi.py", "migrations/test_state_performance.py"),
)
PEEWEE = ("coleifer/peewee", "408aa4c130267ffd1e3ec5d09c0595e8d9a9bd98")
MODULES = [
    *(
        "db_tests",
        "dataset",
        "extra_fields",
        "fields",
        "fts_parser",
        "hybrid",
        "json_field",
        "kv",
        "manytomany",
        "migrations",
    ),
    *(
        "model_sql",
        "models",
        "pool",
        "prefetch_tests",
        "pwiz_integration",
        "reflection",
        "results",
        "schema",
        "shortcuts",
    ),
    *("signals", "sql", "sqlite", "sqlite_changelog", "sqlite_udf", "sqliteq", "transactions", "with_related_tests"),
]


def pytest(folder: Path, ours: bool, *arguments: str) -> Outcomes:
    """Runs tests in a folder, and returns what became of each."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
    path = [folder, *([HERE / "shim", HERE.parent.parent] if ours else [])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    if ours:
        subprocess.run([sys.executable, "-c", IS_OURS], cwd=folder, env=env, check=True)
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if not report.exists():
        raise SystemExit(f"{arguments}: {ran.stdout}{ran.stderr}")
    return outcomes_of(report)


def of_tortoise(release: Path, ours: bool) -> Outcomes:
    """Tortoise's tests, with fixtures of our own, which its release does not have."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("tests", "tortoise"):
            shutil.copytree(release / part, folder / part)
        shutil.copy(release / "pyproject.toml", folder)
        shutil.copy(HERE / "tortoise/conftest.py", folder)
        return pytest(
            folder, ours, "tests", "--continue-on-collection-errors", *(f"--ignore=tests/{part}" for part in WITHOUT)
        )


def of_peewee(source: Path, ours: bool) -> Outcomes:
    """Peewee's tests, a process for each module, because some remove the file of others."""
    outcomes: Outcomes = {}
    for module in MODULES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name, "peewee")
            shutil.copytree(source, folder)
            outcomes.update(pytest(folder, ours, f"tests/{module}.py"))
    return outcomes


def repository(name: str, commit: str, folder: Path) -> Path | None:
    """The sources of a project, at a commit. None if its repository cannot be reached."""
    base = os.environ.get("FLATWATER_GIT", "https://github.com/")
    source = folder / f"{name.replace('/', '+')}-{commit[:8]}"
    if not source.exists():
        cloned = subprocess.run(["git", "clone", "--quiet", f"{base}{name}", source], capture_output=True, check=False)
        if cloned.returncode:
            return None
    subprocess.run(["git", "checkout", "--quiet", commit], cwd=source, check=True)
    return source


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    tortoise = partial(of_tortoise, folder / TORTOISE)
    suites: dict[str, tuple[Side, Side]] = {"Tortoise 1.1.9": (partial(tortoise, False), partial(tortoise, True))}
    source = repository(*PEEWEE, folder)
    if source is None:
        print("skipped: the tests of Peewee, whose repository cannot be reached")
    else:
        peewee = partial(of_peewee, source)
        suites[f"Peewee, at {PEEWEE[1][:8]}"] = partial(peewee, False), partial(peewee, True)
    return run(suites, write="--write" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
