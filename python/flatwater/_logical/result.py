"""The result of a statement, as a cursor reads it.

Owns the rows that are there and the rest. Invariants: at most about 1 MiB is held of a read outside of a transaction,
and the rest comes from the snapshot that the first rows are of; a half-read result holds a reader and never the
writer. Leaves out factories of rows (`rows`).
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from .._errors import make
from .._native import Executor, NativeBatches, Rows, Turns, converters_of, tuples, turn_is_due
from .._waiting.pause import Pause, is_due
from .rows import Description
from .statement import Kind, Statement
from .steps import Running, Steps, Whole

# So many parts of a result are held. Each is of 256 KiB at most.
HELD = 4
# After so many seconds of rows other tasks get their turn. The clock is read once per so many rows.
SLICE = 0.0005
ROWS = 128

NO_PLACES: Mapping[str, str] = MappingProxyType({})

TextFactory = Callable[[bytes], Any]


class Result:
    """What a statement returned."""

    __slots__ = (
        "__weakref__",
        "_at",
        "_converters",
        "_parts",
        "_rest",
        "_running",
        "_turns",
        "description",
        "lastrowid",
        "rowcount",
    )

    def __init__(self, lastrowid: int | None = None, rowcount: int = -1) -> None:
        self.description: Description | None = None
        self.lastrowid = lastrowid
        self.rowcount = rowcount
        self._parts: deque[Rows] = deque()
        # The row of the first part that is next.
        self._at = 0
        self._rest: NativeBatches | None = None
        # The calls of the connection that run.
        self._running: set[Any] = set()
        self._converters: list[Callable[[bytes], Any] | None] | None = None
        self._turns = Turns()

    def add(self, rows: Rows, detect_types: int, places: Mapping[str, str] = NO_PLACES) -> None:
        """Takes the first rows, with the columns. Their names have what the program has written in these places."""
        if not rows.columns:
            return
        names = rows.columns
        if detect_types:
            declared, named = detect_types & sqlite3.PARSE_DECLTYPES, detect_types & sqlite3.PARSE_COLNAMES
            names, self._converters = converters_of(rows, sqlite3.converters, bool(declared), bool(named))
        for place, written in places.items():
            names = tuple(name.replace(place, written) for name in names)
        self.description = tuple((name, None, None, None, None, None, None) for name in names)
        if len(rows):
            self._parts.append(rows)

    def hold(self, batches: NativeBatches, running: set[Any]) -> Steps[None]:
        """Takes what may be held of the rest."""
        self._running = running
        for _ in range(HELD):
            if batches.is_over():
                return
            rows = yield Running(batches.next_batch(), running)
            if rows is not None:
                self._parts.append(rows)
        self._rest = None if batches.is_over() else batches

    def now(self, text: TextFactory | None) -> tuple[Any, ...] | None:
        """Returns the next row, if it is there and other tasks need not have their turn before."""
        if not self._parts or is_due(self._at):
            return None
        part = self._parts[0]
        rows = tuples(part, self._at, self._at + 1, text, self._converters)
        self._move(part, self._at + 1)
        return rows[0]

    def fetch(self, count: int | None, text: TextFactory | None) -> Steps[list[tuple[Any, ...]]]:
        """Returns so many rows, or all that are left."""
        if self._rest is None:
            return (yield from self._fetch(count, text))
        # Two tasks may fetch, and the native side knows one that waits.
        turn = self._turns.take(shared=False)
        try:
            if not turn.has_come:
                yield turn
            return (yield from self._fetch(count, text))
        finally:
            turn.leave()

    def _fetch(self, count: int | None, text: TextFactory | None) -> Steps[list[tuple[Any, ...]]]:
        rows: list[tuple[Any, ...]] = []
        if turn_is_due():
            yield Pause()
        began = time.perf_counter()
        while count is None or len(rows) < count:
            if not self._parts:
                if self._rest is None:
                    break
                part = yield Running(self._rest.next_batch(), self._running)
                if part is None:
                    self._rest = None
                    break
                self._parts.append(part)
            part = self._parts[0]
            end = min(len(part), self._at + (ROWS if count is None else min(ROWS, count - len(rows))))
            rows += tuples(part, self._at, end, text, self._converters)
            self._move(part, end)
            if time.perf_counter() - began >= SLICE:
                yield Pause()
                began = time.perf_counter()
        return rows

    def _move(self, part: Rows, at: int) -> None:
        self._at = at
        if at >= len(part):
            self._parts.popleft()
            self._at = 0

    @property
    def is_half_read(self) -> bool:
        """True if it holds a reader."""
        return self._rest is not None

    def end(self) -> Steps[None]:
        """Gives the reader back when a fetch that is under way is over."""
        turn = self._turns.take(shared=False)
        try:
            if not turn.has_come:
                yield turn
            self.close()
        finally:
            turn.leave()

    def close(self) -> None:
        """Gives the reader back. There are no more rows."""
        self._parts.clear()
        self._at = 0
        if self._rest is not None:
            self._rest.close()
            self._rest = None


def read(
    on: Executor,
    sql: str,
    values: Any,
    lastrowid: int,
    detect_types: int,
    running: set[Any],
    places: Mapping[str, str] = NO_PLACES,
) -> Steps[Result]:
    """Runs a query."""
    result = Result(lastrowid)
    batches = on._batches(sql, values, None)
    first = yield Running(batches.next_batch(), running)
    if first is not None:
        result.add(first, detect_types, places)
        yield from result.hold(batches, running)
    elif (empty := batches.empty()) is not None:
        result.add(empty, detect_types, places)
    return result


def for_each(on: Executor, what: Statement, given: Iterable[Any], running: set[Any] | None) -> Steps[Result]:
    """Runs a statement that changes rows for each row of parameters. If one fails, or cannot be had, those before it
    stay. The result has the rows of all runs."""
    result = Result()
    if what.kind is not Kind.WRITE:
        # As in `sqlite3`, which compiles it before.
        yield on._prepare(what.sql, None)
        raise make("ProgrammingError", "executemany() can only execute DML statements.", "misuse")
    done = yield Whole(on._run_many(what.sql, given, True), running)
    if done.rows is not None:
        result.add(done.rows, 0)
    if what.is_dml:
        result.rowcount = done.changes
    return result
