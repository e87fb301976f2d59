"""The order of the statements of one connection: that of their calls, from any task, thread or loop.

Owns the line. Invariants: who came first goes first; those that share go together, unless one that does not came
between; who leaves the line, also by a cancellation, keeps nobody waiting. Leaves out what is done in a turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator
from threading import Event, Lock
from typing import Any


class Turns:
    """The line of one connection."""

    __slots__ = ("_alone", "_line", "_lock", "_shared")

    def __init__(self) -> None:
        self._lock = Lock()
        self._line: deque[Turn] = deque()
        self._alone = False
        self._shared = 0

    def empty(self) -> bool:
        """Returns true if nobody has a turn, or waits for one."""
        with self._lock:
            return not (self._line or self._alone or self._shared)

    def take(self, *, shared: bool) -> Turn:
        """Returns a place in the line."""
        turn = Turn(self, shared)
        with self._lock:
            if self._line or not self._may_go(shared):
                self._line.append(turn)
            else:
                self._go(turn)
        return turn

    def _may_go(self, shared: bool) -> bool:
        return not self._alone and (shared or not self._shared)

    def _go(self, turn: Turn) -> None:
        turn.has_come = True
        if turn.shared:
            self._shared += 1
        else:
            self._alone = True

    def leave(self, turn: Turn) -> None:
        """Ends a turn, or leaves the line."""
        called = []
        with self._lock:
            if not turn.has_come:
                self._line.remove(turn)
            elif turn.shared:
                self._shared -= 1
            else:
                self._alone = False
            while self._line and self._may_go(self._line[0].shared):
                turn = self._line.popleft()
                self._go(turn)
                called.append(turn)
        for turn in called:
            turn.call()


class Turn:
    """A place in the line: a step that is over when the turn has come."""

    __slots__ = ("_future", "_of", "_ready", "has_come", "shared")

    def __init__(self, of: Turns, shared: bool) -> None:
        self._of = of
        self.shared = shared
        self.has_come = False
        self._future: asyncio.Future[None] | None = None
        self._ready: Event | None = None

    def leave(self) -> None:
        """Ends it."""
        self._of.leave(self)

    def call(self) -> None:
        """Wakes who waits for it. Called when it has come."""
        if self._ready is not None:
            self._ready.set()
        future = self._future
        if future is None:
            return
        loop = future.get_loop()
        if loop is asyncio._get_running_loop():
            _wake(future)
            return
        try:
            loop.call_soon_threadsafe(_wake, future)
        except RuntimeError:
            # The loop is closed: its task never leaves, and nobody waits for that.
            self.leave()

    def __await__(self) -> Generator[Any, Any, None]:
        self._future = asyncio.get_running_loop().create_future()
        # It may have come before there was somebody to wake.
        while not self.has_come:
            yield from self._future

    def _wait(self) -> None:
        self._ready = Event()
        while not self.has_come:
            self._ready.wait()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
