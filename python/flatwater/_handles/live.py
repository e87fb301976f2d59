"""Live queries: results that are delivered again whenever they changed.

Owns the blocks and the loops. Invariant: when the block ends, the query is left, however the loop was left.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._errors import misuse
from .._native import Change, NativeLive, Rows

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")


class Subscription(Generic[T]):
    """The results of a live query: `async with db.live(sql) as results`, `async for rows in results`.

    The first one comes as soon as it is computed, and another one whenever a commit has changed it. Slow consumers skip
    to the newest result. An error of SQLite is raised, and the query continues: the next result can be awaited. The
    loop ends when the database is closed.
    """

    def __init__(self, begin: Callable[[], NativeLive], of: Callable[[Any], T]) -> None:
        self._begin = begin
        self._of = of
        self._native: NativeLive | None = None

    async def __aenter__(self) -> Self:
        if self._native is not None:
            raise misuse("a live query is used once", "make another one", "finished")
        self._native = self._begin()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._native is not None:
            self._native.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._native is None:
            raise misuse("the loop has no `async with` block to end the query", "use `async with` around the loop")
        result = await self._native.next()
        if result is None:
            raise StopAsyncIteration
        return self._of(result)


class Live(Subscription[Rows]):
    """The results of one live query."""

    def __init__(self, begin: Callable[[], NativeLive], begin_changes: Callable[[], NativeLive]) -> None:
        super().__init__(begin, lambda results: results[0])
        self._begin_changes = begin_changes

    def changes(self) -> Subscription[Change]:
        """Returns the changes of the result, row by row: the full result first, and then the rows that were inserted,
        updated and deleted. Rows are identified by the primary keys that the query selects."""
        return Subscription(self._begin_changes, lambda change: change)
