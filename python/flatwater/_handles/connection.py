"""A connection of one's own: `db.connection()`.

Owns the handle, whether its calls are awaited or wait. Dropping an open one closes it in the background, with a
`ResourceWarning`, and rolls back what is open on it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from .._errors import NotSupportedError
from .._given.functions import Functions
from .._given.row_types import RowsT_co, RowT_co
from .._told.names import of_connection
from .scopes import Reads

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._native import Call, Executor, NativeConnection, NativeFunction


class Own(Functions):
    """What a connection has besides what runs SQL. Its functions and collations are on no other connection; in memory
    it is the database's only one.

    What it is to call is called on a thread of the database, for its statements from the next one on, and must not call
    the database."""

    def __init__(self, native: NativeConnection, executor: Executor[Any, Any]) -> None:
        self._native = native
        self._is_closed = False
        executor._open(native)

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""
        return self._native.in_transaction()

    @property
    def total_changes(self) -> int:
        """How many rows INSERT, UPDATE and DELETE have changed on this connection."""
        return self._native.total_changes()

    def interrupt(self) -> None:
        """Interrupts the statement that runs now: it raises `OperationalError`. May be called on any thread."""
        self._native.interrupt()

    def set_authorizer(self, authorizer: Callable[..., int] | None) -> None:
        """Calls `authorizer` for each thing that a statement does, while it is compiled, with the arguments that the
        `sqlite3` module passes. It returns `sqlite3.SQLITE_OK`, `SQLITE_DENY` or `SQLITE_IGNORE`; an exception
        denies."""
        self._native.set_authorizer(authorizer)

    def set_progress_handler(self, handler: Callable[[], object] | None, n: int) -> None:
        """Calls `handler` after about every `n` steps of a statement. If it returns something true, or raises, the
        statement is interrupted."""
        self._native.set_progress_handler(handler, n)

    def set_trace_callback(self, callback: Callable[[str], object] | None) -> None:
        """Calls `callback` with the SQL of each statement that begins to run, in which the values are filled in. An
        exception in it is ignored."""
        self._native.set_trace_callback(callback)

    def load_extension(self, path: str, *, entrypoint: str | None = None) -> NoReturn:
        """Raises `NotSupportedError`: extensions are loaded by the option `load_extension` of `connect`."""
        raise NotSupportedError("extensions are loaded by the option `load_extension` of `connect`")

    def _give(self, function: NativeFunction) -> None:
        self._native.create(function)

    def _remove_function(self, name: str, narg: int) -> None:
        self._native.remove_function(name, narg)

    def _remove_collation(self, name: str) -> None:
        self._native.remove_collation(name)

    def _keeps_datetimes(self) -> bool:
        return self._native.keeps_datetimes()

    def _begin_close(self) -> Call[None]:
        self._is_closed = True
        return self._native.close()

    def __repr__(self) -> str:
        return f"<flatwater.{type(self).__name__}{' (closed)' if self._is_closed else ''}>"

    def __del__(self) -> None:
        if not self.__dict__.get("_is_closed", True) and not sys.is_finalizing():
            warnings.warn(f"unclosed connection {self!r}", ResourceWarning, source=self, stacklevel=2)


class Connection(Own, Reads[RowsT_co, RowT_co]):
    """A connection of one's own: transaction control as text, TEMP objects, ATTACH and PRAGMAs are allowed on it. Made
    by `db.connection()`; its first statement opens it, and it is not shared with anybody.

    Statements run one after the other, in the order in which they were begun, from any task, thread or loop. Reads wait
    for nobody. A write waits for the writer, and keeps it until its transaction is over. `run` takes any one
    statement, with rows or without; `executescript` runs statement by statement, and what ran before a failure
    stays."""

    def __init__(self, native: NativeConnection) -> None:
        Own.__init__(self, native, self)

    def close(self) -> Call[None]:
        """Closes the connection, when its earlier statements are done, and rolls back what is open on it. Closing twice
        is allowed."""
        return self._begin_close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            of_connection(self, name)
