"""Rows as the program wants them.

Owns `Row`, which is that of `sqlite3` made from any cursor. Invariant: a row refers to its values and to the names of
its columns, and not to a cursor that could run. Leaves out values.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from typing_extensions import Self

Description = tuple[tuple[str, None, None, None, None, None, None], ...]
RowFactory = Optional[Callable[[Any, tuple[Any, ...]], Any]]

_lock = Lock()
_memory: list[sqlite3.Connection] = []


class Row(sqlite3.Row):
    """One row, by position and by name. It is a `sqlite3.Row`, which other cursors than those of `sqlite3` make too."""

    __slots__ = ()

    def __new__(cls, cursor: Any, data: tuple[Any, ...], /) -> Self:
        if not isinstance(cursor, sqlite3.Cursor):
            cursor = names_for(cursor.description)
        return super().__new__(cls, cursor, data)


@lru_cache(maxsize=256)
def names_for(description: Description) -> sqlite3.Cursor:
    """A cursor of `sqlite3` with such columns, which is where its `Row` finds their names."""
    with _lock:
        if not _memory:
            _memory.append(sqlite3.connect(":memory:", check_same_thread=False))
        quoted = (column[0].replace('"', '""') for column in description)
        columns = ", ".join(f'NULL AS "{name}"' for name in quoted)
        return _memory[0].execute(f"SELECT {columns} WHERE 0")


def made(factory: RowFactory, cursor: Any, description: Description, rows: list[tuple[Any, ...]]) -> list[Any]:
    """The rows as a factory makes them."""
    if factory is None:
        return rows
    if isinstance(factory, type) and issubclass(factory, sqlite3.Row):
        cursor = names_for(description)
    return [factory(cursor, row) for row in rows]
