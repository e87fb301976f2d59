"""The database: opening and closing it, and what only a database can do.

Owns the handle of a program. A database that is dropped while it is open is closed in the background, with a
`ResourceWarning`. When the interpreter ends, databases that are still open are closed.
"""

from __future__ import annotations

import atexit
import os
import warnings
import weakref
from collections.abc import Coroutine, Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _native
from ._names import no_attribute
from ._native import Executor
from ._scopes import Snapshot, Transaction

if TYPE_CHECKING:
    from typing_extensions import Self

_open: weakref.WeakSet[Database] = weakref.WeakSet()


class Database(Executor):
    """An open database: one writer, several readers, any number of tasks. Made by `connect`."""

    def __init__(self, native: _native.NativeDatabase, path: str) -> None:
        self._native = native
        self._path = path
        self._is_closed = False
        self._owners: dict[Any, int] = {}
        self._open(native, self._owners)
        _open.add(self)

    def transaction(self) -> Transaction:
        """Returns a transaction, for `async with`."""
        return Transaction(self, self._owners)

    def snapshot(self) -> Snapshot:
        """Returns a snapshot, for `async with`: several reads of one point in time."""
        return Snapshot(self)

    def migrate(
        self, migrations: Iterable[tuple[str, str]] | str | os.PathLike[str], *, ignore_missing: bool = False
    ) -> Coroutine[Any, Any, list[str]]:
        """Applies the migrations that the database does not have yet, and returns their names.

        They are pairs of a name, such as "0001_users", and SQL; or a folder with a file for each. Each is applied once,
        however many processes start at the same time.
        """
        if not isinstance(migrations, (str, os.PathLike)):
            migrations = list(migrations)
        return self._native.migrate(migrations, ignore_missing)

    def checkpoint(self, mode: str = "passive") -> Coroutine[Any, Any, _native.Checkpointed]:
        """Copies the WAL into the database now. You do not have to call this. The mode is "passive", "full", "restart" or
        "truncate"."""
        return self._native.checkpoint(mode)

    def close(self) -> Coroutine[Any, Any, None]:
        """Closes the database: executes the writes that were begun before, waits for an open transaction (`close_wait`), and
        then rolls it back. Calls that begin later raise `ProgrammingError`. Closing twice is no error."""
        self._is_closed = True
        return self._native.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __getattr__(self, name: str) -> Any:
        no_attribute(self, name)

    def __repr__(self) -> str:
        return f"<flatwater.Database {self._path!r}{' (closed)' if self._is_closed else ''}>"

    def __del__(self) -> None:
        if not self.__dict__.get("_is_closed", True):
            warnings.warn(f"unclosed database {self!r}", ResourceWarning, source=self, stacklevel=2)


class Connecting(Coroutine[Any, Any, Database]):
    """What `connect` returns: await it, or use it with `async with`."""

    __slots__ = ("_call", "_database", "_path")

    def __init__(self, path: str, options: dict[str, Any]) -> None:
        self._path = path
        self._call: Coroutine[Any, Any, _native.NativeDatabase] | None = None
        self._database: Database | None = None
        self._call = _native.connect(path, options)

    def _opened(self, native: _native.NativeDatabase) -> Database:
        return Database(native, self._path)

    def __await__(self) -> Generator[Any, None, Database]:
        assert self._call is not None
        return self._opened((yield from self._call.__await__()))

    def send(self, value: Any) -> Any:
        assert self._call is not None
        try:
            return self._call.send(value)
        except StopIteration as done:
            raise StopIteration(self._opened(done.value)) from None

    def throw(self, *exception: Any) -> Any:
        assert self._call is not None
        try:
            return self._call.throw(*exception)
        except StopIteration as done:
            raise StopIteration(self._opened(done.value)) from None

    def close(self) -> None:
        assert self._call is not None
        self._call.close()

    async def __aenter__(self) -> Database:
        self._database = await self
        return self._database

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._database is not None
        await self._database.close()


def connect(path: str | os.PathLike[str], **options: Any) -> Connecting:
    """Opens or creates the database file at `path`: `db = await connect(path)`, or `async with connect(path) as db`.

    ":memory:" is a private database in memory. Durations are seconds. An unknown option is a `TypeError` that names the
    nearest one.
    """
    return Connecting(os.fspath(path), options)


@atexit.register
def _close_all() -> None:
    """Closes what is still open when the interpreter ends, and waits for that."""
    for database in list(_open):
        if not database._is_closed:
            database._native.close_at_exit()
