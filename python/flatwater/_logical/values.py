"""Values in as `sqlite3` takes them, and out as its converters make them.

Owns both. Runs where the statement is called. Invariant: the adapters and converters are those that are registered
with the `sqlite3` module. Leaves out storing them, which the native part does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .._errors import make, name_of_type
from .._native import parameters_of

PLAIN = (int, str, bytes, type(None))
Converters = list["Callable[[bytes], Any] | None"]


def adapted(value: Any) -> Any:
    """Returns what is stored for a value."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is not float:
        value = sqlite3.adapt(value, sqlite3.PrepareProtocol, value)
    if isinstance(value, float):
        return None if value != value else float(value)
    if isinstance(value, int):
        return int(value)
    if value is None or isinstance(value, (str, bytes)):
        return value
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise unsupported(value) from None


def unsupported(value: object) -> Exception:
    """The error for a value that `sqlite3` does not take."""
    return make("ProgrammingError", f"Error binding parameter: type '{name_of_type(value)}' is not supported", "misuse")


def parameters(sql: str, given: Any) -> Any:
    """Returns the parameters of a statement as they are stored."""
    if given is None:
        return ()
    if isinstance(given, (tuple, list)):
        return tuple([adapted(value) for value in given])
    if isinstance(given, Mapping) or hasattr(type(given), "__missing__"):
        # Of further names nothing is wanted.
        return {name: adapted(_named(given, name)) for name in parameters_of(sql)}
    if not isinstance(given, Sequence) and not hasattr(given, "__len__"):
        if isinstance(given, Iterable):
            return tuple([adapted(value) for value in given])
        raise make("ProgrammingError", "parameters are of unsupported type", "misuse")
    return tuple([adapted(given[at]) for at in range(len(given))])


def _named(given: Any, name: str) -> Any:
    try:
        return given[name]
    except KeyError:
        raise make("ProgrammingError", f"You did not supply a value for binding parameter :{name}.", "misuse") from None


def converters(detect_types: int, names: Iterable[str], declared: Iterable[str | None]) -> Converters | None:
    """Returns what converts the values of each column, or None if nothing does."""
    found: Converters = []
    for name, kind in zip(names, declared, strict=True):
        converter = None
        if detect_types & sqlite3.PARSE_COLNAMES and "[" in name:
            converter = sqlite3.converters.get(name.partition("[")[2].partition("]")[0].upper())
        if converter is None and detect_types & sqlite3.PARSE_DECLTYPES and kind:
            converter = sqlite3.converters.get(kind.replace("(", " ").partition(" ")[0].upper())
        found.append(converter)
    return found if any(found) else None


def converted(rows: list[tuple[Any, ...]], by: Converters) -> list[tuple[Any, ...]]:
    """Returns the rows with their values converted."""
    return [tuple([_convert(value, to) for value, to in zip(row, by, strict=True)]) for row in rows]


def _convert(value: Any, to: Callable[[bytes], Any] | None) -> Any:
    if to is None or value is None:
        return value
    return to(value if isinstance(value, bytes) else str(value).encode())
