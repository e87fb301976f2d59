"""Flatwater without `await`, for scripts, threads and WSGI: the same calls, each of which waits for its result.

    from flatwater import blocking

    with blocking.connect("app.db") as db:
        for user in db.query("SELECT id, name FROM users"):
            print(user["name"])

Owns the calls that wait, and their blocks. A `Database` may be used by any number of threads. Do not use it on a thread that
runs an event loop: it would hold the loop.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _native
from ._database import Opened
from ._errors import misuse
from ._names import no_attribute
from ._native import BatchResult, Checkpointed, Executed, NativeCursor, Row, Rows, SnapshotGuard, TransactionGuard

if TYPE_CHECKING:
    from typing_extensions import Self


class Executor(_native.Executor):
    """What runs SQL, and waits for it."""

    def execute(self, sql: Any, params: Any = None, *, timeout: float | None = None) -> Executed:
        """Runs one statement that returns no rows."""
        return super().execute(sql, params, timeout=timeout)._wait()

    def executemany(self, sql: str, rows: Iterable[Any], *, timeout: float | None = None) -> int:
        """Runs one statement once per row of parameters, all or nothing. Returns the number of rows it changed."""
        return super().executemany(sql, rows, timeout=timeout)._wait()

    def executescript(self, sql: str, *, timeout: float | None = None) -> None:
        """Runs several statements without parameters, separated by semicolons, all or nothing."""
        return super().executescript(sql, timeout=timeout)._wait()

    def batch(self, statements: Iterable[Any], *, timeout: float | None = None) -> list[BatchResult]:
        """Runs several statements with their parameters, all or nothing, in one trip. Returns a result for each."""
        return super().batch(statements, timeout=timeout)._wait()

    def query(self, sql: Any, params: Any = None, *, into: Any = None, timeout: float | None = None) -> Any:
        """Runs one statement and returns all its rows: a sequence of `Row`, or a list of what `into` makes of each."""
        return super().query(sql, params, into=into, timeout=timeout)._wait()

    def query_one(self, sql: Any, params: Any = None, *, into: Any = None, timeout: float | None = None) -> Any:
        """Runs one statement and returns its first row, or None."""
        return super().query_one(sql, params, into=into, timeout=timeout)._wait()

    def query_value(self, sql: Any, params: Any = None, *, timeout: float | None = None) -> Any:
        """Runs one statement and returns the first value of its first row; None for NULL and if there is no row."""
        return super().query_value(sql, params, timeout=timeout)._wait()

    def query_json(self, sql: Any, params: Any = None, *, timeout: float | None = None) -> str:
        """Runs one statement and returns its rows as the text of a JSON array of objects."""
        return super().query_json(sql, params, timeout=timeout)._wait()

    def stream(self, sql: Any, params: Any = None) -> Stream:
        """Returns the rows of a query one by one, in bounded memory and of one point in time, for `with`."""
        return Stream(self, sql, params)

    def cursor(self, sql: Any, params: Any = None) -> Cursor:
        """Returns the rows of a query in batches, for `with`."""
        return Cursor(self, sql, params)

    def __getattr__(self, name: str) -> Any:
        no_attribute(self, name)


class Transaction(Executor):
    """A transaction: `with db.transaction() as tx`. It is committed when the block ends, and rolled back if it raises."""

    def __init__(self, outer: Executor, owners: dict[Any, int] | None) -> None:
        self._outer = outer
        # The threads that have a transaction of this database open, and how many.
        self._owners = owners
        self._guard: TransactionGuard | None = None

    def __enter__(self) -> Self:
        if self._guard is not None:
            raise misuse("a transaction is used once", "call `transaction()` for another one")
        self._guard = self._outer._begin()._wait()
        self._open(self._guard)
        if self._owners is not None:
            self._owners[threading.get_ident()] = 1
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._owners is not None:
            self._owners.pop(threading.get_ident(), None)
        guard = self._guard
        if guard is None:
            return
        if exc_type is None:
            guard.commit()._wait()
        elif guard.is_open():
            try:
                guard.rollback()._wait()
            except Exception:
                # The error of the block is raised. If the rollback fails, the connection is replaced.
                pass

    def transaction(self) -> Transaction:
        """Returns a nested transaction. What it did is undone if its block raises; this one stays open."""
        return Transaction(self, None)

    @property
    def in_transaction(self) -> bool:
        """True until the transaction is over."""
        return self._guard is not None and self._guard.is_open()


class Snapshot(Executor):
    """One point in time: `with db.snapshot() as snapshot`. Its reads see it whatever is committed meanwhile."""

    def __init__(self, outer: Executor) -> None:
        self._outer = outer
        self._guard: SnapshotGuard | None = None

    def __enter__(self) -> Self:
        if self._guard is not None:
            raise misuse("a snapshot is used once", "call `snapshot()` for another one")
        self._guard = self._outer._snapshot()._wait()
        self._open(self._guard)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._guard is not None:
            self._guard.close()


class Cursor:
    """The rows of a query in batches: `with db.cursor(sql) as batches`, `for rows in batches`."""

    def __init__(self, of: Executor, sql: Any, params: Any) -> None:
        self._native: NativeCursor = of._cursor(sql, params)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._native.close()

    def __iter__(self) -> Iterator[Rows]:
        while (rows := self._native.next_batch()._wait()) is not None:
            yield rows


class Stream:
    """The rows of a query one by one: `with db.stream(sql) as rows`, `for row in rows`."""

    def __init__(self, of: Executor, sql: Any, params: Any) -> None:
        self._cursor = Cursor(of, sql, params)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._cursor._native.close()

    def __iter__(self) -> Iterator[Row]:
        for rows in self._cursor:
            for number, row in enumerate(rows, 1):
                yield row
                if number % 64 == 0:
                    self._cursor._native.touch()


class Database(Opened, Executor):
    """An open database. Made by `connect`."""

    def transaction(self) -> Transaction:
        """Returns a transaction, for `with`."""
        return Transaction(self, self._owners)

    def snapshot(self) -> Snapshot:
        """Returns a snapshot, for `with`: several reads of one point in time."""
        return Snapshot(self)

    def migrate(
        self, migrations: Iterable[tuple[str, str]] | str | os.PathLike[str], *, ignore_missing: bool = False
    ) -> list[str]:
        """Applies the migrations that the database does not have yet, and returns their names."""
        return self._migrate(migrations, ignore_missing)._wait()

    def checkpoint(self, mode: str = "passive") -> Checkpointed:
        """Copies the WAL into the database now. You do not have to call this."""
        return self._native.checkpoint(mode)._wait()

    def close(self) -> None:
        """Closes the database, and waits for that. Closing twice is no error."""
        self._begin_close()._wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def connect(path: str | os.PathLike[str], **options: Any) -> Database:
    """Opens or creates the database file at `path`, and waits for that. The options are those of `flatwater.connect`."""
    path = os.fspath(path)
    return Database(_native.connect(path, options)._wait(), path)
