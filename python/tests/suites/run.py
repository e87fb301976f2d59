"""Runs the tests of projects that use aiosqlite, unchanged, with `flatwater.aiosqlite` in its place.

    python run.py FOLDER

Owns which of them run, and how many must pass. `FOLDER` has the source releases of `sources.txt`, unpacked. Runs in the
environment of `requirements.txt`; the package of this tree and `shim` come before what is installed there. Invariant: a
test that is left out is named here, with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree


@dataclass(frozen=True)
class Suite:
    """Tests of one project."""

    release: str
    tests: str
    file: str
    passed: int
    skipped: int = 0
    # By name.
    without: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


HERE = Path(__file__).resolve().parent
PATH = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE / "shim"), str(HERE.parent.parent)])}
IS_OURS = "import aiosqlite; assert aiosqlite.__name__ == 'flatwater.aiosqlite', aiosqlite"
ASYNC = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
LANGGRAPH = "langgraph_checkpoint_sqlite-3.1.2"

SUITES = [
    # It patches `sqlite3.connect`, which is not called. Python may be built without extensions: that test is skipped.
    Suite("aiosqlite-0.22.1", "aiosqlite/tests", "smoke.py", 28, 1, without=("test_connect_base_exception",)),
    Suite(LANGGRAPH, "tests", "test_aiosqlite.py", 3, arguments=ASYNC),
    Suite(LANGGRAPH, "tests", "test_delta_parent_walk.py", 9, arguments=ASYNC),
    # `sqlite3` has the file open meanwhile, which is another SQLite library in the process.
    Suite(
        LANGGRAPH,
        "tests",
        "test_writes_task_path_migration.py",
        7,
        without=("test_async_setup_does_not_wait_on_another_writer",),
        arguments=ASYNC,
    ),
    Suite(LANGGRAPH, "tests", "test_ttl.py", 11, arguments=ASYNC),
    # Programs of our own on packages that use aiosqlite.
    Suite(str(HERE), "programs", "test_tortoise.py", 2, arguments=ASYNC),
]


def run(suite: Suite, sources: Path) -> Counter[str]:
    """Runs the tests, and returns how many had which outcome."""
    with tempfile.TemporaryDirectory() as folder:
        # Without the package that a release has beside its tests.
        shutil.copytree(sources / suite.release / suite.tests, Path(folder, "tests"))
        report = Path(folder, "report.xml")
        excluded = " and ".join(f"not {name}" for name in suite.without)
        command = [sys.executable, "-m", "pytest", f"tests/{suite.file}", "-q", f"--junitxml={report}", "-k", excluded]
        command += ["-p", "no:cacheprovider", *suite.arguments]
        subprocess.run([sys.executable, "-c", IS_OURS], cwd=folder, env=PATH, check=True)
        subprocess.run(command, cwd=folder, env=PATH, check=False)
        outcomes: Counter[str] = Counter()
        for case in ElementTree.parse(report).iter("testcase"):
            failed = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            outcomes[failed[0] if failed else "passed"] += 1
        return outcomes


def main() -> int:
    wrong = []
    for suite in SUITES:
        expected = Counter(passed=suite.passed, skipped=suite.skipped)
        outcomes = run(suite, Path(sys.argv[1]))
        if outcomes != expected:
            wrong.append(f"{suite.release} {suite.file}: {dict(outcomes)}, must be {dict(expected)}")
    print("\n".join(wrong or ["all suites are as they must be"]))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
