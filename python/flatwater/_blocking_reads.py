"""What `flatwater.blocking` reads in batches, and its prepared statements.

Owns the blocks and the loops. Invariant: when the block ends, the reader is given back, however the loop was left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ._names import of_batches
from ._native import Executed, NativeCursor, Row, Rows

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._types import Params, Seconds, SqlLike
    from .blocking import Executor

T = TypeVar("T")


class Batches:
    """What `cursor` and `stream` have in common: `with`, and the native side."""

    def __init__(self, of: Executor, sql: SqlLike, params: Params, timeout: Seconds | None) -> None:
        self._native: NativeCursor = of._on._cursor(sql, params, timeout)
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the reader back. There are no more rows."""
        self._is_closed = True
        self._native.close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            of_batches(self, name, blocking=True)


class Cursor(Batches):
    """The rows of a query in batches: `with db.cursor(sql) as batches`, `for rows in batches`."""

    def next_batch(self) -> Rows | None:
        """Returns the next rows, at least one, or None after the last."""
        return self._native.next_batch()._wait()

    def __iter__(self) -> Iterator[Rows]:
        while (rows := self.next_batch()) is not None:
            yield rows


class Stream(Batches):
    """The rows of a query one by one: `with db.stream(sql) as rows`, `for row in rows`."""

    def __iter__(self) -> Iterator[Row]:
        while (rows := self._native.next_batch()._wait()) is not None:
            for number, row in enumerate(rows, 1):
                yield row
                if self._is_closed:
                    return
                if number % 64 == 0:
                    self._native.touch()


class Prepared:
    """A statement of a database: `statement = db.prepare(sql)`. Its calls do not belong to a transaction."""

    __slots__ = ("_on", "sql")

    def __init__(self, on: Executor, sql: str) -> None:
        self._on = on
        self.sql = sql

    def execute(self, params: Params = None, *, timeout: Seconds | None = None) -> Executed:
        """As `Database.execute`."""
        return self._on.execute(self.sql, params, timeout=timeout)

    def executemany(self, rows: Iterable[Params], *, timeout: Seconds | None = None) -> int:
        """As `Database.executemany`."""
        return self._on.executemany(self.sql, rows, timeout=timeout)

    @overload
    def query(self, params: Params = None, *, into: None = None, timeout: Seconds | None = None) -> Rows: ...

    @overload
    def query(
        self, params: Params = None, *, into: type[dict[Any, Any]], timeout: Seconds | None = None
    ) -> list[dict[str, Any]]: ...

    @overload
    def query(
        self, params: Params = None, *, into: type[tuple[Any, ...]], timeout: Seconds | None = None
    ) -> list[tuple[Any, ...]]: ...

    @overload
    def query(self, params: Params = None, *, into: Callable[..., T], timeout: Seconds | None = None) -> list[T]: ...

    def query(self, params: Params = None, *, into: Any = None, timeout: Seconds | None = None) -> Any:
        """As `Database.query`."""
        return self._on.query(self.sql, params, into=into, timeout=timeout)

    @overload
    def query_one(self, params: Params = None, *, into: None = None, timeout: Seconds | None = None) -> Row | None: ...

    @overload
    def query_one(
        self, params: Params = None, *, into: type[dict[Any, Any]], timeout: Seconds | None = None
    ) -> dict[str, Any] | None: ...

    @overload
    def query_one(
        self, params: Params = None, *, into: type[tuple[Any, ...]], timeout: Seconds | None = None
    ) -> tuple[Any, ...] | None: ...

    @overload
    def query_one(
        self, params: Params = None, *, into: Callable[..., T], timeout: Seconds | None = None
    ) -> T | None: ...

    def query_one(self, params: Params = None, *, into: Any = None, timeout: Seconds | None = None) -> Any:
        """As `Database.query_one`."""
        return self._on.query_one(self.sql, params, into=into, timeout=timeout)

    def query_value(self, params: Params = None, *, timeout: Seconds | None = None) -> Any:
        """As `Database.query_value`."""
        return self._on.query_value(self.sql, params, timeout=timeout)

    def query_values(self, params: Params = None, *, timeout: Seconds | None = None) -> list[Any]:
        """As `Database.query_values`."""
        return self._on.query_values(self.sql, params, timeout=timeout)

    def query_json(
        self,
        params: Params = None,
        *,
        arrays: bool = False,
        big_integers_as_strings: bool = False,
        embed: list[str] | None = None,
        timeout: Seconds | None = None,
    ) -> str:
        """As `Database.query_json`."""
        strings = big_integers_as_strings
        return self._on.query_json(
            self.sql, params, arrays=arrays, big_integers_as_strings=strings, embed=embed, timeout=timeout
        )

    def __repr__(self) -> str:
        return f"<flatwater.blocking.Prepared {self.sql!r}>"
