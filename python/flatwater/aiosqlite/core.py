"""The connections of `flatwater.aiosqlite`.

Owns their calls. Leaves out what they do: `flatwater._logical`.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any
from warnings import warn

from .._logical import Closed, Logical, LogicalCursor, RowFactory, Settings, awaited
from .._logical.callbacks import create_function, give, has_extensions, load_extension
from .._logical.copies import Progress, backup, iterdump
from .._native import Turns
from .._waiting.pause import Pause, is_due
from .context import contextmanager
from .cursor import Cursor

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Connection", "Cursor", "connect"]

AuthorizerCallback = Callable[[int, Any, Any, Any, Any], int]


class Connection:
    """A connection: `await` opens it, and `async with` closes it too."""

    def __init__(
        self, connector: Callable[[], Logical], iter_chunk_size: int, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self._logical: Logical | None = None
        self._connector = connector
        self._iter_chunk_size = iter_chunk_size
        if loop is not None:
            warn("aiosqlite.Connection no longer uses the `loop` parameter", DeprecationWarning, stacklevel=2)

    def __del__(self) -> None:
        logical = self.__dict__.get("_logical")
        if logical is None or not logical.is_open:
            return
        text = (
            "was deleted before being closed. Please use 'async with' or '.close()' to close the connection properly."
        )
        warn(f"{self!r} {text}", ResourceWarning, stacklevel=1, source=self)
        logical.drop()

    async def _connect(self) -> Self:
        if self._logical is None:
            logical = self._connector()
            await awaited(logical.open())
            self._logical = logical
        return self

    def __await__(self) -> Generator[Any, Any, Self]:
        return self._connect().__await__()

    async def __aenter__(self) -> Self:
        return await self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def is_alive(self) -> bool:
        """True from the `await` that opens it to its end."""
        return self._logical is not None and self._logical.is_open

    def stop(self) -> asyncio.Future[None] | None:
        """Closes the connection in the background. Prefer `async with` or `await close()`."""
        logical, self._logical = self._logical, None
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            if logical is not None:
                logical.drop()
            return None
        if logical is not None:
            return loop.create_task(awaited(logical.close()))
        future = loop.create_future()
        future.set_result(None)
        return future

    async def close(self) -> None:
        """Rolls back and closes, when the calls before are done. Closing twice is allowed."""
        logical, self._logical = self._logical, None
        if logical is not None:
            self._closed = logical
            await awaited(logical.close())

    @property
    def _core(self) -> Logical:
        if self._logical is None:
            raise ValueError("no active connection")
        return self._logical

    @property
    def _conn(self) -> Self:
        """The connection itself, for programs that set something of aiosqlite's inner one."""
        self._core  # noqa: B018
        return self

    @property
    def _tx(self) -> Turns:
        """The calls that are not done."""
        return (self._logical or self._closed).turns

    @contextmanager
    async def cursor(self) -> Cursor:
        """Returns a new cursor."""
        return Cursor(self, LogicalCursor(self._running()))

    def _running(self) -> Logical:
        if self._logical is None:
            raise Closed()
        return self._logical

    async def commit(self) -> None:
        """Commits the transaction, if one is open."""
        await awaited(self._running().commit())

    async def rollback(self) -> None:
        """Rolls the transaction back, if one is open."""
        await awaited(self._running().rollback())

    @contextmanager
    async def execute(self, sql: str, parameters: Any = None) -> Cursor:
        """Runs one statement. Returns a new cursor with its result."""
        cursor = LogicalCursor(self._running())
        await awaited(cursor.execute(sql, parameters))
        return Cursor(self, cursor)

    @contextmanager
    async def execute_insert(self, sql: str, parameters: Any = None) -> Any:
        """Runs one INSERT. Returns a row with the rowid."""
        cursor = LogicalCursor(self._running())
        await awaited(cursor.execute(sql, parameters))
        # Other tasks may insert meanwhile.
        await awaited(cursor.execute('SELECT ? AS "last_insert_rowid()"', (cursor.lastrowid,)))
        return await awaited(cursor.fetchone())

    @contextmanager
    async def execute_fetchall(self, sql: str, parameters: Any = None) -> list[Any]:
        """Runs one statement. Returns its rows."""
        cursor = LogicalCursor(self._running())
        await awaited(cursor.execute(sql, parameters))
        return await awaited(cursor.fetchall())

    @contextmanager
    async def executemany(self, sql: str, parameters: Iterable[Any]) -> Cursor:
        """Runs one INSERT, UPDATE, DELETE or REPLACE for each row of parameters. Returns a new cursor."""
        cursor = LogicalCursor(self._running())
        await awaited(cursor.executemany(sql, parameters))
        return Cursor(self, cursor)

    @contextmanager
    async def executescript(self, sql_script: str) -> Cursor:
        """Commits, and then runs the statements of a script one by one. Returns a new cursor."""
        cursor = LogicalCursor(self._running())
        await awaited(cursor.executescript(sql_script))
        return Cursor(self, cursor)

    async def interrupt(self) -> None:
        """Interrupts the statements that run: they raise `OperationalError`."""
        self._running().mode.interrupt()

    async def create_function(
        self, name: str, num_params: int, func: Callable[..., Any] | None, deterministic: bool = False
    ) -> None:
        """Creates a function of this connection, which has its own from then on."""
        await awaited(create_function(self._running(), name, num_params, func, deterministic))

    async def load_extension(self, path: str) -> None:
        """Does nothing for an extension of the option `load_extension` of `connect`, which is loaded. Raises
        `NotSupportedError` for another."""
        load_extension(self._running(), path)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # As in a Python that was built without extensions, unless the connection has some.
            if name == "enable_load_extension" and has_extensions(self.__dict__.get("_logical")):
                return _nothing
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    async def set_progress_handler(self, handler: Callable[[], object] | None, n: int) -> None:
        """Calls `handler` after each `n` steps of SQLite's machine. A true result interrupts the statement."""
        given = give(self._running(), "a progress handler", lambda native: native.set_progress_handler(handler, n))
        await awaited(given)

    async def set_trace_callback(self, handler: Callable[[str], object] | None) -> None:
        """Calls `handler` with the text of each statement that runs."""
        await awaited(give(self._running(), "a trace callback", lambda native: native.set_trace_callback(handler)))

    async def set_authorizer(self, authorizer_callback: AuthorizerCallback | None) -> None:
        """Asks the callback for each action of a statement that is compiled. It returns a number such as SQLITE_OK."""
        code = authorizer_callback
        await awaited(give(self._running(), "an authorizer", lambda native: native.set_authorizer(code)))

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""
        return self._core.in_transaction

    @property
    def isolation_level(self) -> str | None:
        """How an INSERT, UPDATE, DELETE or REPLACE begins a transaction. None: it begins none."""
        return self._core.isolation_level

    @isolation_level.setter
    def isolation_level(self, value: str | None) -> None:
        self._core.isolation_level = value

    @property
    def row_factory(self) -> RowFactory:
        """What makes a row of a cursor and a tuple, for new cursors. None: the tuple."""
        return self._core.row_factory

    @row_factory.setter
    def row_factory(self, factory: RowFactory) -> None:
        self._core.row_factory = factory

    @property
    def text_factory(self) -> Callable[[bytes], Any]:
        """What makes the value of a text, of its bytes."""
        factory: Callable[[bytes], Any] = self._core.text_factory
        return factory

    @text_factory.setter
    def text_factory(self, factory: Callable[[bytes], Any]) -> None:
        self._core.text_factory = factory

    @property
    def total_changes(self) -> int:
        """How many rows the connection has changed."""
        return self._core.total_changes

    async def iterdump(self) -> AsyncIterator[str]:
        """The database as SQL, for `async for`."""
        for number, line in enumerate(await awaited(iterdump(self._running())), 1):
            yield line
            if is_due(number):
                await Pause()

    async def backup(
        self,
        target: Connection | sqlite3.Connection | Any,
        *,
        pages: int = 0,
        progress: Progress | None = None,
        name: str = "main",
        sleep: float = 0.250,
    ) -> None:
        """Copies the database into that of another connection: of this module, of `sqlite3` or of aiosqlite."""
        into = target._running() if isinstance(target, Connection) else target
        if not isinstance(into, (Logical, sqlite3.Connection)):
            into = into._conn
        await awaited(backup(self._running(), into, pages, progress, name, sleep))


async def _nothing(value: bool, /) -> None:
    pass


def connect(
    database: str | bytes | os.PathLike[str] | Any,
    *,
    iter_chunk_size: int = 64,
    loop: asyncio.AbstractEventLoop | None = None,
    timeout: float = 5.0,
    detect_types: int = 0,
    isolation_level: str | None = "",
    check_same_thread: bool = True,
    cached_statements: int = 128,
    uri: bool = False,
    foreign_keys: bool = False,
    **options: Any,
) -> Connection:
    """Returns a connection that is about to be opened. Further options are those of `flatwater.connect`, for the first
    connection of a file."""
    if loop is not None:
        warn("aiosqlite.connect() no longer uses the `loop` parameter", DeprecationWarning, stacklevel=2)
    path = os.fsdecode(database) if isinstance(database, bytes) else str(database)
    settings = Settings(path, timeout, detect_types, isolation_level, foreign_keys, options)
    return Connection(lambda: Logical(settings, uri=uri), iter_chunk_size)
