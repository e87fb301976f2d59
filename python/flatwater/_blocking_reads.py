"""What `flatwater.blocking` reads in batches, and its prepared statements.

Owns the blocks and the loops. Invariant: when the block ends, the reader is given back, however the loop was left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ._names import of_batches, refuse_unknown
from ._native import ExecuteResult, NativeBatches, Row, Rows

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._types import Params, Seconds, SqlLike
    from .blocking import Executor

T = TypeVar("T")


class Parts:
    """What `batches` and `stream` have in common: `with`, and the native side."""

    def __init__(self, of: Executor, sql: SqlLike, params: Params, timeout: Seconds | None) -> None:
        # Empty when it is closed. Shared with the loop over it, which must not refer to this object: when it is dropped
        # without its block, the reader is given back.
        self._open: list[NativeBatches] = [of._on._batches(sql, params, timeout)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the reader back. There are no more rows."""
        while self._open:
            self._open.pop().close()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            of_batches(self, name, blocking=True)

        def __setattr__(self, name: str, value: object) -> None:
            refuse_unknown(self, name)
            object.__setattr__(self, name, value)


class Batches(Parts):
    """The rows of a query in batches: `with db.batches(sql) as batches`, `for rows in batches`."""

    def next_batch(self) -> Rows | None:
        """Returns the next rows, at least one, or None after the last."""
        return self._open[0].next_batch()._wait() if self._open else None

    def __iter__(self) -> Iterator[Rows]:
        return self

    def __next__(self) -> Rows:
        rows = self.next_batch()
        if rows is None:
            raise StopIteration
        return rows


class Stream(Parts):
    """The rows of a query one by one: `with db.stream(sql) as rows`, `for row in rows`."""

    def __init__(self, of: Executor, sql: SqlLike, params: Params, timeout: Seconds | None) -> None:
        super().__init__(of, sql, params, timeout)
        # One for all loops: the next one goes on where the last one was left.
        self._rows: Iterator[Row] | None = None

    def __iter__(self) -> Iterator[Row]:
        if self._rows is None:
            self._rows = _rows(self._open)
        return self._rows

    def __next__(self) -> Row:
        return next(iter(self))


def _rows(is_open: list[NativeBatches]) -> Iterator[Row]:
    while is_open and (rows := is_open[0].next_batch()._wait()) is not None:
        for number, row in enumerate(rows, 1):
            yield row
            if not is_open:
                return
            if number % 64 == 0:
                is_open[0].touch()


class Prepared:
    """A statement of a database: `statement = db.prepare(sql)`. Its calls do not belong to a transaction."""

    __slots__ = ("_on", "sql")

    def __init__(self, on: Executor, sql: str) -> None:
        self._on = on
        self.sql = sql

    def execute(self, params: Params = None, *, timeout: Seconds | None = None) -> ExecuteResult:
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
    def query_one(self, params: Params = None, *, into: None = None, timeout: Seconds | None = None) -> Row: ...

    @overload
    def query_one(
        self, params: Params = None, *, into: type[dict[Any, Any]], timeout: Seconds | None = None
    ) -> dict[str, Any]: ...

    @overload
    def query_one(
        self, params: Params = None, *, into: type[tuple[Any, ...]], timeout: Seconds | None = None
    ) -> tuple[Any, ...]: ...

    @overload
    def query_one(self, params: Params = None, *, into: Callable[..., T], timeout: Seconds | None = None) -> T: ...

    def query_one(self, params: Params = None, *, into: Any = None, timeout: Seconds | None = None) -> Any:
        """As `Database.query_one`."""
        return self._on.query_one(self.sql, params, into=into, timeout=timeout)

    @overload
    def query_optional(
        self, params: Params = None, *, into: None = None, timeout: Seconds | None = None
    ) -> Row | None: ...

    @overload
    def query_optional(
        self, params: Params = None, *, into: type[dict[Any, Any]], timeout: Seconds | None = None
    ) -> dict[str, Any] | None: ...

    @overload
    def query_optional(
        self, params: Params = None, *, into: type[tuple[Any, ...]], timeout: Seconds | None = None
    ) -> tuple[Any, ...] | None: ...

    @overload
    def query_optional(
        self, params: Params = None, *, into: Callable[..., T], timeout: Seconds | None = None
    ) -> T | None: ...

    def query_optional(self, params: Params = None, *, into: Any = None, timeout: Seconds | None = None) -> Any:
        """As `Database.query_optional`."""
        return self._on.query_optional(self.sql, params, into=into, timeout=timeout)

    def query_value(self, params: Params = None, *, timeout: Seconds | None = None) -> Any:
        """As `Database.query_value`."""
        return self._on.query_value(self.sql, params, timeout=timeout)

    def query_optional_value(self, params: Params = None, *, timeout: Seconds | None = None) -> Any:
        """As `Database.query_optional_value`."""
        return self._on.query_optional_value(self.sql, params, timeout=timeout)

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
