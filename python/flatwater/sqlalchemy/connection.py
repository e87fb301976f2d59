"""What SQLAlchemy calls as a driver with connections and cursors, over logical connections.

Owns their calls, which run in a greenlet of SQLAlchemy. Invariants: a statement with all its rows is one switch to the
task and back; what has nothing to do or to wait for switches never. The order of statements is that of the logical
connection, which has no lock of one loop. Leaves out what statements do: `flatwater._logical`.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, cast

from sqlalchemy.connectors.asyncio import (
    AsyncAdapt_dbapi_connection,
    AsyncAdapt_dbapi_cursor,
    AsyncAdapt_dbapi_module,
    AsyncAdapt_terminate,
)
from sqlalchemy.util import EMPTY_DICT

from .. import aiosqlite
from .._logical import NOT_THERE, Logical, LogicalCursor, Steps, awaited
from .._logical.files import with_tuning
from .keys import Keys
from .version import await_, describe

NAMES = (
    "Binary",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "PARSE_COLNAMES",
    "PARSE_DECLTYPES",
    "ProgrammingError",
    "Warning",
)


class FlatwaterCursor(AsyncAdapt_dbapi_cursor):
    """A cursor that has all rows of its statement."""

    __slots__ = ()

    _awaitable_cursor_close = False

    def __init__(self, adapt_connection: FlatwaterConnection) -> None:
        self._adapt_connection = adapt_connection
        self._connection = adapt_connection._connection
        self._cursor = cast(Any, LogicalCursor(adapt_connection._logical))
        self._soft_closed_memoized = EMPTY_DICT
        self._rows = deque()

    def execute(self, operation: Any, parameters: Any = None) -> Any:
        """Runs one statement."""
        await_(awaited(self._run(operation, parameters)))

    def _run(self, operation: Any, parameters: Any) -> Steps[None]:
        cursor: Any = self._cursor
        yield from cursor.execute(operation, parameters)
        self._rows = deque() if cursor.description is None else deque((yield from cursor.fetchall()))

    def executemany(self, operation: Any, seq_of_parameters: Any) -> Any:
        """Runs one statement for each row of parameters. Those of RETURNING are there, of all runs."""
        await_(awaited(self._run_many(operation, seq_of_parameters)))

    def _run_many(self, operation: Any, seq_of_parameters: Any) -> Steps[None]:
        cursor: Any = self._cursor
        yield from cursor.run_many(operation, seq_of_parameters)
        self._rows = deque() if cursor.description is None else deque((yield from cursor.fetchall()))


class FlatwaterStreamCursor(FlatwaterCursor):
    """A cursor that reads its rows as they are wanted."""

    __slots__ = ()

    server_side = True

    def _run(self, operation: Any, parameters: Any) -> Steps[None]:
        cursor: Any = self._cursor
        yield from cursor.execute(operation, parameters)

    def _run_many(self, operation: Any, seq_of_parameters: Any) -> Steps[None]:
        cursor: Any = self._cursor
        yield from cursor.run_many(operation, seq_of_parameters)

    def fetchone(self) -> Any:
        """Returns the next row, or None after the last."""
        cursor: Any = self._cursor
        row = cursor.fetchone_now()
        return await_(awaited(cursor.fetchone())) if row is NOT_THERE else row

    def fetchmany(self, size: int | None = None) -> Sequence[Any]:
        """Returns the next rows: `size` of them, or `arraysize`."""
        cursor: Any = self._cursor
        rows: Sequence[Any] = await_(awaited(cursor.fetchmany(size)))
        return rows

    def fetchall(self) -> Sequence[Any]:
        """Returns the rows that are left."""
        cursor: Any = self._cursor
        rows: Sequence[Any] = await_(awaited(cursor.fetchall()))
        return rows

    def __iter__(self) -> Iterator[Any]:
        while (row := self.fetchone()) is not None:
            yield row


class FlatwaterConnection(Keys, AsyncAdapt_terminate, AsyncAdapt_dbapi_connection):
    """A connection. `driver_connection` is that of `flatwater.aiosqlite`."""

    __slots__ = ("_has_keys_off", "_logical")

    _cursor_cls: Any = FlatwaterCursor
    _ss_cursor_cls: Any = FlatwaterStreamCursor

    def __init__(self, dbapi: Any, connection: aiosqlite.Connection) -> None:
        self.dbapi = dbapi
        self._connection = cast(Any, connection)
        self._logical: Logical = connection._core
        self._has_keys_off = False

    @property
    def isolation_level(self) -> str | None:
        """How an INSERT, UPDATE, DELETE or REPLACE begins a transaction. None: it begins none."""
        return self._logical.isolation_level

    @isolation_level.setter
    def isolation_level(self, value: str | None) -> None:
        if value is None:
            self.commit()
        self._logical.isolation_level = value

    def create_function(self, *args: Any, **kwargs: Any) -> None:
        """Registers a function written in Python, which makes the connection its own."""
        await_(self._connection.create_function(*args, **kwargs))

    def _rows(self, sql: str) -> list[Any]:
        cursor: Any = self.cursor()
        cursor.execute(sql)
        rows: list[Any] = cursor.fetchall()
        return rows

    def commit(self) -> None:
        """Commits the transaction, if one is open."""
        self._check_keys()
        if not self._logical.has_nothing_to_end:
            await_(awaited(self._logical.commit()))
        self._turn_keys_on()

    def rollback(self) -> None:
        """Rolls the transaction back, if one is open."""
        if self._logical.is_open and not self._logical.has_nothing_to_end:
            await_(awaited(self._logical.rollback()))
        self._turn_keys_on()

    def close(self) -> None:
        """Rolls back and closes. Closing twice is allowed."""
        if self._logical.is_open:
            await_(self._connection.close())

    async def _terminate_graceful_close(self) -> None:
        await self._connection.close()

    def _terminate_force_close(self) -> None:
        self._logical.drop()


class FlatwaterModule(AsyncAdapt_dbapi_module):
    """The driver's module. Its exceptions are those of `sqlite3`, which those of Flatwater derive from."""

    def __init__(self) -> None:
        describe(super().__init__, aiosqlite, sqlite3)
        self.paramstyle = "qmark"
        self.sqlite_version = aiosqlite.sqlite_version
        self.sqlite_version_info = aiosqlite.sqlite_version_info
        for name in NAMES:
            setattr(self, name, getattr(sqlite3, name))

    def connect(self, *args: Any, async_creator_fn: Any = None, **kwargs: Any) -> FlatwaterConnection:
        """Opens a connection: that of `flatwater.aiosqlite.connect`, or that of the engine's `async_creator`."""
        if async_creator_fn is None:
            # SQLAlchemy writes texts in single quotes, and names that it takes from the program in double quotes.
            kwargs = with_tuning(kwargs, double_quoted_strings=False)
        connection = (async_creator_fn or aiosqlite.connect)(*args, **kwargs)
        return FlatwaterConnection(self, await_(connection))
