"""Values in as `sqlite3` takes them.

Owns taking and adapting them. Runs where the statement is called. Invariant: the adapters are those that are registered
with the `sqlite3` module. Leaves out storing them, and converters, which the native part does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .._errors import make, name_of_type
from .._native import parameters_of
from .._waiting.pause import Pause, is_due
from .steps import Steps

PLAIN = (int, str, bytes, type(None))


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


class Unavailable:
    """Parameters that could not be had: what is raised where they are used."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def taken(sql: str, given: Any) -> Any:
    """Returns the parameters of a statement as they are stored, or what raises why they cannot be had. Adapters are
    code of the program, which may use the connection: a call takes what it was given before its turn."""
    try:
        return parameters(sql, given)
    except Exception as error:
        return Unavailable(error)


def taken_rows(sql: str, rows: Iterable[Any]) -> Steps[list[Any]]:
    """The same for each row, up to one that cannot be had."""
    given: list[Any] = []
    try:
        for number, row in enumerate(rows.copy() if isinstance(rows, list) else rows, 1):
            given.append(parameters(sql, row))
            if is_due(number):
                yield Pause()
    except Exception as error:
        given.append(Unavailable(error))
    return given


def had_rows(taken: Iterable[Any]) -> Iterator[Any]:
    """The rows that were taken. Raises what was raised by one that could not be had, in its place."""
    for row in taken:
        if isinstance(row, Unavailable):
            raise row.error
        yield row


def parameters(sql: str, given: Any) -> Any:
    """Returns the parameters of a statement as they are stored. Those that are stay as they are."""
    if given is None:
        return ()
    if isinstance(given, Unavailable):
        raise given.error
    if type(given) is tuple and all(type(value) in PLAIN for value in given):
        return given
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
