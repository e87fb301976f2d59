"""The cursor of a logical connection: what runs a statement and reads its result.

Owns its result. Invariant: a cursor that runs another statement gives up the result before. Leaves out running
statements (`connection`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from .connection import Logical
from .errors import Closed
from .result import Result
from .rows import Description, made
from .steps import Steps

NOT_THERE: Any = object()


class LogicalCursor:
    """A cursor as the `sqlite3` module has it."""

    def __init__(self, connection: Logical) -> None:
        self.connection = connection
        self.row_factory = connection.row_factory
        self.arraysize = 1
        self._result = Result()
        self._lastrowid: int | None = None
        self._is_closed = False
        self._makes_rows = False

    @property
    def description(self) -> Description | None:
        """The columns of the result, or None if the statement has none."""
        return self._result.description

    @property
    def rowcount(self) -> int:
        """How many rows the statement has changed; -1 for others than INSERT, UPDATE, DELETE and REPLACE."""
        return self._result.rowcount

    @property
    def lastrowid(self) -> int | None:
        """The rowid of the row that the connection has inserted last."""
        return self._lastrowid

    def execute(self, sql: str, given: Any = ()) -> Steps[None]:
        """Runs one statement."""
        self._give_up()
        self._take((yield from self.connection.run(sql, given)))

    def executemany(self, sql: str, rows: Iterable[Any]) -> Steps[None]:
        """Runs one statement for each row of parameters. Of RETURNING only the columns are told."""
        yield from self.run_many(sql, rows)
        self._result.close()

    def run_many(self, sql: str, rows: Iterable[Any]) -> Steps[None]:
        """Runs one statement for each row of parameters. The result has the rows of all runs."""
        self._give_up()
        given = rows if isinstance(rows, (list, tuple)) else self._apart(rows)
        self._take((yield from self.connection.many(sql, given)))

    def _apart(self, rows: Iterable[Any]) -> Iterator[Any]:
        """The rows. What makes them may use the connection, and not this cursor."""
        self._makes_rows = True
        try:
            for row in rows:
                self._makes_rows = False
                yield row
                self._makes_rows = True
        finally:
            self._makes_rows = False

    def executescript(self, script: str) -> Steps[None]:
        """Runs the statements of a script. The result stays that of the statement before."""
        self._check()
        yield from self.connection.script(script)

    def _give_up(self) -> None:
        self._check()
        self._result.close()
        # Also if the next statement fails.
        self._result = Result()

    def _take(self, result: Result) -> None:
        self._result = result
        if result.lastrowid is not None:
            self._lastrowid = result.lastrowid

    def fetchone_now(self) -> Any:
        """Returns the next row if it is there, and `NOT_THERE` otherwise."""
        self._check()
        row = self._result.now(self._text())
        if row is None:
            return NOT_THERE
        return row if self.row_factory is None else self._made([row])[0]

    def fetchone(self) -> Steps[Any]:
        """Returns the next row, or None."""
        rows = yield from self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> Steps[list[Any]]:
        """Returns the next rows, `arraysize` if it is not said how many."""
        self._check()
        return self._made((yield from self._result.fetch(self.arraysize if size is None else size, self._text())))

    def fetchall(self) -> Steps[list[Any]]:
        """Returns the rows that are left."""
        self._check()
        return self._made((yield from self._result.fetch(None, self._text())))

    def close(self) -> None:
        """Gives the result up."""
        self._is_closed = True
        self._result.close()

    def _check(self) -> None:
        if not self.connection.is_open:
            raise Closed()
        if self._is_closed:
            raise sqlite3.ProgrammingError("Cannot operate on a closed cursor.")
        if self._makes_rows:
            raise sqlite3.ProgrammingError("Recursive use of cursors not allowed.")

    def _text(self) -> Any:
        factory = self.connection.text_factory
        return None if factory is str else factory

    def _made(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        if self.row_factory is None or not rows:
            return rows
        return made(self.row_factory, self, self.description or (), rows)
