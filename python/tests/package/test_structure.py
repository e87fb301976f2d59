"""The structure of the package: no file needs another one that needs it, not even for types, and no folder has more
files than one can look through."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import flatwater

PACKAGE = Path(flatwater.__file__).parent
TESTS = Path(__file__).parents[1]


def modules() -> dict[str, Path]:
    """The files of the package by their names."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = file
    return found


def imports(file: Path) -> Iterator[ast.ImportFrom]:
    """All of a file: those that run when it is loaded, those for types, and those of functions."""
    return (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom))


def graph() -> dict[str, set[str]]:
    """What each file imports. It may use the head of its folder, `__init__`, which is loaded before it."""
    files = modules()
    edges: dict[str, set[str]] = {name: set() for name in files}
    for name, file in files.items():
        folder = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
        for node in imports(file):
            start = folder[: len(folder) - node.level + 1] if node.level else []
            module = ".".join([*start, *filter(None, [node.module])])
            for alias in node.names:
                of_package = f"{module}.{alias.name}"
                # The compiled module imports nothing.
                target = of_package if of_package in files or alias.name == "_native" else module
                if target in files and target != name and not name.startswith(f"{target}."):
                    edges[name].add(target)
    return edges


def in_circles(edges: dict[str, set[str]]) -> list[str]:
    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(edges[start])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting.extend(edges[name])
        return seen

    return [name for name in edges if name in reached(name)]


def test_files_need_each_other_in_no_circle() -> None:
    edges = graph()
    assert sum(map(len, edges.values())) > 100
    assert in_circles(edges) == []
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]


def test_a_folder_has_at_most_25_files() -> None:
    files = [*PACKAGE.rglob("*.py*"), *TESTS.rglob("*.py")]
    folders = Counter(file.parent for file in files if file.suffix in {".py", ".pyi"})
    assert len(folders) > 8
    assert [str(folder) for folder, count in folders.items() if count > 25] == []
