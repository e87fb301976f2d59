"""Prints the public API of the package, a line for each name: `python tools/api.py`.

Owns: which modules are public, and the form of a line. It reads the sources and the stubs, so that nothing need be
built. Leaves out: comparing with what is committed, which the Makefile does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import griffe

PYTHON = Path(__file__).parent.parent
PACKAGE = "flatwater"
# The modules that programs import, below the package.
MODULES = ["", ".aiosqlite", ".blocking", ".blocking.process", ".dbapi", ".django", ".process", ".sqlalchemy"]
# Special methods that say how an object is made or shown, which a program does not call.
UNLISTED = {"__all__", "__class_getitem__", "__doc__", "__getattr__", "__dir__", "__module__", "__repr__", "__slots__"}


def is_public(name: str) -> bool:
    special = name.startswith("__") and name.endswith("__")
    return name not in UNLISTED and (special or not name.startswith("_"))


def exported(module: griffe.Module) -> list[str]:
    """What `__all__` names, or what is defined there."""
    if module.exports is not None:
        return sorted(str(name) for name in module.exports)
    return sorted(name for name, member in module.members.items() if is_public(name) and not member.is_alias)


def parameter(given: griffe.Parameter) -> str:
    text = given.name
    if given.annotation is not None:
        text += f": {given.annotation}"
    # What is put for an argument that is left out is a sign of the sources' own, such as `_GIVEN`.
    if given.default is not None:
        text += " = ..." if str(given.default).startswith("_") else f" = {given.default}"
    return text


def signature(function: griffe.Function) -> str:
    parts: list[str] = []
    last: griffe.ParameterKind | None = None
    kinds = griffe.ParameterKind
    stars = {kinds.var_positional: "*", kinds.var_keyword: "**"}
    for given in function.parameters:
        if last is kinds.positional_only and given.kind is not kinds.positional_only:
            parts.append("/")
        if given.kind is kinds.keyword_only and last not in (kinds.keyword_only, kinds.var_positional):
            parts.append("*")
        star = "" if given.kind is None else stars.get(given.kind, "")
        parts.append(star + (parameter(given).split(" = ")[0] if star else parameter(given)))
        last = given.kind
    if last is kinds.positional_only:
        parts.append("/")
    return f"({', '.join(parts)}) -> {function.returns}"


def lines(path: str, item: griffe.Object, listed: set[str]) -> Iterator[str]:
    """The lines of one name and of what is below it, without what a class has of another that is listed."""
    if isinstance(item, griffe.Function):
        marks = "".join(f"@{label} " for label in ("classmethod", "staticmethod") if label in item.labels)
        prefix = marks + ("async def" if "async" in item.labels else "def")
        for form in item.overloads or [item]:
            yield f"{prefix} {path}{signature(form)}"
    elif isinstance(item, griffe.Class):
        bases = ", ".join(str(base) for base in item.bases if is_public(str(base)))
        yield f"class {path}({bases})" if bases else f"class {path}"
        for name, member in sorted(item.all_members.items()):
            target = member.final_target if isinstance(member, griffe.Alias) else member
            inherited = target.parent is not None and target.parent.path != item.path and target.parent.path in listed
            if is_public(name) and not inherited and not isinstance(target, griffe.Class):
                yield from lines(f"{path}.{name}", target, listed)
    elif isinstance(item, griffe.Module):
        yield f"module {path}"
    elif isinstance(item, griffe.Attribute):
        kind = "property " if "property" in item.labels else ""
        annotation = "" if item.annotation is None else f": {item.annotation}"
        value = f" = {item.value}" if annotation in ("", ": TypeAlias") else ""
        yield f"{kind}{path}{annotation}{value}"
    elif isinstance(item, griffe.TypeAlias):
        yield f"type {path} = {item.value}"


def found(module: griffe.Module, name: str) -> griffe.Object | None:
    """What the name stands for, if that is in the package."""
    member = module.members.get(name)
    try:
        return member.final_target if isinstance(member, griffe.Alias) else member
    except griffe.AliasResolutionError:
        return None


def main() -> None:
    loader = griffe.GriffeLoader(search_paths=[PYTHON], allow_inspection=False)
    loader.load(PACKAGE)
    loader.resolve_aliases(implicit=True, external=False)
    for below in MODULES:
        module = loader.modules_collection[PACKAGE + below]
        items = {name: found(module, name) for name in exported(module)}
        listed = {item.path for item in items.values() if item is not None}
        print(f"# {module.path}\n")
        for name, item in items.items():
            if item is None:
                member = module.members.get(name)
                print(f"{module.path}.{name} = {member.target_path if isinstance(member, griffe.Alias) else '?'}")
                continue
            for line in lines(f"{module.path}.{name}", item, listed):
                print(re.sub(r"\s+", " ", line))
        print()


if __name__ == "__main__":
    main()
