"""A logical connection that has a connection of its own: everything that SQLite allows is allowed there.

Owns how its statements run. Invariants: a transaction that was ended by others is reported once; what was told before
the connection was there is told of it too. Leaves out the connection, which the engine has beside its writer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._native import Executor
from .files import Handle, Settings
from .result import Result
from .statement import Kind, Statement
from .steps import Steps, Whole
from .told import Told
from .values import parameters

if TYPE_CHECKING:
    from .._native import NativeConnection


class Own:
    """How the statements of a connection of one's own run."""

    is_idle = False
    is_deferred = False

    def __init__(self, handle: Handle, settings: Settings, told: Told) -> None:
        self.native: NativeConnection = handle._native.connection(settings.timeout, settings.foreign_keys)
        self.on = Executor()
        self.on._open(self.native)
        self._settings = settings
        self._told = told
        # The calls that run beside its statements.
        self.running: set[Any] = set()
        # What the connection tells of earlier statements is known once it has changed rows.
        self._has_changed = False
        self._was_open = False

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""
        return self.native.in_transaction()

    @property
    def has_nothing_to_end(self) -> bool:
        """True if no transaction is open, and none was ended by others."""
        return not self._was_open and not self.in_transaction

    @property
    def total_changes(self) -> int:
        """How many rows were changed, triggers included."""
        return self._told.total + self.native.total_changes()

    def run(self, what: Statement, given: Any, begins: bool) -> Steps[Result]:
        """Runs one statement. `begins`: one that changes rows begins a transaction."""
        yield from self._raise_if_lost()
        values = parameters(what.sql, given)
        if begins and what.is_dml and not self.in_transaction:
            yield from self._do("BEGIN IMMEDIATE")
        sql = self._told.text(what, self._has_changed)
        result = Result()
        try:
            changes, rowid = yield from self._one(what, sql, values, result)
        finally:
            self._was_open = self.in_transaction
        if what.is_dml or changes:
            self._tell(changes, rowid)
        result.lastrowid = self._told.rowid
        if what.is_dml:
            result.rowcount = changes
        return result

    def _one(self, what: Statement, sql: str, values: Any, result: Result) -> Steps[tuple[int, int | None]]:
        """Runs a statement, and returns what it changed. It may run at once if it is known whether it has rows."""
        if what.kind is Kind.READ:
            result.add((yield self.on.query(sql, values)), self._settings.detect_types)
            return 0, None
        if what.kind is not Kind.PRAGMA and not what.has_rows:
            done = yield Whole(self.on.execute(sql, values))
            return done.changes, done.last_insert_rowid
        [done] = yield Whole(self.on.batch([(sql, values)]))
        if done.rows is not None:
            result.add(done.rows, self._settings.detect_types)
        return done.changes, done.last_insert_rowid

    def many(self, what: Statement, rows: Iterable[Any], begins: bool) -> Steps[Result]:
        """Runs one statement for each row of parameters. If one fails, or cannot be had, those before it stay."""
        yield from self._raise_if_lost()
        if begins and not self.in_transaction:
            yield from self._do("BEGIN IMMEDIATE")
        result, before = Result(), self.native.total_changes()
        given = (parameters(what.sql, row) for row in rows)
        try:
            result.rowcount = yield Whole(self.on._executemany_kept(what.sql, given))
        except Exception:
            self._was_open = self.in_transaction
            yield from self._tell_of_many(what, before)
            raise
        finally:
            self._was_open = self.in_transaction
        yield from self._tell_of_many(what, before)
        return result

    def _tell_of_many(self, what: Statement, before: int) -> Steps[None]:
        inserts = what.first in ("INSERT", "REPLACE") and self.native.total_changes() != before
        self._tell(0, (yield self.on.query_value("SELECT last_insert_rowid()")) if inserts else None)

    def begin(self) -> Steps[None]:
        """Begins a transaction that takes nothing yet."""
        yield from self._do("BEGIN")

    def commit(self) -> Steps[None]:
        """Commits the transaction, if one is open."""
        yield from self._raise_if_lost()
        if self.in_transaction:
            yield from self._do("COMMIT")

    def rollback(self) -> Steps[None]:
        """Rolls the transaction back, if one is open or was ended by others."""
        if self.in_transaction or self._was_open:
            yield from self._do("ROLLBACK")

    def close(self) -> Steps[None]:
        """Closes the connection, which rolls back."""
        yield self.native.close()

    def interrupt(self) -> None:
        """Interrupts what runs, in any task or thread."""
        self.native.interrupt()
        for running in list(self.running):
            running.interrupt()

    def abandon(self) -> None:
        """Closes it without waiting for that."""
        self.on = Executor()
        del self.native

    def _do(self, control: str) -> Steps[None]:
        try:
            yield Whole(self.on.execute(control))
        finally:
            self._was_open = self.in_transaction

    def _raise_if_lost(self) -> Steps[None]:
        """Raises once what has ended the transaction."""
        if self._was_open and not self.in_transaction:
            yield from self._do("COMMIT")

    def _tell(self, changes: int, rowid: int | None) -> None:
        self._has_changed = True
        self._told.changes = changes
        if rowid is not None:
            self._told.rowid = rowid
