"""A logical connection while it is pooled: its writes go to the writer of the file, and its reads to the readers.

Owns its transaction, and which statement runs where. Invariants: a transaction has the writer; one that was ended by
others is reported once; what needs a connection of its own raises `NeedsOwn` before it has an effect. Leaves out the
order of statements (`connection`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._errors import Error
from .._native import Executor
from .errors import has_no_rows, is_of_parameters, operational
from .files import Handle, Settings
from .result import Result, for_each, read
from .statement import Kind, Statement
from .steps import Steps, Whole
from .told import Told
from .transaction import Open, compiles, has_taken
from .values import had_rows, parameters


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
        """Runs one statement for each row that was taken (`taken_rows`). If one fails, or cannot be had, those before
        it stay."""
        yield from self._raise_if_lost()
        given = had_rows(rows)
        if what.kind is not Kind.WRITE:
            return (yield from for_each(self.on, what, given, self.running))
        if begins or self.in_transaction:
            return (yield from self._in_transaction(what, self._write_many(what, given)))
        yield from self._begin()
        try:
            result = yield from self._write_many(what, given)
        except Exception:
            yield from self._commit_or_undo()
            raise
        except BaseException:
            self.abandon()
            raise
        yield from self._commit_or_undo()
        return result

    def commit(self) -> Steps[None]:
        """Commits the transaction, if one is open. If that fails, it is open on where SQLite leaves it open."""
        yield from self._raise_if_lost()
        self.is_deferred = False
        if self._open is not None:
            try:
                yield Whole(self._open.guard.commit_or_stay())
            finally:
                self._notice_end()

    def _commit_or_undo(self) -> Steps[None]:
        """Commits a statement's own transaction."""
        try:
            yield from self.commit()
        except Exception:
            yield from self.rollback()
            raise

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
        # Here before it is asked for: whoever leaves meanwhile, its end is this connection's.
        self._open = opened = self._open_one()
        try:
            yield from opened.begin(self._handle.on, self._settings.timeout, self._told)
        except BaseException:
            self._open = None
            raise
        self.is_deferred = False
        return opened

    def _open_one(self) -> Open:
        return Open()

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
        sql, places = self._told.text(what, () if self._open is None else self._open.known)
        try:
            result = yield from read(
                self.on, sql, values, self._told.rowid, self._settings.detect_types, self.running, places
            )
        except Error:
            self._notice_end()
            raise
        return result

    def _change(self, what: Statement, given: Any, begins: bool) -> Steps[Result]:
        """Runs a statement that writes, in a transaction of its own unless one is open or it begins one."""
        try:
            values = parameters(what.sql, given)
        except Exception:
            # As in `sqlite3`, which compiles and begins before.
            yield self.on._prepare(what.sql, None)
            self.is_deferred |= begins and self._open is None
            raise
        work = self._write(what, values)
        if begins or self.in_transaction:
            return (yield from self._in_transaction(what, work))
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
        total = self._told.total
        yield from self._begin()
        try:
            result = yield from work
        except Exception:
            if self._told.total == total:
                self.abandon()
            else:
                # As OR FAIL asks.
                yield from self._commit_or_undo()
            raise
        except BaseException:
            self.abandon()
            raise
        yield from self._commit_or_undo()
        return result

    def _in_transaction(self, what: Statement, work: Steps[Result]) -> Steps[Result]:
        """Runs a statement in the transaction, which it begins if none has the writer. `sqlite3` compiles before it
        begins, and takes nothing before it runs: if this was not compiled, or has not run, what it took is given
        back."""
        if self._open is not None:
            return (yield from work)
        was_deferred, total = self.is_deferred, self._told.total
        yield from self._begin()
        try:
            return (yield from work)
        except Exception as error:
            if self._open is not None and self._told.total == total:
                is_compiled = yield from compiles(self.on, what.sql)
                if not (is_compiled and what.is_dml and has_taken(error)):
                    yield from self.rollback()
                    self.is_deferred = was_deferred or is_compiled
            raise

    def _write(self, what: Statement, values: Any) -> Steps[Result]:
        opened = self._open
        assert opened is not None
        sql, places = self._told.text(what, opened.known)
        result = Result()
        try:
            done = yield from self._run(opened.on, sql, values, result, places)
        except Error:
            self._notice_end()
            yield from self._note(what)
            raise
        yield from self._note(what)
        result.lastrowid = self._told.rowid
        if what.is_dml:
            result.rowcount = done.changes
        return result

    def _run(self, on: Executor, sql: str, values: Any, result: Result, places: dict[str, str]) -> Steps[Any]:
        """Runs a statement that may write there, and adds its rows. Returns what it has changed."""
        done = yield Whole(on.run(sql, values), self.running)
        if done.rows is not None:
            result.add(done.rows, self._settings.detect_types, places)
        return done

    def _write_many(self, what: Statement, given: Iterable[Any]) -> Steps[Result]:
        opened = self._open
        assert opened is not None
        try:
            result = yield from for_each(opened.on, what, given, self.running)
        except Exception:
            self._notice_end()
            yield from self._note(what)
            raise
        yield from self._note(what)
        return result

    def _note(self, what: Statement) -> Steps[None]:
        """Notes what a statement has changed, which may have failed."""
        if self._open is not None:
            yield from self._open.note(self._told, what.changes_rows)

    def _pragma(self, what: Statement, given: Any) -> Steps[Result]:
        result, sql = Result(self._told.rowid), what.sql
        if what.busy_timeout is not None:
            # That of the connection, wherever its statements run.
            if what.busy_timeout >= 0:
                self._settings.timeout = what.busy_timeout / 1000
            sql = f"SELECT {round(self._settings.timeout * 1000)} AS timeout"
        try:
            result.add((yield Whole(self.on.query(sql, parameters(sql, given)), self.running)), 0)
        except Error as error:
            self._notice_end()
            if has_no_rows(error):
                return (yield from self._change(what, given, False))
            if error.kind == "misuse" and not is_of_parameters(error):
                if what.sets_keys and self.in_transaction:
                    # As SQLite has it there: nothing.
                    return result
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
