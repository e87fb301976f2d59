"""The cursors of `flatwater.aiosqlite`.

Owns the calls and the loop over rows. Leaves out what they do: `flatwater._logical`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._logical import NOT_THERE, Description, LogicalCursor, RowFactory, awaited
from .._waiting.pause import Pause, is_due

if TYPE_CHECKING:
    from typing_extensions import Self

    from . import Connection


class Cursor:
    """A statement and its result."""

    def __init__(self, conn: Connection, cursor: LogicalCursor) -> None:
        self.iter_chunk_size = conn._iter_chunk_size
        self._conn = conn
        self._cursor = cursor

    def __aiter__(self) -> AsyncIterator[Any]:
        """The rows that are left."""
        return self._rows()

    async def _rows(self) -> AsyncIterator[Any]:
        while rows := await self.fetchmany(self.iter_chunk_size):
            for number, row in enumerate(rows, 1):
                yield row
                if is_due(number):
                    await Pause()

    async def execute(self, sql: str, parameters: Any = None) -> Self:
        """Runs one statement. Returns the cursor."""
        await awaited(self._cursor.execute(sql, parameters))
        return self

    async def executemany(self, sql: str, parameters: Iterable[Any]) -> Self:
        """Runs one INSERT, UPDATE, DELETE or REPLACE for each row of parameters. Returns the cursor."""
        await awaited(self._cursor.executemany(sql, parameters))
        return self

    async def executescript(self, sql_script: str) -> Self:
        """Commits, and then runs the statements of a script one by one. Returns the cursor."""
        await awaited(self._cursor.executescript(sql_script))
        return self

    async def fetchone(self) -> Any:
        """Returns the next row, or None after the last."""
        row = self._cursor.fetchone_now()
        return await awaited(self._cursor.fetchone()) if row is NOT_THERE else row

    async def fetchmany(self, size: int | None = None) -> list[Any]:
        """Returns the next rows: `size` of them, or `arraysize`."""
        return await awaited(self._cursor.fetchmany(size))

    async def fetchall(self) -> list[Any]:
        """Returns the rows that are left."""
        return await awaited(self._cursor.fetchall())

    async def close(self) -> None:
        """Gives the result up."""
        self._cursor.close()

    @property
    def rowcount(self) -> int:
        """How many rows an INSERT, UPDATE, DELETE or REPLACE has changed; -1 for other statements."""
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        """The rowid of the row that the connection has inserted last."""
        return self._cursor.lastrowid

    @property
    def arraysize(self) -> int:
        """How many rows `fetchmany` returns."""
        return self._cursor.arraysize

    @arraysize.setter
    def arraysize(self, value: int) -> None:
        self._cursor.arraysize = value

    @property
    def description(self) -> Description | None:
        """A tuple for each column, of its name and six times None. None for a statement without rows."""
        return self._cursor.description

    @property
    def row_factory(self) -> RowFactory:
        """What makes a row of the cursor and a tuple."""
        return self._cursor.row_factory

    @row_factory.setter
    def row_factory(self, factory: RowFactory) -> None:
        self._cursor.row_factory = factory

    @property
    def connection(self) -> Connection:
        """The connection."""
        return self._conn

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
