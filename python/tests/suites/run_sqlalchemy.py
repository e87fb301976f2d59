"""Runs SQLAlchemy's own suite for dialects, unchanged, on `sqlite+flatwater://`.

    python run_sqlalchemy.py FOLDER

Owns on which databases it runs, and how many tests must pass. `FOLDER` has the source release of SQLAlchemy, unpacked,
for its requirements of SQLite. Runs in an environment with that release and the package of this tree. Invariant: a test
that is left out is named here, with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
RELEASE = "sqlalchemy-2.1.9"

# They ask the name of the driver whether it has cursors on the server. It is no for all that they do not know.
STATUS = "for_update_expr or global_ and not off or stmt_option and not disabled or text_ss_option"
WITHOUT = f"not (ServerSideCursorsTest and (test_conn_option or test_ss_cursor_status and ({STATUS})))"

# The database, where the second schema comes from, and how many tests must pass. On a file they are three more than
# those of aiosqlite, which SQLAlchemy skips for that driver by its name.
RUNS = [
    (":memory:", "statement", 1617),
    ("suite.db", "statement", 1604),
    (":memory:", "option", 1617),
    ("suite.db", "option", 1604),
]


def run(database: str, attach: str, release: Path) -> Counter[str]:
    """Runs the suite, and returns how many tests had which outcome."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE / "sqlalchemy", folder, dirs_exist_ok=True)
        Path(folder, "test").mkdir()
        for name in ("__init__.py", "requirements.py"):
            shutil.copy(release / "test" / name, Path(folder, "test"))
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "test_suite.py", f"--junitxml={report}"]
        command += ["--dburi", f"sqlite+flatwater:///{database}", "-k", WITHOUT]
        subprocess.run(command, cwd=folder, env={**os.environ, "ATTACH": attach}, check=False)
        outcomes: Counter[str] = Counter()
        for case in ElementTree.parse(report).iter("testcase"):
            failed = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
            outcomes[failed[0] if failed else "passed"] += 1
        return outcomes


def main() -> int:
    wrong = []
    release = Path(sys.argv[1], RELEASE)
    with ThreadPoolExecutor(2) as pool:
        ran = list(pool.map(lambda what: run(what[0], what[1], release), RUNS))
    for (database, attach, passed), outcomes in zip(RUNS, ran, strict=True):
        if outcomes["passed"] != passed or outcomes["failure"] or outcomes["error"]:
            wrong.append(f"{RELEASE} on {database}, attached by {attach}: {dict(outcomes)}, {passed} must pass")
    print("\n".join(wrong or ["SQLAlchemy's suite is as it must be"]))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
