"""A logical connection to a database on a server: its statements are requests, and its transaction is the server's.

Owns how its statements run. Invariants: what they changed is told by their results, because a server has no connection
that could be asked; a list of rows is all or nothing; what needs a connection of its own is refused. Leaves out the
order of statements (`connection`), and what a transaction is (`transaction`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._errors import Error, make
from .errors import has_no_transactions, no_transactions
from .pooled import NeedsOwn, Pooled
from .result import Result, read
from .statement import Kind, Statement
from .steps import Steps, Whole
from .transaction import Open
from .values import had_rows, parameters

# The code of what cannot be compiled, among others.
SQLITE_ERROR = 1


class OnServer(Pooled):
    """How the statements of a connection to a server run."""

    def many(self, what: Statement, rows: Iterable[Any], begins: bool) -> Steps[Result]:
        """Runs one statement for each row that was taken (`taken_rows`), all or nothing."""
        yield from self._raise_if_lost()
        if what.kind is not Kind.WRITE:
            raise make(
                "ProgrammingError", "executemany() can only execute DML statements.", "misuse", code="returns_rows"
            )
        work = self._write_many(what, had_rows(rows))
        return (yield from (self._in_transaction(what, work) if begins or self.in_transaction else work))

    def _open_one(self) -> Open:
        return OpenOnServer()

    def _begin(self) -> Steps[Open]:
        try:
            return (yield from super()._begin())
        except Error as error:
            if has_no_transactions(error):
                raise no_transactions() from None
            raise

    def _read(self, what: Statement, given: Any) -> Steps[Result]:
        if self.is_deferred:
            yield from self._begin()
        values = parameters(what.sql, given)
        sql, places = self._told.text(what)
        settings = self._settings
        try:
            return (
                yield from read(self.on, sql, values, self._told.rowid, settings.detect_types, self.running, places)
            )
        except Error:
            self._notice_end()
            raise

    def _change(self, what: Statement, given: Any, begins: bool) -> Steps[Result]:
        work = self._write(what, parameters(what.sql, given))
        return (yield from (self._in_transaction(what, work) if begins or self.in_transaction else work))

    def _in_transaction(self, what: Statement, work: Steps[Result]) -> Steps[Result]:
        """Runs a statement in the transaction, which it begins if none is open. If it cannot be compiled, or has not
        run, what it began is ended."""
        if self._open is not None:
            return (yield from work)
        was_deferred = self.is_deferred
        yield from self._begin()
        try:
            return (yield from work)
        except Exception as error:
            # With another code it has run.
            if self._open is not None and getattr(error, "sqlite_errorcode", None) in (None, SQLITE_ERROR):
                yield from self.rollback()
                self.is_deferred = was_deferred
            raise

    def _write(self, what: Statement, values: Any) -> Steps[Result]:
        sql, places = self._told.text(what)
        result = Result()
        try:
            done = yield from self._run(self.on, sql, values, result, places)
        except Error:
            self._notice_end()
            raise
        if what.changes_rows:
            self._count(done.changes)
        if what.is_dml:
            result.rowcount = done.changes
        if done.last_insert_rowid is not None:
            self._told.rowid = done.last_insert_rowid
        result.lastrowid = self._told.rowid
        return result

    def _write_many(self, what: Statement, given: Iterable[Any]) -> Steps[Result]:
        result = Result()
        try:
            done = yield Whole(self.on._run_many(what.sql, given, False), self.running)
        except Error:
            self._notice_end()
            raise
        if what.changes_rows:
            self._count(done.changes)
        if what.is_dml:
            result.rowcount = done.changes
        if done.rows is not None:
            result.add(done.rows, 0)
        return result

    def _count(self, changes: int) -> None:
        self._told.changes = changes
        self._told.total += changes

    def _pragma(self, what: Statement, given: Any) -> Steps[Result]:
        try:
            return (yield from super()._pragma(what, given))
        except NeedsOwn as needs:
            assert needs.__cause__ is not None
            raise needs.__cause__ from None


class OpenOnServer(Open):
    """A transaction on a server."""

    __slots__ = ()

    def _begun(self) -> Steps[None]:
        yield from ()
