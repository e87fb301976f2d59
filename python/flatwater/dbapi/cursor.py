"""The cursors of `flatwater.dbapi`.

Owns the calls, which block, and the loop over rows. Leaves out what they do: `flatwater._logical`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._logical import NOT_THERE, Description, LogicalCursor, RowFactory, waited

if TYPE_CHECKING:
    from typing_extensions import Self

    from . import Connection


class Cursor:
    """A statement and its result. It is an iterator over the rows that are left."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = LogicalCursor(connection._logical)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        """Runs one statement. Returns the cursor."""
        waited(self._cursor.execute(sql, parameters))
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Self:
        """Runs one INSERT, UPDATE, DELETE or REPLACE for each row of parameters. Returns the cursor."""
        waited(self._cursor.executemany(sql, parameters))
        return self

    def executescript(self, sql_script: str, /) -> Self:
        """Commits, and then runs the statements of a script one by one. Returns the cursor."""
        waited(self._cursor.executescript(sql_script))
        return self

    def fetchone(self) -> Any:
        """Returns the next row, or None after the last."""
        row = self._cursor.fetchone_now()
        return waited(self._cursor.fetchone()) if row is NOT_THERE else row

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """Returns the next rows: `size` of them, or `arraysize`."""
        return waited(self._cursor.fetchmany(size))

    def fetchall(self) -> list[Any]:
        """Returns the rows that are left."""
        return waited(self._cursor.fetchall())

    def close(self) -> None:
        """Gives the result up."""
        self._cursor.close()

    def setinputsizes(self, sizes: Any, /) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: Any, column: Any = None, /) -> None:
        """Does nothing, as PEP 249 allows."""

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
        return self._connection
