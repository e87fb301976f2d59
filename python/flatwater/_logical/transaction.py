"""The open transaction of a pooled connection.

Owns the right to it, which belongs to no task: any may go on with it and end it. Invariant: an object that goes away
rolls back. Leaves out when one begins.
"""

from __future__ import annotations

from .._errors import Error
from .._native import Executor, TransactionGuard
from .errors import is_busy, locked, operational
from .steps import Steps, Whole


class Open:
    """An open transaction."""

    __slots__ = ("_counted", "_savepoints", "guard", "has_changed", "is_savepoint", "on")

    def __init__(self, guard: TransactionGuard) -> None:
        self.guard = guard
        self.on = Executor()
        self.on._open(guard)
        # True once it has changed rows: what SQLite tells of earlier statements is of this connection then.
        self.has_changed = False
        # True if a SAVEPOINT began it, whose RELEASE ends it.
        self.is_savepoint = False
        self._savepoints: list[str] = []
        self._counted = 0

    def count(self) -> Steps[int]:
        """Returns how many rows were changed since it was asked before, triggers included."""
        before, self._counted = self._counted, (yield self.on.query_value("SELECT total_changes()"))
        return self._counted - before

    def rowid(self) -> Steps[int]:
        """Returns the rowid of the row that was inserted last."""
        rowid: int = yield self.on.query_value("SELECT last_insert_rowid()")
        return rowid

    def earlier(self) -> Steps[tuple[int, int]]:
        """Returns how many rows the last statement changed, and the rowid of the row that was inserted last."""
        row = yield self.on.query_one("SELECT changes(), last_insert_rowid()")
        return row[0], row[1]

    def savepoint(self, name: str) -> Steps[None]:
        """Opens a savepoint."""
        yield Whole(self.guard.savepoint(name))
        self._savepoints.append(_same(name))

    def release(self, name: str) -> Steps[bool]:
        """Closes a savepoint and those after it. Returns False if it is that which began the transaction."""
        at = self._position(name)
        if at == 0 and self.is_savepoint:
            return False
        yield Whole(self.guard.release(name))
        del self._savepoints[at:]
        return True

    def rollback_to(self, name: str) -> Steps[None]:
        """Undoes what was changed since a savepoint."""
        at = self._position(name)
        yield Whole(self.guard.rollback_to(name))
        del self._savepoints[at + 1 :]

    def _position(self, name: str) -> int:
        for at in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[at] == _same(name):
                return at
        raise operational(f"no such savepoint: {name}")


def begin(on: Executor, timeout: float) -> Steps[Open]:
    """Begins a transaction, which has the writer. Waits for the writer no longer than `timeout`."""
    try:
        # With no time at all the engine does not even look.
        opened = Open((yield on._begin(max(timeout, 0.01))))
    except Error as error:
        if is_busy(error):
            raise locked() from None
        raise
    yield from opened.count()
    return opened


def _same(name: str) -> str:
    """The name as SQLite compares it."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)
