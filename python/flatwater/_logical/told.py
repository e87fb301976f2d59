"""What a logical connection tells of its earlier statements.

Owns these numbers, as SQLite has them for one connection. Invariant: a statement that asks for them gets those of this
connection, wherever it runs. Leaves out counting, which is done where statements run.
"""

from __future__ import annotations

from .statement import Statement


class Told:
    """The numbers of one connection."""

    __slots__ = ("changes", "rowid", "total")

    def __init__(self) -> None:
        # As `last_insert_rowid()`, `changes()` and `total_changes()`.
        self.rowid = 0
        self.changes = 0
        self.total = 0

    def text(self, what: Statement, is_known: bool) -> str:
        """Returns the text with these numbers in it, if it asks for them, unless they are known where it runs."""
        if not what.tells_of_earlier or is_known or what.first == "CREATE":
            return what.sql
        return what.about({"last_insert_rowid": self.rowid, "changes": self.changes, "total_changes": self.total})
