"""A logical connection while it is pooled: its writes go to the writer of the file, and its reads to the readers.

Owns its transaction, and which statement runs where. Invariants: a transaction has the writer; one that was ended by
others is reported once; what needs a connection of its own raises `NeedsOwn` before it has an effect. Leaves out the
order of statements (`connection`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .._errors import Error
from .._native import Executor, Rows
from .errors import has_no_rows, operational
from .files import Handle, Settings
from .result import Result, read
from .statement import Kind, Statement
from .steps import Steps, Whole
from .told import Told
from .transaction import Open, begin
from .values import parameters

_BUSY_TIMEOUT = re.compile(r"\s*PRAGMA\s+busy_timeout\s*(?:[=(]\s*(-?\d+)\s*\)?)?\s*;?\s*\Z", re.IGNORECASE)


class NeedsOwn(Exception):
    """The statement needs a connection of its own. It has done nothing."""


class Pooled:
    """How the statements of a pooled connection run."""

    def __init__(self, handle: Handle, settings: Settings, told: Told) -> None:
        self._handle = handle
        self._settings = settings
        self._told = told
        self._open: Open | None = None
        # A BEGIN as text that nothing has followed yet.
        self.is_deferred = False
        # The calls that run.
        self.running: set[Any] = set()

    def interrupt(self) -> None:
        """Interrupts the statements that run, in any task or thread."""
        for running in list(self.running):
            running.interrupt()

    @property
    def on(self) -> Executor:
        """Where a read runs."""
        return self._handle.on if self._open is None else self._open.on

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open, and nobody has ended it."""
        return self.is_deferred or (self._open is not None and self._open.guard.is_open())

    @property
    def is_idle(self) -> bool:
        """True if a read sees what is committed, so that others may run beside it."""
        return self._open is None and not self.is_deferred

    @property
    def has_nothing_to_end(self) -> bool:
        """True if no transaction is open, and none was ended by others."""
        return self.is_idle

    @property
    def total_changes(self) -> int:
        """How many rows were changed, triggers included."""
        return self._told.total

    def run(self, what: Statement, given: Any, begins: bool) -> Steps[Result]:
        """Runs one statement. `begins`: one that changes rows begins a transaction."""
        yield from self._raise_if_lost()
        kind = what.kind
        if kind is Kind.READ:
            return (yield from self._read(what, given))
        if kind is Kind.WRITE:
            return (yield from self._change(what, given, begins and what.is_dml))
        if kind is Kind.PRAGMA:
            return (yield from self._pragma(what, given))
        if kind is Kind.OWN:
            raise NeedsOwn(what.first)
        if kind is Kind.VACUUM and self.in_transaction:
            raise operational("cannot VACUUM from within a transaction")
        if kind is Kind.VACUUM:
            yield Whole(self._handle.on.execute(what.sql, parameters(what.sql, given)), self.running)
        elif kind is Kind.CONTROL:
            yield from self._control(what)
        else:
            raise what.error()
        return Result(self._told.rowid)

    def many(self, what: Statement, rows: Iterable[Any], begins: bool) -> Steps[Result]:
        """Runs one statement for each row of parameters. If one fails, or cannot be had, those before it stay."""
        yield from self._raise_if_lost()
        if begins or self.in_transaction:
            return (yield from self._write_many(what, rows))
        try:
            result = yield from self._write_many(what, rows)
        except Exception:
            yield from self.commit()
            raise
        except BaseException:
            self.abandon()
            raise
        yield from self.commit()
        return result

    def commit(self) -> Steps[None]:
        """Commits the transaction, if one is open."""
        yield from self._raise_if_lost()
        self.is_deferred = False
        if self._open is not None:
            try:
                yield Whole(self._open.guard.commit())
            finally:
                self._open = None

    def rollback(self) -> Steps[None]:
        """Rolls the transaction back, if one is open or was ended by others."""
        self.is_deferred = False
        opened, self._open = self._open, None
        if opened is not None:
            yield Whole(opened.guard.rollback())

    def close(self) -> Steps[None]:
        """Rolls back."""
        if self._open is not None and self._open.guard.is_open():
            yield from self.rollback()

    def abandon(self) -> None:
        """Rolls back without waiting for that."""
        self.is_deferred = False
        opened, self._open = self._open, None
        if opened is not None:
            opened.guard.abandon()

    def _begin(self) -> Steps[Open]:
        self._open = yield from begin(self._handle.on, self._settings.timeout)
        self.is_deferred = False
        return self._open

    def _raise_if_lost(self) -> Steps[None]:
        """Raises once what has ended the transaction."""
        opened = self._open
        if opened is not None and not opened.guard.is_open():
            self._open = None
            yield opened.guard.commit()

    def _notice_end(self) -> None:
        """A statement has failed, and may have taken the transaction along: who called it knows."""
        if self._open is not None and not self._open.guard.is_open():
            self._open = None

    def _read(self, what: Statement, given: Any) -> Steps[Result]:
        if self.is_deferred:
            # It makes a snapshot, which a write may follow.
            raise NeedsOwn("a BEGIN that is followed by a read")
        values = parameters(what.sql, given)
        sql = self._told.text(what, self._open is not None and self._open.has_changed)
        try:
            return (yield from read(self.on, sql, values, self._told.rowid, self._settings.detect_types, self.running))
        except Error:
            self._notice_end()
            raise

    def _change(self, what: Statement, given: Any, begins: bool) -> Steps[Result]:
        """Runs a statement that writes, in a transaction of its own unless one is open or it begins one."""
        values = parameters(what.sql, given)
        work = self._write(what, values)
        if begins or self.in_transaction:
            return (yield from work)
        try:
            return (yield from self._by_itself(work))
        except Error as error:
            if error.sqlite_errorname != "SQLITE_READONLY" or (yield from self._writes(what.sql, values)):
                raise
            return Result(self._told.rowid)

    def _writes(self, sql: str, values: Any) -> Steps[bool]:
        """False for a statement that changes nothing, as a CREATE IF NOT EXISTS of what there is."""
        program = yield self._handle.on.query(f"EXPLAIN {sql}", values)
        return any(step["opcode"] == "Transaction" and step["p2"] for step in program)

    def _by_itself(self, work: Steps[Result]) -> Steps[Result]:
        yield from self._begin()
        try:
            result = yield from work
        except BaseException:
            self.abandon()
            raise
        yield from self.commit()
        return result

    def _write(self, what: Statement, values: Any) -> Steps[Result]:
        opened = self._open or (yield from self._begin())
        sql = self._told.text(what, opened.has_changed)
        result = Result()
        try:
            rows = (yield from self._returned(opened, sql, values)) if what.has_rows else None
            if rows is None:
                done = yield Whole(opened.on.execute(sql, values), self.running)
                changes, rowid = done.changes, done.last_insert_rowid
            else:
                result.add(rows, self._settings.detect_types)
                inserts = what.first in ("INSERT", "REPLACE", "WITH") and len(rows)
                changes, rowid = len(rows), (yield from opened.rowid()) if inserts else None
        except Error:
            self._notice_end()
            raise
        yield from self._tell(opened, what, changes, rowid)
        result.lastrowid = self._told.rowid
        if what.is_dml:
            result.rowcount = changes
        return result

    def _returned(self, opened: Open, sql: str, values: Any) -> Steps[Rows | None]:
        """Returns the rows of a statement with RETURNING; None if that was only a word in it, and it did not run."""
        try:
            rows: Rows = yield Whole(opened.on.query(sql, values), self.running)
            return rows
        except Error as error:
            if has_no_rows(error):
                return None
            raise

    def _write_many(self, what: Statement, rows: Iterable[Any]) -> Steps[Result]:
        opened = self._open or (yield from self._begin())
        result = Result()
        given = (parameters(what.sql, row) for row in rows)
        try:
            result.rowcount = yield Whole(opened.on._executemany_kept(what.sql, given), self.running)
        except Exception:
            self._notice_end()
            if self._open is not None:
                yield from self._tell_of_many(opened, what)
            raise
        yield from self._tell_of_many(opened, what)
        return result

    def _tell_of_many(self, opened: Open, what: Statement) -> Steps[None]:
        """Notes what a statement has changed that ran for each of several rows."""
        self._told.changes = 0
        if changed := (yield from opened.count()):
            opened.has_changed = True
            self._told.total += changed
            self._told.changes, rowid = yield from opened.earlier()
            if what.first in ("INSERT", "REPLACE"):
                self._told.rowid = rowid

    def _tell(self, opened: Open, what: Statement, changes: int, rowid: int | None) -> Steps[None]:
        """Notes what a statement has changed."""
        if not (what.is_dml or changes):
            return
        opened.has_changed = True
        self._told.changes = changes
        self._told.total += yield from opened.count()
        if rowid is not None:
            self._told.rowid = rowid

    def _pragma(self, what: Statement, given: Any) -> Steps[Result]:
        result = Result(self._told.rowid)
        sql = what.sql
        if found := _BUSY_TIMEOUT.match(sql):
            # That of the connection, wherever its statements run.
            if found[1] is not None:
                self._settings.timeout = max(int(found[1]), 0) / 1000
            sql = f"SELECT {round(self._settings.timeout * 1000)} AS timeout"
        try:
            result.add((yield Whole(self.on.query(sql, parameters(sql, given)), self.running)), 0)
        except Error as error:
            self._notice_end()
            if has_no_rows(error):
                return (yield from self._change(what, given, False))
            if error.kind == "misuse":
                raise NeedsOwn("this PRAGMA") from error
            raise
        return result

    def _control(self, what: Statement) -> Steps[None]:
        control, name = what.control, what.name
        if control == "begin":
            if self.in_transaction:
                raise operational("cannot start a transaction within a transaction")
            self.is_deferred = name.upper() in ("", "DEFERRED")
            if not self.is_deferred:
                yield from self._begin()
        elif control in ("commit", "rollback"):
            if not self.in_transaction:
                raise operational(f"cannot {control} - no transaction is active")
            yield from (self.commit() if control == "commit" else self.rollback())
        elif control == "savepoint":
            begins = not self.in_transaction
            opened = self._open or (yield from self._begin())
            opened.is_savepoint |= begins
            yield from opened.savepoint(name)
        elif self._open is None:
            raise operational(f"no such savepoint: {name}")
        elif control == "rollback_to":
            yield from self._open.rollback_to(name)
        elif not (yield from self._open.release(name)):
            yield from self.commit()
