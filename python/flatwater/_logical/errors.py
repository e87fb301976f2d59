"""The errors of a logical connection: those of Flatwater with the texts of `sqlite3`.

Owns the texts that programs test for. Invariant: the class is that of Flatwater, which derives from that of
`sqlite3`, and the hint stays in `hint`. Leaves out which call fails with what.
"""

from __future__ import annotations

import re

from .._errors import Busy, Error, ProgrammingError, Timeout, make

BUSY = (5, "SQLITE_BUSY")
NOTADB = 26
_COUNTS = re.compile(r"the statement has (\d+) parameter\(s\) and (\d+) value\(s\) were given")
_TEXTS = {
    "SQLITE_NOTADB": "file is not a database",
    "SQLITE_READONLY": "attempt to write a readonly database",
}


class Closed(ProgrammingError, ValueError):
    """The connection is closed. aiosqlite raises a `ValueError` for it, and `sqlite3` a `ProgrammingError`."""

    kind = "closed"
    code = "database_closed"

    def __init__(self, message: str = "Connection closed") -> None:
        super().__init__(message)
        self.__dict__["sqlite_errorcode"] = self.__dict__["sqlite_errorname"] = None


def locked() -> Error:
    """The error of a wait for the writer that ended."""
    return make("Busy", "database is locked", "busy", True, sqlite=BUSY)


def operational(message: str) -> Error:
    """An error that SQLite reports with its most general code."""
    return make("OperationalError", message, "sql", sqlite=(1, "SQLITE_ERROR"))


def interrupted() -> Error:
    """The error of a statement that was interrupted."""
    return make("OperationalError", "interrupted", "cancelled", sqlite=(9, "SQLITE_INTERRUPT"))


def no_own(what: str) -> Error:
    """The error of what would make a connection its own while its transaction is open."""
    hint = "commit or roll back before"
    message = f"{what} needs a connection of its own, and a transaction is open"
    return make("OperationalError", message, "misuse", hint=hint, code="unsupported")


def not_on_server(what: str) -> Error:
    """The error of what would make a connection to a server its own."""
    hint = "use statements; what belongs to one connection is set where the server is started"
    return make(
        "NotSupportedError",
        f"{what} needs a database of this process, and this one is on a server",
        "misuse",
        hint=hint,
        code="unsupported",
    )


def no_transactions() -> Error:
    """The error of a transaction where the server has none."""
    message = "an rqlite cluster has no interactive transactions, and this statement would begin one"
    hint = 'with isolation_level=None, in SQLAlchemy "AUTOCOMMIT", each statement is applied when it is executed'
    return make("NotSupportedError", f"{message}: {hint}", "misuse", hint=hint, code="no_transactions")


def has_no_transactions(error: Error) -> bool:
    """Returns true if the server has no transactions."""
    return error.code == "no_transactions"


def is_busy(error: Error) -> bool:
    """Returns true if the writer, or a lock of another process, was waited for in vain."""
    return isinstance(error, (Timeout, Busy))


def has_no_rows(error: Error) -> bool:
    """Returns true if a statement was not run, because rows were asked for and it has none."""
    return error.code == "returns_no_rows"


def is_of_parameters(error: Error) -> bool:
    """Returns true if there were too many parameters, or too few."""
    return error.code == "parameter_count"


def as_of_sqlite3(error: Error) -> Error:
    """Returns the error with the text that `sqlite3` would have given it."""
    if error.kind == "closed" and not isinstance(error, Closed):
        return Closed()
    text = _TEXTS.get(error.sqlite_errorname or "")
    if error.kind == "open" and error.sqlite_errorcode is None:
        text = "unable to open database file"
    if text is not None:
        told = make("OperationalError" if error.sqlite_errorcode != NOTADB else "DatabaseError", text, error.kind)
        told.__dict__.update({**error.__dict__, "hint": str(error)})
        return told
    if error.kind == "busy" and error.sqlite_errorcode is None:
        error.__dict__["sqlite_errorcode"], error.__dict__["sqlite_errorname"] = BUSY
    if error.code == "parameter_count" and (counts := _COUNTS.match(str(error))):
        error.args = (
            f"Incorrect number of bindings supplied. The current statement uses {counts[1]}, and there are {counts[2]} "
            "supplied.",
        )
    elif error.hint and error.args and isinstance(error.args[0], str):
        error.args = (error.args[0].removesuffix(f" -- {error.hint}"), *error.args[1:])
    return error
