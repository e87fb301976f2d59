"""The type objects of PEP 249.

Owns what they are equal to: the Python types of their values. SQLite gives a type to each value and none to a column,
so the type code of a column in `description` is None, as in `sqlite3`. Leaves out converting values.
"""

from __future__ import annotations

import datetime


class TypeObject:
    """The types of the values of one kind."""

    __slots__ = ("_name", "_types")

    def __init__(self, name: str, *types: type) -> None:
        self._name = name
        self._types = frozenset(types)

    def __eq__(self, other: object) -> bool:
        return self is other or (not isinstance(other, TypeObject) and other in self._types)

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return self._name


STRING = TypeObject("STRING", str)
BINARY = TypeObject("BINARY", bytes, bytearray, memoryview)
NUMBER = TypeObject("NUMBER", int, float)
DATETIME = TypeObject("DATETIME", datetime.date, datetime.time, datetime.datetime)
ROWID = TypeObject("ROWID", int)
