"""Results that are fetched in batches: row by row, or batch by batch.

Owns the blocks and the loops. Invariant: when the block ends, the reader is given back, however the loop was left.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from ._errors import misuse
from ._names import not_awaited, of_batches
from ._native import Executor, NativeCursor, Row, Rows

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._types import Params, Seconds, SqlLike

# After this many seconds of rows from one batch other tasks get their turn. The clock is read once per so many rows.
SLICE = 0.0005
ROWS = 64


class Batches:
    """What `cursor` and `stream` have in common: `async with`, and the native side."""

    def __init__(self, of: Executor, sql: SqlLike, params: Params, timeout: Seconds | None) -> None:
        self._native: NativeCursor | None = of._cursor(sql, params, timeout)
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
            kind = type(self).__name__.lower()
            not_awaited(kind, f"db.{kind}(sql)")

        def __getattr__(self, name: str) -> Any:
            of_batches(self, name)

    def close(self) -> None:
        """Gives the reader back. There are no more rows."""
        native, self._native = self._native, None
        if native is not None:
            native.close()

    def _entered(self) -> NativeCursor | None:
        if not self._is_entered:
            raise misuse("a loop that is left does not end what it loops over", "use `async with` around the loop")
        return self._native


class Cursor(Batches):
    """The rows of a query in batches: `async with db.cursor(sql) as batches`, `async for rows in batches`."""

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
        native = self._entered()
        return None if native is None else await native.next_batch()


class Stream(Batches):
    """The rows of a query one by one: `async with db.stream(sql) as rows`, `async for row in rows`."""

    async def __aiter__(self) -> AsyncIterator[Row]:
        while (native := self._entered()) is not None and (rows := await native.next_batch()) is not None:
            turn = time.perf_counter()
            for number, row in enumerate(rows, 1):
                yield row
                if number % ROWS == 0:
                    native.touch()
                    if time.perf_counter() - turn >= SLICE:
                        await asyncio.sleep(0)
                        turn = time.perf_counter()
                if self._native is None:
                    return
