"""Runs of one suite with its host's own driver and with Flatwater, beside each other.

Owns `expected.json`: how many tests had which outcome on either side, and which differ, each with its reason.
Invariants: a test that differs is named there; one that is named and does not differ is an error. The counts are those
of one version of Python, and are looked at under that version alone. Leaves out how a suite is run.

    python beside.py        writes the table of the guide, of what is in that file
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.json"
GUIDE = HERE.parents[2] / "docs/guide/suites.md"
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
# By its name, what became of a test.
Outcomes = dict[str, str]
Side = Callable[[], Outcomes]


def outcomes_of(report: Path) -> Outcomes:
    """The outcomes in a report of pytest. A test with several entries has the worst."""
    order = ("error", "failure", "skipped", "passed")
    outcomes: Outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        tags = [child.tag for child in case if child.tag in order]
        name = f"{case.get('classname')}::{case.get('name')}"
        outcomes[name] = min([*tags, outcomes.get(name, "passed")], key=order.index)
    return outcomes


def run(suites: dict[str, tuple[Side, Side]], write: bool = False, whole: bool = True) -> int:
    """Runs suites by their names, each with the driver of its host and with ours, two at a time. Returns how many
    things are wrong. `whole`: all tests ran that are counted; `write`: their counts are written."""
    with ThreadPoolExecutor(2) as pool:
        running = {name: [pool.submit(side) for side in sides] for name, sides in suites.items()}
        ran = {name: [side.result() for side in sides] for name, sides in running.items()}
    expected = json.loads(EXPECTED.read_text())
    wrong = []
    for name, (theirs, ours) in ran.items():
        known = expected["suites"].setdefault(name, {"differ": {}})
        if write:
            known.update(theirs=counted(theirs), ours=counted(ours))
        wrong += [f"{name}: {one}" for one in differences(theirs, ours, known["differ"])]
        for side, outcomes in (("theirs", theirs), ("ours", ours)):
            if whole and expected["python"] == PYTHON and counted(outcomes) != known.get(side, counted(outcomes)):
                wrong.append(f"{name}, {side}: {counted(outcomes)}, must be {known[side]}")
    if write:
        EXPECTED.write_text(json.dumps(expected, indent=2, sort_keys=True) + "\n")
    print("\n".join(wrong or [f"as they must be: {'; '.join(ran)}"]))
    return len(wrong)


def counted(outcomes: Outcomes) -> dict[str, int]:
    """How many tests had which outcome."""
    return dict(Counter(outcomes.values()))


def differences(theirs: Outcomes, ours: Outcomes, named: dict[str, str]) -> list[str]:
    """The tests that differ and are not named, and those that are named and do not differ."""
    ran = {*theirs, *ours}
    found = {test for test in ran if theirs.get(test) != ours.get(test)}
    wrong = [f"{test}: {theirs.get(test)}, and here {ours.get(test)}" for test in sorted(found - named.keys())]
    return wrong + [f"{test} is named, and does not differ" for test in sorted(ran & named.keys() - found)]


def table() -> str:
    """The table of the guide: of the suites whose counts are known."""
    rows = ["| suite | passed with its own driver | passed on Flatwater | different, and why |", "|---|---:|---:|---|"]
    suites = json.loads(EXPECTED.read_text())["suites"]
    for name, suite in sorted((name, suite) for name, suite in suites.items() if "ours" in suite):
        reasons = Counter(suite["differ"].values())
        why = "; ".join(f"{count}: {reason}" for reason, count in reasons.items()) or "none"
        rows.append(f"| {name} | {suite['theirs']['passed']:,} | {suite['ours']['passed']:,} | {why} |")
    return "\n".join(rows) + "\n"


def with_table(page: str) -> str:
    """A page with the table in the place of the one that it has."""
    begin = page.index("| suite |")
    end = page.find("\n\n", begin)
    return page[:begin] + table() + (page[end + 1 :] if end >= 0 else "")


if __name__ == "__main__":
    GUIDE.write_text(with_table(GUIDE.read_text()))
