"""What `flatwater.blocking` reads in batches.

Owns the blocks and the loops. Invariant: when the block ends, the reader is given back, however the loop was left.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._native import NativeBatches, Row, Rows
from .._told.names import of_batches, refuse_unknown

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._given.types import Params, Seconds, SqlLike, Types
    from . import Executor


class Parts:
    """What `batches` and `stream` have in common: `with`, and the native side."""

    def __init__(
        self, of: Executor[Any, Any], sql: SqlLike, params: Params, types: Types | None, timeout: Seconds | None
    ) -> None:
        # Empty when it is closed. Shared with the loop over it, which must not refer to this object: when it is dropped
        # without its block, the reader is given back.
        self._open: list[NativeBatches] = [of._on._batches(sql, params, timeout, types)]

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

    def __init__(
        self, of: Executor[Any, Any], sql: SqlLike, params: Params, types: Types | None, timeout: Seconds | None
    ) -> None:
        super().__init__(of, sql, params, types, timeout)
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
