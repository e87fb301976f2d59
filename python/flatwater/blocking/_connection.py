"""A connection of one's own, without `await`: `db.connection()`.

Owns the calls that wait. Leaves out what it shares with the one whose calls are awaited
(`flatwater._handles.connection`).
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import _native
from .._given.row_types import RowsT_co, RowT_co
from .._handles.connection import Own
from .._native import wait
from .._told.names import of_connection
from . import Executor

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._native import NativeConnection


class Connection(Own, Executor[RowsT_co, RowT_co]):
    """A connection of one's own: transaction control as text, TEMP objects, ATTACH and PRAGMAs are allowed on it. Made
    by `db.connection()`; its first statement opens it, and it is not shared with anybody.

    Statements run one after the other, in the order in which they were begun, from any thread. Reads wait for nobody. A
    write waits for the writer, and keeps it until its transaction is over."""

    def __init__(self, native: NativeConnection) -> None:
        self._on = _native.Executor()
        Own.__init__(self, native, self._on)

    def close(self) -> None:
        """Closes the connection, when its earlier statements are done, and rolls back what is open on it. Closing twice
        is allowed."""
        wait(self._begin_close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            of_connection(self, name, blocking=True)
