"""Transactions and snapshots: the blocks of code within which several calls belong together.

Owns their beginning and their end. Invariant: however a block is left, what it opened is ended.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from .._errors import misuse
from .._given.row_types import RowsT_co, RowT_co
from .._native import Call, Executor, SnapshotGuard, TransactionBlock
from .._told.names import no_attribute, not_awaited, not_in_transaction
from .reads import Batches, Stream

if TYPE_CHECKING:
    from typing_extensions import Self

    from .._given.types import Params, Seconds, SqlLike, Types
    from .blob import Blob


class Reads(Executor[RowsT_co, RowT_co]):
    """What runs SQL and reads large results in parts."""

    def stream(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Stream:
        """Returns the rows of a query one by one, in bounded memory and of one point in time, for `async with`.
        `timeout` is that of each fetch."""
        return Stream(self, sql, params, types, timeout)

    def batches(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Batches:
        """Returns the rows of a query in batches, in bounded memory and of one point in time, for `async with`.
        `timeout` is that of each fetch."""
        return Batches(self, sql, params, types, timeout)

    def open_blob(
        self, table: str, column: str, rowid: int, *, name: str = "main", timeout: Seconds | None = None
    ) -> Blob:
        """Returns the BLOB or TEXT of one row, of which parts are read and written, for `async with`. `name` is that of
        an attached database. `timeout` is that of each read and write."""
        from .blob import Blob

        return Blob(self, table, column, rowid, name, timeout)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            no_attribute(self, name)


class Transaction(TransactionBlock[RowsT_co, RowT_co], Reads[RowsT_co, RowT_co]):
    """A transaction: `async with db.transaction() as tx`. It is committed when the block ends, and rolled back if the
    block raises or its task is cancelled. It holds the writer, so other writes wait for it."""

    def transaction(self, *, timeout: Seconds | None = None) -> Transaction[RowsT_co, RowT_co]:
        """Returns a nested transaction. If its block raises, its changes are rolled back; this one stays open. While
        its block is open it is the current one: calls of the block on the outer one run in it. Calls of other tasks on
        the outer one are refused meanwhile."""
        return Transaction(self, timeout)

    def savepoint(self, name: str) -> Call[None]:
        """Opens a savepoint, to which `rollback_to` returns. They form a stack; a name may be used again, and is then
        that of the newest one. A block that nests, `transaction()`, has its own names."""
        return self._begun().savepoint(name)

    def release(self, name: str) -> Call[None]:
        """Closes the savepoint of this name and those after it, and keeps their changes. The transaction stays open."""
        return self._begun().release(name)

    def rollback_to(self, name: str) -> Call[None]:
        """Undoes all changes since the savepoint of this name, which stays open. Those after it are closed."""
        return self._begun().rollback_to(name)

    if not TYPE_CHECKING:

        def __await__(self) -> NoReturn:
            not_awaited("transaction", "db.transaction()")

        def __getattr__(self, name: str) -> Any:
            not_in_transaction(self, name)


class Snapshot(Reads[RowsT_co, RowT_co]):
    """One point in time: `async with db.snapshot() as snapshot`. All its reads see the same state, whatever is
    committed meanwhile."""

    def __init__(self, outer: Executor[RowsT_co, RowT_co], timeout: Seconds | None) -> None:
        self._outer = outer
        self._timeout = timeout
        self._guard: SnapshotGuard | None = None

    if not TYPE_CHECKING:

        def __await__(self) -> NoReturn:
            not_awaited("snapshot", "db.snapshot()")

    async def __aenter__(self) -> Self:
        if self._guard is not None:
            raise misuse("a snapshot is used once", "call `snapshot()` for another one", "finished")
        guard: SnapshotGuard = await self._outer._snapshot(self._timeout)
        self._guard = guard
        self._open(guard)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._guard is not None:
            self._guard.close()
