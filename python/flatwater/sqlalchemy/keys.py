"""Foreign keys while Alembic builds a table again.

Owns turning them off and on. Invariants: the rows that refer to the table stay, though SQLite deletes a table's rows
before it drops it; all keys are checked before the commit. Leaves out when a table is built again (`dialect`).
"""

from __future__ import annotations

from typing import Any

from .._errors import make
from .._logical import Logical

# The name under which Alembic builds a table again, to rename it in the end.
REBUILT = "_alembic_tmp_"


class Keys:
    """The part of a connection that turns foreign keys off."""

    _logical: Logical
    # Until the next commit or rollback.
    _has_keys_off: bool

    def _rows(self, sql: str) -> list[Any]:
        """Runs a statement, and returns its rows."""
        raise NotImplementedError

    def turn_keys_off(self) -> None:
        """Turns foreign keys off for the rest of the transaction, which has not begun: a table is built again, and the
        DROP of the old one would delete the rows that refer to it. They are checked before the commit."""
        if self._has_keys_off or self._rows("PRAGMA foreign_keys") != [(1,)]:
            return
        if self._logical.in_transaction:
            message = "a table is built again in a transaction that has begun, where foreign keys cannot be turned off"
            hint = "SQLite would delete the rows that refer to it: commit before, or do it in a migration of its own"
            raise make("OperationalError", message, "misuse", hint=hint)
        self._rows("PRAGMA foreign_keys = OFF")
        self._has_keys_off = True

    def _check_keys(self) -> None:
        """Raises if a key is broken, before a commit."""
        if self._has_keys_off and (broken := self._rows("PRAGMA foreign_key_check")):
            table, rowid, parent, _ = broken[0]
            message = (
                f"FOREIGN KEY constraint failed: {len(broken)} row(s), such as rowid {rowid} of {table}, miss {parent}"
            )
            constraint: tuple[str, str | None, list[str], str | None] = ("foreign_key", table, [], None)
            code = (787, "SQLITE_CONSTRAINT_FOREIGNKEY")
            raise make("ForeignKeyViolation", message, "constraint", sqlite=code, constraint=constraint)

    def _turn_keys_on(self) -> None:
        if self._has_keys_off and self._logical.is_open:
            self._rows("PRAGMA foreign_keys = ON")
            self._has_keys_off = False
