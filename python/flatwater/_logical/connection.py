"""One logical connection: what is behind the connections of `flatwater.aiosqlite` and of modules like it.

Owns its mode, its transaction, and what it tells of its last statements. A logical connection is pooled: its writes
go to the writer of the file and its reads to the readers, as those of every other. Its methods are work in steps
(`steps`), for tasks and threads alike. Invariants: statements run one after another in the order of their calls; a
transaction that was ended by others is reported once; nothing is ignored. Leaves out cursors and rows (`cursor`), and
what a statement is (`statement`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from .._errors import Error, make
from .._native import Executor
from .errors import Closed, has_no_rows, no_own, operational
from .files import Handle, Place, Settings
from .result import Result, read
from .rows import RowFactory
from .statement import Kind, Statement, statement, statements
from .steps import Steps, Whole, waited
from .transaction import Open, begin
from .turns import Turns
from .values import parameters

LEVELS = ("", "DEFERRED", "IMMEDIATE", "EXCLUSIVE")


class Logical:
    """A connection as the `sqlite3` module has it."""

    def __init__(self, settings: Settings, *, uri: bool = False) -> None:
        self.settings = settings
        self.turns = Turns()
        self.row_factory: RowFactory = None
        self.text_factory: Any = str
        self._level = _checked(settings.isolation_level)
        self._place = Place(settings, uri)
        self._handle: Handle | None = None
        self._open: Open | None = None
        # A BEGIN as text that nothing has followed yet.
        self._is_deferred = False
        self._last_rowid = 0
        self._changes = 0
        self._total = 0

    # Opening and closing.

    def open(self) -> Steps[None]:
        """Opens the database."""
        try:
            self._handle = yield from self._place.open()
        except BaseException:
            self._place.leave()
            raise

    @property
    def handle(self) -> Handle:
        """The open database."""
        if self._handle is None:
            raise Closed()
        return self._handle

    @property
    def is_open(self) -> bool:
        """True until it is closed."""
        return self._handle is not None

    def close(self) -> Steps[None]:
        """Rolls back and closes, when the statements that were called before are done. Closing twice is allowed."""
        turn = self.turns.take(shared=False)
        try:
            if not turn.has_come:
                yield turn
            if self._handle is None:
                return
            self._handle = None
            opened, self._open = self._open, None
            if opened is not None:
                opened.guard.abandon()
            yield from self._place.close()
        finally:
            turn.leave()

    def replace(self, copy: Callable[[sqlite3.Connection], None], in_thread: Callable[[Any], Any]) -> Steps[None]:
        """Replaces the content of the database by what `copy` copies, while nobody has it open."""
        if self.in_transaction:
            raise operational("target is in use")
        handle = self.handle
        yield from self._place.replace(handle, copy, in_thread)
        self._handle = self._place.handle

    def drop(self) -> None:
        """Rolls back and closes in the background."""
        if self._handle is not None:
            # No second warning.
            self._handle._is_closed = True
            self._handle = None
            if self._open is not None:
                self._open.guard.abandon()
            self._place.leave()

    # The transaction.

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open, and nobody has ended it."""
        return self._is_deferred or (self._open is not None and self._open.guard.is_open())

    @property
    def isolation_level(self) -> str | None:
        """How a transaction begins by itself; None: none does."""
        return self._level

    @isolation_level.setter
    def isolation_level(self, value: str | None) -> None:
        self._level = _checked(value)
        if self._level is None and self.in_transaction:
            waited(self.commit())

    def commit(self) -> Steps[None]:
        """Commits the transaction, if one is open."""
        yield from self.alone(self._commit)

    def rollback(self) -> Steps[None]:
        """Rolls the transaction back, if one is open."""
        yield from self.alone(self._rollback)

    def alone(self, work: Any, *given: Any) -> Steps[Any]:
        """Does the work when the statements that were called before are done."""
        self._check_open()
        turn = self.turns.take(shared=False)
        try:
            if not turn.has_come:
                yield turn
            self._check_open()
            return (yield from work(*given))
        finally:
            turn.leave()

    def _begin(self) -> Steps[Open]:
        self._open = yield from begin(self.handle.on, self.settings.timeout)
        self._is_deferred = False
        return self._open

    def _commit(self) -> Steps[None]:
        yield from self._raise_if_lost()
        self._is_deferred = False
        opened = self._open
        if opened is None:
            return
        changes = yield from opened.counted()
        try:
            yield from opened.commit()
        finally:
            self._open = None
        self._total += changes

    def _rollback(self) -> Steps[None]:
        self._is_deferred = False
        opened = self._open
        if opened is None:
            return
        if opened.guard.is_open():
            self._total += yield from opened.counted()
        self._open = None
        yield from opened.rollback()

    def _raise_if_lost(self) -> Steps[None]:
        """Raises once what has ended the transaction."""
        opened = self._open
        if opened is not None and not opened.guard.is_open():
            self._open = None
            yield from opened.commit()

    def _notice_end(self) -> None:
        """A statement has failed, and may have taken the transaction along: who called it knows."""
        if self._open is not None and not self._open.guard.is_open():
            self._open = None

    # Statements.

    def run(self, sql: str, given: Any) -> Steps[Result]:
        """Runs one statement."""
        self._check_open()
        what = statement(sql)
        turn = self.turns.take(shared=what.kind is Kind.READ and not self.in_transaction)
        try:
            if not turn.has_come:
                yield turn
            self._check_open()
            return (yield from self._run(what, given, self._level is not None))
        finally:
            turn.leave()

    def many(self, sql: str, rows: Iterable[Any]) -> Steps[Result]:
        """Runs one statement for each row of parameters."""
        what = statement(sql)
        if not what.is_dml:
            raise make("ProgrammingError", "executemany() can only execute DML statements.", "misuse")
        result: Result = yield from self.alone(self._many, what, rows)
        return result

    def script(self, script: str) -> Steps[Result]:
        """Commits, and then runs the statements one by one."""
        if not isinstance(script, str):
            raise TypeError(f"executescript() argument must be str, not {type(script).__name__}")
        result: Result = yield from self.alone(self._script, script)
        return result

    def _run(self, what: Statement, given: Any, begins: bool) -> Steps[Result]:
        yield from self._raise_if_lost()
        kind = what.kind
        if kind is Kind.READ:
            return (yield from self._read(what, given))
        if kind is Kind.WRITE:
            return (yield from self._change(what, given, begins and what.is_dml))
        if kind is Kind.PRAGMA:
            return (yield from self._pragma(what, given))
        if kind is Kind.NOTHING:
            return Result()
        if kind is Kind.CONTROL:
            yield from self._control(what)
        elif kind is Kind.VACUUM:
            if self.in_transaction:
                raise operational("cannot VACUUM from within a transaction")
            yield Whole(self.handle.on.execute(what.sql, parameters(what.sql, given)))
        else:
            raise no_own(what.first)
        return Result(self._last_rowid)

    def _script(self, script: str) -> Steps[Result]:
        yield from self._commit()
        for sql in statements(script):
            result = yield from self._run(statement(sql), None, False)
            result.close()
        return Result()

    def _read(self, what: Statement, given: Any) -> Steps[Result]:
        if self._is_deferred:
            yield from self._begin()
        try:
            return (
                yield from read(
                    self.on(),
                    self._text(what),
                    parameters(what.sql, given),
                    self._last_rowid,
                    self.settings.detect_types,
                )
            )
        except Error:
            self._notice_end()
            raise

    def _change(self, what: Statement, given: Any, begins: bool) -> Steps[Result]:
        """Runs a statement that writes, in a transaction of its own unless one is open or it begins one."""
        values = parameters(what.sql, given)
        if begins or self.in_transaction:
            return (yield from self._write(what, values))
        return (yield from self._by_itself(self._write(what, values)))

    def _by_itself(self, work: Steps[Result]) -> Steps[Result]:
        opened = yield from self._begin()
        try:
            result = yield from work
        except BaseException:
            self._open = None
            opened.guard.abandon()
            raise
        yield from self._commit()
        return result

    def _write(self, what: Statement, values: Any) -> Steps[Result]:
        opened = self._open or (yield from self._begin())
        sql = self._text(what)
        result = Result()
        try:
            if what.has_rows:
                rows = yield Whole(opened.on.query(sql, values))
                result.add(rows, self.settings.detect_types)
                self._changes = len(rows)
                if what.first in ("INSERT", "REPLACE", "WITH") and len(rows):
                    self._last_rowid = yield opened.on.query_value("SELECT last_insert_rowid()")
            else:
                done = yield Whole(opened.on.execute(sql, values))
                if what.is_dml or done.changes:
                    self._changes = done.changes
                if done.last_insert_rowid is not None:
                    self._last_rowid = done.last_insert_rowid
        except Error:
            self._notice_end()
            raise
        opened.has_changed = True
        result.lastrowid = self._last_rowid
        if what.is_dml:
            result.rowcount = self._changes
        return result

    def _many(self, what: Statement, rows: Iterable[Any]) -> Steps[Result]:
        yield from self._raise_if_lost()
        if self._level is not None or self.in_transaction:
            return (yield from self._write_many(what, rows))
        return (yield from self._by_itself(self._write_many(what, rows)))

    def _write_many(self, what: Statement, rows: Iterable[Any]) -> Steps[Result]:
        opened = self._open or (yield from self._begin())
        result = Result()
        try:
            given = (parameters(what.sql, row) for row in rows)
            result.rowcount = self._changes = yield Whole(opened.on.executemany(what.sql, given))
            if what.first in ("INSERT", "REPLACE") and result.rowcount:
                self._last_rowid = yield opened.on.query_value("SELECT last_insert_rowid()")
        except Error:
            self._notice_end()
            raise
        opened.has_changed = True
        return result

    def _pragma(self, what: Statement, given: Any) -> Steps[Result]:
        values = parameters(what.sql, given)
        result = Result(self._last_rowid)
        try:
            result.add((yield Whole(self.on().query(what.sql, values))), self.settings.detect_types)
        except Error as error:
            self._notice_end()
            if has_no_rows(error):
                return (yield from self._change(what, given, False))
            if error.kind == "misuse":
                raise no_own("this PRAGMA") from error
            raise
        return result

    def _control(self, what: Statement) -> Steps[None]:
        control, name = what.control, what.name
        if control == "begin":
            if self.in_transaction:
                raise operational("cannot start a transaction within a transaction")
            self._is_deferred = name.upper() in ("", "DEFERRED")
            if not self._is_deferred:
                yield from self._begin()
        elif control in ("commit", "rollback"):
            if not self.in_transaction:
                raise operational(f"cannot {control} - no transaction is active")
            yield from (self._commit() if control == "commit" else self._rollback())
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
            yield from self._commit()

    def _check_open(self) -> None:
        if self._handle is None:
            raise Closed()

    def on(self) -> Executor:
        """Where a read runs."""
        return self.handle.on if self._open is None else self._open.on

    # What it tells of its statements.

    @property
    def total_changes(self) -> int:
        """How many rows it has changed since it was opened, triggers included."""
        opened = self._open
        if opened is None or not opened.guard.is_open() or not self.turns.empty():
            return self._total
        return self._total + waited(opened.counted())

    def _text(self, what: Statement) -> str:
        """The text, with what it asks of earlier statements: a connection of the pool may have run those of others."""
        if not what.tells_of_earlier or (self._open is not None and self._open.has_changed) or what.first == "CREATE":
            return what.sql
        told = {"last_insert_rowid": self._last_rowid, "changes": self._changes, "total_changes": self.total_changes}
        return what.about(told)


def _checked(level: str | None) -> str | None:
    if level is not None and not isinstance(level, str):
        raise TypeError("isolation_level must be str or None")
    if level is not None and level.upper() not in LEVELS:
        raise ValueError("isolation_level string must be '', 'DEFERRED', 'IMMEDIATE', or 'EXCLUSIVE'")
    return level
