"""Runs Django's own tests on its backend for SQLite and on `flatwater.django`, and compares them.

    python run_django.py FOLDER [--short] [--write]

Owns which of them run. `FOLDER` has a source release of Django, unpacked, whose own code is run. Needs what its tests
need (`requirements.txt`), and the package of this tree.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from beside import HERE, Outcomes, Side, run

# The newest that this Python can run.
VERSION = "6.1.3" if sys.version_info >= (3, 12) else "5.2.19"
LABELS = [
    *(
        "aggregation",
        "async",
        "backends",
        "bulk_create",
        "expressions",
        "handlers",
        "inspectdb",
        "lookup",
        "migrations",
    ),
    *("model_fields", "queries", "schema", "select_for_update", "servers", "test_utils"),
    *("transaction_hooks", "transactions"),
]
# In a minute, beside other tests.
SHORT = ["backends", "bulk_create", "inspectdb", "transaction_hooks", "transactions"]
THEIRS, OURS = "django.db.backends.sqlite3", "flatwater.django"


def outcomes(release: Path, on_files: bool, labels: list[str], engine: str) -> Outcomes:
    """Runs tests, and returns what became of each."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "outcomes.json")
        path = os.pathsep.join(map(str, [HERE / "django", release, HERE.parent.parent]))
        env = {**os.environ, "PYTHONPATH": path, "ENGINE": engine, "OUTCOMES": str(file)}
        if on_files:
            env["FILES"] = folder
        command = [
            sys.executable,
            "-W",
            "ignore",
            "runtests.py",
            "--settings=suite_settings",
            "--parallel=1",
            "-v0",
            *labels,
        ]
        ran = subprocess.run(command, cwd=release / "tests", env=env, capture_output=True, text=True, check=False)
        if not file.exists():
            raise SystemExit(f"{engine}: {ran.stderr}")
        sys.stderr.write("" if ran.returncode == 0 else ran.stderr)
        found: Outcomes = json.loads(file.read_text())
        return found


def main() -> int:
    is_short = "--short" in sys.argv
    suites: dict[str, tuple[Side, Side]] = {}
    release = Path(sys.argv[1], f"django-{VERSION}").resolve()
    for where in ("in memory", "on files"):
        run_one = partial(outcomes, release, where == "on files", SHORT if is_short else LABELS)
        suites[f"Django {VERSION}, {where}"] = partial(run_one, THEIRS), partial(run_one, OURS)
    return run(suites, write="--write" in sys.argv, whole=not is_short)


if __name__ == "__main__":
    sys.exit(main())
