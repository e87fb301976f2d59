"""The Python code of the guide's pages runs. The blocks of a page are one program, with `await` anywhere."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs/guide"
PAGES = [page for page in sorted(GUIDE.glob("*.md")) if "```python\n" in page.read_text()]


async def execute(page: Path) -> None:
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        code = compile(block, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(code, names)
        if inspect.isawaitable(running):
            await running


def test_there_are_pages_with_python() -> None:
    assert {"from-aiosqlite.md", "from-sqlite3.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(asyncio.wait_for(execute(page), 60))
