"""Results that are fetched in batches: row by row, or batch by batch.

Owns the blocks and the loops. Invariant: when the block ends, the reader is given back, however the loop was left.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from .._errors import misuse
from .._native import Executor, NativeBatches, Row, Rows, turn_is_due
from .._told.names import not_awaited, of_batches, refuse_unknown
from .._waiting.pause import ROWS, Pause

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._given.types import Params, Seconds, SqlLike, Types


class Parts:
    """What `batches` and `stream` have in common: `async with`, and the native side."""

    def __init__(
        self, of: Executor[Any, Any], sql: SqlLike, params: Params, types: Types | None, timeout: Seconds | None
    ) -> None:
        # Empty when it is closed. Shared with the loop over it, which must not refer to this object: when it is dropped
        # without its block, the reader is given back.
        self._open: list[NativeBatches] = [of._batches(sql, params, timeout, types)]
        self._is_entered = False

    async def __aenter__(self) -> Self:
        self._is_entered = True
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    if not TYPE_CHECKING:

        def __await__(self) -> NoReturn:
            not_awaited("result in parts", f"db.{type(self).__name__.lower()}(sql)")

        def __getattr__(self, name: str) -> Any:
            of_batches(self, name)

        def __setattr__(self, name: str, value: object) -> None:
            refuse_unknown(self, name)
            object.__setattr__(self, name, value)

    def close(self) -> None:
        """Gives the reader back. There are no more rows."""
        while self._open:
            self._open.pop().close()

    def _entered(self) -> list[NativeBatches]:
        if not self._is_entered:
            raise misuse("the loop has no `async with` block to free the reader", "use `async with` around the loop")
        return self._open


class Batches(Parts):
    """The rows of a query in batches: `async with db.batches(sql) as batches`, `async for rows in batches`."""

    def __aiter__(self) -> AsyncIterator[Rows]:
        self._entered()
        return self

    async def __anext__(self) -> Rows:
        rows = await self.next_batch()
        if rows is None:
            raise StopAsyncIteration
        return rows

    async def next_batch(self) -> Rows | None:
        """Returns the next rows, at least one, or None after the last. If it is cancelled, no rows are lost."""
        is_open = self._entered()
        return await is_open[0].next_batch() if is_open else None


class Stream(Parts):
    """The rows of a query one by one: `async with db.stream(sql) as rows`, `async for row in rows`."""

    def __init__(
        self, of: Executor[Any, Any], sql: SqlLike, params: Params, types: Types | None, timeout: Seconds | None
    ) -> None:
        super().__init__(of, sql, params, types, timeout)
        # One for all loops: the next one goes on where the last one was left.
        self._rows: AsyncIterator[Row] | None = None

    def __aiter__(self) -> AsyncIterator[Row]:
        is_open = self._entered()
        if self._rows is None:
            self._rows = _rows(is_open)
        return self._rows

    def __anext__(self) -> Awaitable[Row]:
        return self.__aiter__().__anext__()


async def _rows(is_open: list[NativeBatches]) -> AsyncIterator[Row]:
    while is_open and (rows := await is_open[0].next_batch()) is not None:
        for number, row in enumerate(rows, 1):
            yield row
            if not is_open:
                return
            if number % ROWS == 0:
                is_open[0].touch()
                if turn_is_due():
                    await Pause()
                    if not is_open:
                        return
