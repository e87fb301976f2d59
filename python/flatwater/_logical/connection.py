"""One logical connection: what is behind the connections of `flatwater.aiosqlite` and of modules like it.

Owns the order of its statements, and its mode: it is pooled until it needs a connection of its own, and stays that
then. Its methods are work in steps (`steps`), for tasks and threads alike. Invariants: statements run one after
another in the order of their calls, but for reads of an idle pooled connection; nothing is ignored. Leaves out how
statements run (`pooled`, `own`), cursors and rows (`cursor`), and what a statement is (`statement`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

from .._native import Executor, Statements, Turns, wait
from .errors import Closed, no_own, not_on_server, operational
from .files import Handle, Place, Settings
from .on_server import OnServer
from .own import Own
from .pooled import NeedsOwn, Pooled
from .result import Result
from .rows import RowFactory
from .statement import Kind, Statement, statement
from .steps import Steps, waited
from .told import Told
from .values import taken, taken_rows

T = TypeVar("T")
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
        self._told = Told()
        self._half_read: WeakSet[Result] = WeakSet()
        # None before it is open, and when it is closed.
        self._handle: Handle | None = None
        self._mode: Pooled | Own | None = None

    def open(self) -> Steps[None]:
        """Opens the database."""
        try:
            self._handle = yield from self._place.open()
        except BaseException:
            self._place.leave()
            raise
        self._mode = self._fresh(self._handle)

    def _fresh(self, handle: Handle) -> Pooled | Own:
        if handle._native.is_server():
            return OnServer(handle, self.settings, self._told)
        # Those of the file are set by who opened it first.
        is_own = handle._native.enforces_foreign_keys() != self.settings.foreign_keys
        return (Own if is_own else Pooled)(handle, self.settings, self._told)

    @property
    def is_encrypted(self) -> bool:
        """True if the file has a key."""
        return self.settings.options.get("key") is not None

    @property
    def is_open(self) -> bool:
        """True until it is closed."""
        return self._mode is not None

    @property
    def handle(self) -> Handle:
        """The open database."""
        if self._handle is None:
            raise Closed()
        return self._handle

    def close(self) -> Steps[None]:
        """Rolls back and closes, when the statements that were called before are done. Closing twice is allowed."""
        turn = self.turns.take(shared=False)
        try:
            if not turn.has_come:
                yield turn
            # The close of the last connection would wait for their readers.
            for result in list(self._half_read):
                yield from result.end()
            mode, self._mode, self._handle = self._mode, None, None
            if mode is not None:
                yield from mode.close()
                yield from self._place.close()
        finally:
            turn.leave()

    def drop(self) -> None:
        """Rolls back and closes in the background."""
        mode, self._mode, self._handle = self._mode, None, None
        if mode is not None:
            mode.abandon()
            left = self._place.leave()
            if left is not None:
                # No second warning.
                left._is_closed = True

    @property
    def mode(self) -> Pooled | Own:
        """How its statements run."""
        if self._mode is None:
            raise Closed()
        return self._mode

    @property
    def on(self) -> Executor:
        """Where a read runs."""
        return self.mode.on

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open, and nobody has ended it."""
        return self._mode is not None and self._mode.in_transaction

    @property
    def has_nothing_to_end(self) -> bool:
        """True if a commit or a rollback that is called now would do nothing."""
        return self._mode is not None and self.turns.empty() and self._mode.has_nothing_to_end

    @property
    def total_changes(self) -> int:
        """How many rows it has changed since it was opened, triggers included."""
        return self.mode.total_changes

    @property
    def isolation_level(self) -> str | None:
        """How a transaction begins by itself; None: none does."""
        return self._level

    @isolation_level.setter
    def isolation_level(self, value: str | None) -> None:
        level = _checked(value)
        if level is None and self.in_transaction:
            waited(self.alone(self._commit_without_level))
        self._level = level

    def commit(self) -> Steps[None]:
        """Commits the transaction, if one is open."""
        yield from self.alone(lambda: self.mode.commit())

    def rollback(self) -> Steps[None]:
        """Rolls the transaction back, if one is open."""
        yield from self.alone(lambda: self.mode.rollback())

    def run(self, sql: str, given: Any) -> Steps[Result]:
        """Runs one statement."""
        what = statement(sql)
        self.mode  # noqa: B018, it raises if it is closed
        if what.kind is Kind.NOTHING:
            return Result()
        values = taken(what.sql, given)
        shared = what.kind is Kind.READ and self.mode.is_idle
        turn = self.turns.take(shared=shared)
        try:
            if not turn.has_come:
                yield turn
            if shared and not self.mode.is_idle:
                # A call before it has begun a transaction.
                turn.alone()
                if not turn.has_come:
                    yield turn
            result = yield from self._run(what, values, self._level is not None)
            if result.is_half_read:
                self._half_read.add(result)
            return result
        finally:
            turn.leave()

    def many(self, sql: str, rows: Iterable[Any]) -> Steps[Result]:
        """Runs one statement for each row of parameters."""
        what = statement(sql)
        self.mode  # noqa: B018
        turn = self.turns.take(shared=False, taking=True)
        try:
            given = (yield from taken_rows(what.sql, rows)) if what.kind is Kind.WRITE else []
            turn.taken()
            if not turn.has_come:
                yield turn
            begins = self._level is not None and what.is_dml
            return (yield from self._in_mode(lambda mode: mode.many(what, given, begins)))
        finally:
            turn.leave()

    def script(self, script: str) -> Steps[None]:
        """Commits, and then runs the statements one by one."""
        if not isinstance(script, str):
            raise TypeError(f"executescript() argument must be str, not {type(script).__name__}")
        yield from self.alone(lambda: self._script(script))

    def alone(self, work: Callable[[], Steps[T]]) -> Steps[T]:
        """Does the work when the statements that were called before are done."""
        self.mode  # noqa: B018, it raises if it is closed
        turn = self.turns.take(shared=False)
        try:
            if not turn.has_come:
                yield turn
            self.mode  # noqa: B018
            return (yield from work())
        finally:
            turn.leave()

    def own(self, what: str) -> Steps[Own]:
        """Returns its own connection, for `what`."""
        mode = self.mode
        if isinstance(mode, Own):
            return mode
        if isinstance(mode, OnServer):
            raise not_on_server(what)
        if mode.in_transaction and not mode.is_deferred:
            raise no_own(what)
        own = Own(self.handle, self.settings, self._told)
        yield from own.count_from_here()
        if mode.is_deferred:
            yield from own.begin()
        self._mode = own
        return own

    def check_target(self) -> None:
        """Raises if a copy cannot replace the content of the database."""
        if self.in_transaction or isinstance(self.mode, Own):
            raise operational("target is in use")
        self._place.check_target()

    def replace(self, file: Path) -> None:
        """Replaces the content of the database by that of a file. Blocks this thread. Whatever fails, it is open."""
        handle = self.handle
        try:
            wait(handle._begin_close())
            self._place.write(file)
        finally:
            self._handle = waited(self._place.open())
            self._mode = self._fresh(self._handle)

    def _run(self, what: Statement, given: Any, begins: bool) -> Steps[Result]:
        return (yield from self._in_mode(lambda mode: mode.run(what, given, begins)))

    def _in_mode(self, work: Callable[[Pooled | Own], Steps[Result]]) -> Steps[Result]:
        """Does the work where statements run, and on a connection of its own if it needs one."""
        try:
            return (yield from work(self.mode))
        except NeedsOwn as needs:
            reason = str(needs)
        own = yield from self.own(reason)
        return (yield from work(own))

    def _commit_without_level(self) -> Steps[None]:
        # As in `sqlite3`, also if the commit fails.
        self._level = None
        yield from self.mode.commit()

    def _script(self, script: str) -> Steps[None]:
        yield from self.mode.commit()
        for sql in Statements(script):
            result = yield from self._run(statement(sql), None, False)
            result.close()


def _checked(level: str | None) -> str | None:
    if level is not None and not isinstance(level, str):
        raise TypeError("isolation_level must be str or None")
    if level is not None and level.upper() not in LEVELS:
        raise ValueError("isolation_level string must be '', 'DEFERRED', 'IMMEDIATE', or 'EXCLUSIVE'")
    return None if level is None else level.upper()
