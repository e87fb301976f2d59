"""What concerns all databases of this process: how many have connections, and closing all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _native

if TYPE_CHECKING:
    from ._native import Call
    from ._types import Seconds

__all__ = ["close_all", "set_max_open"]


def close_all(wait: Seconds) -> Call[None]:
    """Closes every database file that is open in this process, all at the same time, whoever opened it.

    For each file it does what `Database.close` does: it executes the writes that were begun before, waits for open
    transactions, and rolls these back after `wait`, or after `close_wait` of the database if that is shorter. Handles
    that are left raise `ProgrammingError`, and closing them too is no error. A file may be opened again afterwards.
    Databases in memory, and files that are just being opened, stay open. Raises `OperationalError` of the first file
    with a statement that does not end, when the others are closed.
    """
    return _native.close_all(wait)


def set_max_open(databases: int) -> None:
    """Sets how many databases of this process may have connections at a time. Default 64; 0 counts as 1.

    Beyond that, the connections of those that were not used for longest are closed, and the next call on one of them
    opens them again: the databases stay open.
    """
    _native.set_max_open(databases)
