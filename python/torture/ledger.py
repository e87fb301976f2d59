"""The fate of each row of a round of `sync_dependencies`.

Owns what a block that was kept, undone or given up means for its rows. Any thread may use it.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

import flatwater

INSERT = "INSERT INTO t VALUES (?)"
OWN = "inside its own transaction"
# A step that takes longer counts as hung.
HANGS = 60


class Finding(Exception):
    """What must not be."""


class Ledger:
    """The fate of each row: it is there, or it is not, or all of its block are or none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: set[int] = set()
        self._open: list[set[int]] = []
        self._last = 0
        self.counts: Counter[str] = Counter()

    def number(self) -> int:
        with self._lock:
            self._last += 1
            return self._last

    def keep(self, rows: list[int]) -> None:
        with self._lock:
            self._kept.update(rows)

    def leave_open(self, rows: list[int]) -> None:
        with self._lock:
            self._open.append(set(rows))

    def goes_on(self, until: float, what: str) -> bool:
        """What does nothing finds nothing: it goes on until the time is over, and something was done."""
        return time.monotonic() < until or not self.counts[what]

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def compare(self, rows: list[int]) -> None:
        if lost := self._kept - set(rows):
            raise Finding(f"acknowledged rows that are lost: {sorted(lost)[:10]}")
        if len(rows) != len(set(rows)):
            raise Finding("a row is there twice")
        extra = set(rows) - self._kept
        for block in self._open:
            if extra & block and not extra >= block:
                raise Finding(f"a part of a block: {sorted(extra & block)}")
            extra -= block
        if extra:
            raise Finding(f"rows that nobody kept: {sorted(extra)[:10]}")


class Undo(Exception):
    """A block is to be undone."""


def is_idle_end(error: flatwater.Error) -> bool:
    return error.kind == "expired" and "was not used for" in str(error)
