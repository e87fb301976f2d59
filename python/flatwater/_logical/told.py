"""What a logical connection tells of its earlier statements.

Owns these numbers, as SQLite has them for one connection. Invariant: a statement that asks for them gets those of this
connection, wherever it runs. Leaves out counting, which is done where statements run.
"""

from __future__ import annotations

from collections.abc import Container

from .statement import Statement

# What SQLite knows of the connection where a statement has run.
EARLIER = "SELECT last_insert_rowid(), changes(), total_changes()"


class Told:
    """The numbers of one connection."""

    __slots__ = ("changes", "rowid", "total")

    def __init__(self) -> None:
        # As `last_insert_rowid()`, `changes()` and `total_changes()`.
        self.rowid = 0
        self.changes = 0
        self.total = 0

    def text(self, what: Statement, known: Container[str] = ()) -> tuple[str, dict[str, str]]:
        """The text with these numbers in it, if it asks for them, but for those that are `known` where it runs. And for
        each place how the program has written it."""
        if not what.calls:
            return what.sql, {}
        numbers = {"last_insert_rowid": self.rowid, "changes": self.changes, "total_changes": self.total}
        return what.telling({name: number for name, number in numbers.items() if name not in known})
