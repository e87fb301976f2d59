"""A logical connection that has a connection of its own: everything that SQLite allows is allowed there.

Owns how its statements run. Invariants: a transaction that was ended by others is reported once; what was told before
the connection was there is told of it too. Leaves out the connection, which the engine has beside its writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._native import Executor
from .files import Handle, Settings
from .result import Result, for_each
from .statement import Kind, Statement
from .steps import Steps, Whole
from .told import EARLIER, Told
from .transaction import compiles, has_taken
from .values import Unavailable, had_rows, parameters

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
        # What SQLite itself tells of earlier statements of this connection, from here on. At first it tells 0.
        self._known = {
            name for name, number in (("changes", told.changes), ("last_insert_rowid", told.rowid)) if not number
        }
        self._total_before = told.total
        self._was_open = False
        self._has_attached = False

    def count_from_here(self) -> Steps[None]:
        """Notes what SQLite has counted before: in memory this is the one connection of the database."""
        self._total_before -= (yield Whole(self.on.query_one(EARLIER)))[2]

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
        return self._told.total

    def run(self, what: Statement, given: Any, begins: bool) -> Steps[Result]:
        """Runs one statement. `begins`: one that changes rows begins a transaction."""
        yield from self._raise_if_lost()
        begins = begins and what.is_dml and not self.in_transaction
        try:
            values = parameters(what.sql, given)
        except Exception:
            # As in `sqlite3`, which compiles and begins before.
            yield self.on._prepare(what.sql, None)
            if begins:
                yield from self.begin()
            raise
        work = self._run(what, values)
        return (yield from (self._begun(what, work) if begins else work))

    def _run(self, what: Statement, values: Any) -> Steps[Result]:
        sql, places = self._told.text(what, self._known)
        result = Result()
        self._was_open = False
        try:
            changes = yield from self._one(what, sql, values, result, places)
        except Exception:
            yield from self._note(what, values, failed=True)
            raise
        yield from self._note(what, values)
        result.lastrowid = self._told.rowid
        if what.is_dml:
            result.rowcount = changes
        return result

    def _one(self, what: Statement, sql: str, values: Any, result: Result, places: dict[str, str]) -> Steps[int]:
        """Returns how many rows a statement changed. It may run at once if it is known whether it has rows."""
        types = self._settings.detect_types
        if what.kind is Kind.READ:
            result.add((yield self.on.query(sql, values)), types, places)
            return 0
        done = yield Whole(self.on.run(sql, values))
        if done.rows is not None:
            result.add(done.rows, types, places)
        changes: int = done.changes
        return changes

    def many(self, what: Statement, rows: Sequence[Any], begins: bool) -> Steps[Result]:
        """Runs one statement for each row that was taken (`taken_rows`). If one fails, or cannot be had, those before
        it stay."""
        yield from self._raise_if_lost()
        work = self._many(what, rows)
        return (yield from (self._begun(what, work) if begins and not self.in_transaction else work))

    def _many(self, what: Statement, rows: Sequence[Any]) -> Steps[Result]:
        self._was_open = False
        first = rows[0] if rows else None
        try:
            result = yield from for_each(self.on, what, had_rows(rows), None)
        except Exception:
            yield from self._note(what, first, failed=True)
            raise
        yield from self._note(what, first, failed=not rows)
        return result

    def _begun(self, what: Statement, work: Steps[Result]) -> Steps[Result]:
        """Runs a statement that begins a transaction. `sqlite3` compiles before it begins, and takes nothing before it
        runs: if this was not compiled, or has not run, what it took is given back."""
        # Of other files, which may be locked, only those are taken that are written.
        takes = not self._has_attached
        try:
            yield self.on.execute("BEGIN IMMEDIATE" if takes else "BEGIN")
            # More than was noted, if a full-text table has written at a commit.
            total = self._total_before + (yield Whole(self.on.query_one(EARLIER)))[2]
        except GeneratorExit:
            raise
        except BaseException:
            # Its task may have been cancelled when it had begun.
            yield from self.rollback()
            raise
        try:
            return (yield from work)
        except Exception as error:
            if self.in_transaction and self._told.total == total:
                is_compiled = yield from compiles(self.on, what.sql)
                if not is_compiled or (takes and not has_taken(error)):
                    yield from self.rollback()
                    if is_compiled:
                        yield from self.begin()
            raise

    def _note(self, what: Statement, first: Any, failed: bool = False) -> Steps[None]:
        """Notes what a statement has changed, which may have failed. `first` are the parameters of its first run, or
        None if there were none."""
        self._was_open, told = self.in_transaction, self._told
        self._has_attached |= what.first == "ATTACH"
        if what.changes_rows:
            rowid, changes, total = tuple((yield Whole(self.on.query_one(EARLIER))))
            has_changed, told.total = told.total != self._total_before + total, self._total_before + total
            # It tells 0 until a write runs on this connection, which one that failed may not have done.
            has_run = not failed or has_changed or "changes" in self._known
            if has_run or (yield from self._may_run(what.sql, first)):
                told.changes = changes
                self._known.add("changes")
            # It tells 0 until a row is inserted on this connection.
            if rowid or "last_insert_rowid" in self._known:
                told.rowid = rowid
                self._known.add("last_insert_rowid")

    def _may_run(self, sql: str, given: Any) -> Steps[bool]:
        """Returns true if a statement can be compiled and takes these parameters."""
        if given is None or isinstance(given, Unavailable):
            return False
        try:
            yield Whole(self.on.query(f"EXPLAIN {sql}", given))
        except Exception:
            return False
        return True

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
        # An exception between two instructions must not leave it true where it is not.
        self._was_open = False
        try:
            yield Whole(self.on.execute(control))
        finally:
            self._was_open = self.in_transaction

    def _raise_if_lost(self) -> Steps[None]:
        """Raises once what has ended the transaction."""
        if self._was_open and not self.in_transaction:
            yield from self._do("COMMIT")
