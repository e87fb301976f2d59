"""The structure of the package: no file needs another one, to be loaded, that needs it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import flatwater

PACKAGE = Path(flatwater.__file__).parent


def loaded(tree: ast.Module) -> Iterator[ast.ImportFrom]:
    """The imports that run when the module is loaded: not those of functions, and not those for types."""
    for node in tree.body:
        for part in [node] if not isinstance(node, (ast.If, ast.Try)) else node.body + node.orelse:
            for_types = isinstance(node, ast.If) and part in node.body and "TYPE_CHECKING" in ast.unparse(node.test)
            if isinstance(part, ast.ImportFrom) and (not for_types or "not TYPE_CHECKING" in ast.unparse(node)):
                yield part


def graph() -> dict[str, set[str]]:
    modules = {}
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        modules[".".join(parts).removesuffix(".__init__")] = file
    edges: dict[str, set[str]] = {name: set() for name in modules}
    for name, file in modules.items():
        folder = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
        for node in loaded(ast.parse(file.read_text())):
            start = folder[: len(folder) - node.level + 1] if node.level else []
            module = ".".join([*start, *filter(None, [node.module])])
            for alias in node.names:
                of_package = f"{module}.{alias.name}"
                # The compiled module imports nothing.
                target = of_package if of_package in modules or alias.name == "_native" else module
                if target in modules and target != name and not name.startswith(f"{target}."):
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
    assert sum(map(len, edges.values())) > 60
    assert in_circles(edges) == []
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
