"""What `import flatwater` imports. It is short because what many programs do not use comes when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flatwater

# The parts of the package, which all programs use.
FIRST = {
    "_errors",
    "_given",
    "_given.forms",
    "_given.functions",
    "_given.row_types",
    "_handles",
    "_handles.database",
    "_handles.reads",
    "_handles.scopes",
    "_native",
    "_told",
    "_told.logging",
    "_told.names",
    "_waiting",
    "_waiting.pause",
    "process",
}


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_beside_asyncio_and_sqlite3_only_the_package_is_imported():
    program = """
import asyncio, sqlite3, sys
import __future__
before = set(sys.modules)
import flatwater
print(*sorted(set(sys.modules) - before))
"""
    assert run(program).split() == ["flatwater", *sorted(f"flatwater.{name}" for name in FIRST)]


@pytest.mark.parametrize("name", flatwater.__all__)
def test_every_name_is_there_whenever_it_is_imported(name):
    assert getattr(flatwater, name) is getattr(flatwater, name) and name in dir(flatwater)


def test_every_name_is_there_at_once_for_a_star():
    names = run(
        "from flatwater import *\nimport flatwater\nprint(*(set(flatwater.__all__) - globals().keys()), 'none')"
    )
    assert names == "none\n"


def test_a_name_that_does_not_exist_is_told_as_ever():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        flatwater.nonsense  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Batches"):
        flatwater.Cursor  # type: ignore[attr-defined]
