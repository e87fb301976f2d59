"""What concerns all databases of this process: how many have connections, and closing all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _native

if TYPE_CHECKING:
    from ._given.types import Seconds
    from ._native import Call

__all__ = ["close_all", "set_max_open"]


def close_all(wait: Seconds) -> Call[None]:
    """Closes all database files that are open in this process, at the same time.

    For each file it does what `Database.close` does: it executes the writes that were begun before, waits for open
    transactions, and rolls these back after `wait`, or after `close_wait` of the database if that is shorter. Calls on
    the remaining handles raise `ProgrammingError`, except `close`. A file may be opened again afterwards. Databases in
    memory, and files that are being opened, stay open. If a statement of a file does not end, raises `OperationalError`
    after the other files are closed.
    """
    return _native.close_all(wait)


def set_max_open(databases: int) -> None:
    """Sets how many databases of this process may have connections at a time. Default 64; 0 counts as 1.

    Beyond that, Flatwater closes the connections of the least recently used databases, and the next call on one of them
    opens them again: the databases stay open.
    """
    _native.set_max_open(databases)
