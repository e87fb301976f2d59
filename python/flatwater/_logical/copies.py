"""Copies of a logical connection's database: into another connection, and as SQL.

Owns both. Invariant: a target is as it was, or a whole copy, and open in either case. The pages are copied by the
`sqlite3` module from a file that nobody else has, so that its targets and its progress callbacks are served as it
serves them. Leaves out the copy into that file, which the engine makes.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .._errors import make
from .._handles.dump import Ask, Lines, dump
from .._native import Executor
from .connection import Logical
from .steps import Running, Step, Steps

Progress = Callable[[int, int, int], object]


class InThread(Step[None]):
    """Code that blocks: on a thread of its own if it is awaited. It is waited for also if its task is cancelled."""

    __slots__ = ("_code", "is_cancelled")

    def __init__(self, code: Callable[[], None]) -> None:
        self._code = code
        self.is_cancelled = False

    def __await__(self) -> Generator[Any, Any, None]:
        thread = asyncio.ensure_future(asyncio.to_thread(self._code))
        cancelled: asyncio.CancelledError | None = None
        while not thread.done():
            try:
                yield from asyncio.wait([thread]).__await__()
            except asyncio.CancelledError as error:
                cancelled, self.is_cancelled = error, True
        if cancelled is not None:
            thread.exception()
            raise cancelled
        thread.result()

    def _wait(self) -> None:
        self._code()


def backup(
    source: Logical,
    target: Logical | sqlite3.Connection,
    pages: int,
    progress: Progress | None,
    name: str,
    sleep: float,
) -> Steps[None]:
    """Copies the database into that of another connection."""
    if target is source:
        raise ValueError("target cannot be the same connection instance")
    _refuse_encrypted(source)
    if isinstance(target, Logical):
        _refuse_encrypted(target)
    with TemporaryDirectory(prefix="flatwater-") as folder:
        file = os.path.join(folder, "copy.db")
        yield from source.alone(lambda: _copy(source, file))

        def copy(into: sqlite3.Connection) -> None:
            def goes_on(status: int, remaining: int, total: int) -> None:
                if copying.is_cancelled:
                    raise InterruptedError("the backup was cancelled")
                if progress is not None:
                    progress(status, remaining, total)

            with closing(sqlite3.connect(file, check_same_thread=False)) as copied:
                copied.backup(into, pages=pages, progress=goes_on, name=name, sleep=sleep)

        if isinstance(target, sqlite3.Connection):
            plain = target
            copying = InThread(lambda: copy(plain))
            yield copying
            return
        # What may raise or be cancelled is over before the target is touched.
        target.check_target()
        whole = Path(folder, "whole.db")

        def copy_whole() -> None:
            with closing(sqlite3.connect(whole, check_same_thread=False)) as into:
                copy(into)

        copying = InThread(copy_whole)
        yield copying
        logical = target
        yield from logical.alone(lambda: _replace(logical, whole))


def _replace(target: Logical, whole: Path) -> Steps[None]:
    target.check_target()
    yield InThread(lambda: target.replace(whole))


def _refuse_encrypted(connection: Logical) -> None:
    """The `sqlite3` module has no key, and a copy that it could read would be plain."""
    if connection.is_encrypted:
        raise make(
            "OperationalError",
            "an encrypted database is not copied to or from another connection: `backup` of `flatwater.connect` keeps "
            "the key, and its `export` makes a copy with another key, or a plain one",
            "misuse",
        )


def _copy(source: Logical, file: str) -> Steps[None]:
    if source.in_transaction:
        raise make("OperationalError", "database table is locked", "locked", sqlite=(6, "SQLITE_LOCKED"))
    yield source.handle._native.backup(file, None)


def iterdump(source: Logical) -> Steps[list[str]]:
    """Returns the lines of a dump, as `sqlite3` writes them: of what the connection sees."""
    return (yield from source.alone(lambda: _dump(source)))


def _dump(source: Logical) -> Steps[list[str]]:
    on, running, snapshot = source.on, source.mode.running, None
    if not source.in_transaction:
        snapshot = yield on._snapshot(None)
        on = Executor()
        on._open(snapshot)
    asked, rows = dump(None), None
    lines: list[str] = []
    try:
        while True:
            try:
                step = asked.send(rows)
            except StopIteration:
                return lines
            rows = None
            if isinstance(step, Ask):
                rows = yield Running(on.query(step.sql, step.params), running)
            elif isinstance(step, Lines):
                batches = on._batches(step.sql, None, None)
                while (some := (yield Running(batches.next_batch(), running))) is not None:
                    lines += [f"{row[0]};" for row in some]
            else:
                lines.append(step)
    finally:
        if snapshot is not None:
            snapshot.close()
