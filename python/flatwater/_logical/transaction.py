"""The open transaction of a pooled connection.

Owns the right to it, which belongs to no task: any may go on with it and end it. Invariants: an object that goes away
rolls back; the right is here before the transaction is asked for, so that nobody else has it, whoever leaves meanwhile.
Leaves out when one begins.
"""

from __future__ import annotations

from .._errors import Error
from .._native import Executor, TransactionGuard
from .errors import is_busy, locked, operational
from .steps import Steps, Whole
from .told import EARLIER, Told


class Open:
    """A transaction of a connection, from before it begins to its end."""

    __slots__ = ("_savepoints", "_total", "guard", "is_savepoint", "known", "on")

    def __init__(self) -> None:
        self.guard = TransactionGuard()
        self.on = Executor()
        # What SQLite itself tells of earlier statements of this connection, from here on.
        self.known = {"last_insert_rowid"}
        # True if a SAVEPOINT began it, whose RELEASE ends it.
        self.is_savepoint = False
        self._savepoints: list[str] = []
        self._total = 0

    def begin(self, on: Executor, timeout: float, told: Told) -> Steps[None]:
        """Begins it: waits for the writer no longer than `timeout`, and takes it. If this raises, nobody has it."""
        try:
            # With no time at all the engine does not even look.
            yield on._begin(max(timeout, 0.01), self.guard, told.rowid)
            self.on._open(self.guard)
            yield from self._begun()
        except BaseException as error:
            self.guard.abandon()
            if isinstance(error, Error) and is_busy(error):
                raise locked() from None
            raise

    def _begun(self) -> Steps[None]:
        self._total = (yield Whole(self.on.query_one(EARLIER)))[2]

    def note(self, told: Told, has_changed_rows: bool) -> Steps[None]:
        """Notes what a statement has made of what the connection tells."""
        rowid, changes, total = tuple((yield Whole(self.on.query_one(EARLIER))))
        told.rowid = rowid
        told.total += total - self._total
        self._total = total
        if has_changed_rows:
            told.changes = changes
            self.known.add("changes")

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


def compiles(on: Executor, sql: str) -> Steps[bool]:
    """Returns true if a statement can be compiled."""
    try:
        yield Whole(on._prepare(sql, None))
    except Error:
        return False
    return True


def has_taken(error: Exception) -> bool:
    """Returns true if a statement that can be compiled has run when it failed: its parameters were had."""
    return getattr(error, "sqlite_errorcode", None) is not None


def _same(name: str) -> str:
    """The name as SQLite compares it."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)
