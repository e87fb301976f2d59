"""The connections of `flatwater.dbapi`.

Owns their calls, which block. Leaves out what they do: `flatwater._logical`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload
from warnings import warn

from .._logical import Logical, RowFactory, Settings, waited
from .._logical.copies import Progress, backup, iterdump
from .._logical.limits import limit
from .callbacks import Callbacks
from .cursor import Cursor

if TYPE_CHECKING:
    from typing_extensions import Self

C = TypeVar("C", bound=Cursor)


class Connection(Callbacks):
    """A connection. As a block it commits at the end, or rolls back if an exception leaves it; it does not close."""

    Warning = sqlite3.Warning
    Error = sqlite3.Error
    InterfaceError = sqlite3.InterfaceError
    DatabaseError = sqlite3.DatabaseError
    DataError = sqlite3.DataError
    OperationalError = sqlite3.OperationalError
    IntegrityError = sqlite3.IntegrityError
    InternalError = sqlite3.InternalError
    ProgrammingError = sqlite3.ProgrammingError
    NotSupportedError = sqlite3.NotSupportedError

    def __init__(
        self,
        database: str | bytes | os.PathLike[str],
        timeout: float = 5.0,
        detect_types: int = 0,
        isolation_level: str | None = "",
        check_same_thread: bool = True,
        cached_statements: int = 128,
        uri: bool = False,
        foreign_keys: bool = False,
        **options: Any,
    ) -> None:
        settings = Settings(os.fsdecode(database), timeout, detect_types, isolation_level, foreign_keys, options)
        logical = Logical(settings, uri=uri)
        waited(logical.open())
        self._logical = logical

    def __del__(self) -> None:
        logical = self.__dict__.get("_logical")
        if logical is None or not logical.is_open:
            return
        warn(f"unclosed database in {self!r}", ResourceWarning, stacklevel=1, source=self)
        logical.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if exc_type is not None:
            self.rollback()
            return
        try:
            self.commit()
        except BaseException:
            self.rollback()
            raise

    @overload
    def cursor(self, factory: None = None) -> Cursor: ...
    @overload
    def cursor(self, factory: Callable[[Connection], C]) -> C: ...
    def cursor(self, factory: Callable[[Connection], Cursor] | None = None) -> Cursor:
        """Returns a new cursor."""
        return (factory or Cursor)(self)

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """Runs one statement. Returns a new cursor with its result."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Cursor:
        """Runs one INSERT, UPDATE, DELETE or REPLACE for each row of parameters. Returns a new cursor."""
        return self.cursor().executemany(sql, parameters)

    def executescript(self, sql_script: str, /) -> Cursor:
        """Commits, and then runs the statements of a script one by one. Returns a new cursor."""
        return self.cursor().executescript(sql_script)

    def commit(self) -> None:
        """Commits the transaction, if one is open."""
        waited(self._logical.commit())

    def rollback(self) -> None:
        """Rolls the transaction back, if one is open."""
        waited(self._logical.rollback())

    def close(self) -> None:
        """Rolls back and closes, when the calls of other threads are done. Closing twice is allowed."""
        waited(self._logical.close())

    def getlimit(self, category: int, /) -> int:
        """Returns the limit of SQLite that a constant of `sqlite3` names, such as SQLITE_LIMIT_VARIABLE_NUMBER."""
        return waited(limit(self._logical, category))

    def iterdump(self) -> Iterator[str]:
        """The database as SQL."""
        return iter(waited(iterdump(self._logical)))

    def backup(
        self,
        target: Connection | sqlite3.Connection,
        *,
        pages: int = -1,
        progress: Progress | None = None,
        name: str = "main",
        sleep: float = 0.250,
    ) -> None:
        """Copies the database into that of another connection: of this module, or of `sqlite3`."""
        into = target._logical if isinstance(target, Connection) else target
        waited(backup(self._logical, into, pages, progress, name, sleep))

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""
        return self._logical.in_transaction

    @property
    def isolation_level(self) -> str | None:
        """How an INSERT, UPDATE, DELETE or REPLACE begins a transaction. None: it begins none."""
        return self._logical.isolation_level

    @isolation_level.setter
    def isolation_level(self, value: str | None) -> None:
        self._logical.isolation_level = value

    @property
    def row_factory(self) -> RowFactory:
        """What makes a row of a cursor and a tuple, for new cursors. None: the tuple."""
        return self._logical.row_factory

    @row_factory.setter
    def row_factory(self, factory: RowFactory) -> None:
        self._logical.row_factory = factory

    @property
    def text_factory(self) -> Callable[[bytes], Any]:
        """What makes the value of a text, of its bytes."""
        factory: Callable[[bytes], Any] = self._logical.text_factory
        return factory

    @text_factory.setter
    def text_factory(self, factory: Callable[[bytes], Any]) -> None:
        self._logical.text_factory = factory

    @property
    def total_changes(self) -> int:
        """How many rows the connection has changed."""
        return self._logical.total_changes


def connect(
    database: str | bytes | os.PathLike[str],
    timeout: float = 5.0,
    detect_types: int = 0,
    isolation_level: str | None = "",
    check_same_thread: bool = True,
    factory: type[Connection] | None = None,
    cached_statements: int = 128,
    uri: bool = False,
    *,
    foreign_keys: bool = False,
    **options: Any,
) -> Connection:
    """Opens a connection. Any thread may use it, whatever `check_same_thread` says. Further options are those of
    `flatwater.connect`, for the first connection of a file."""
    return (factory or Connection)(
        database,
        timeout,
        detect_types,
        isolation_level,
        check_same_thread,
        cached_statements,
        uri,
        foreign_keys,
        **options,
    )
