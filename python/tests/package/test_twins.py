"""What stands in several files of the package and is written once."""

import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "flatwater"

sys.path.append(str(PACKAGE.parent / "tools"))

import twins  # noqa: E402


@pytest.mark.parametrize("file", twins.TWINS)
def test_a_generated_file_is_what_the_script_makes(file: str) -> None:
    text = (PACKAGE / file).read_text()
    assert text == twins.TWINS[file].text(), f"run python/tools/twins.py: {file} is not what it makes"


def test_every_call_of_an_executor_is_seen() -> None:
    assert {"execute", "query", "query_json"} < twins.source().keys()
    assert len(twins.source()["query_one"]) == 4
