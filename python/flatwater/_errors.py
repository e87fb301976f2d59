"""The exceptions: those of PEP 249, each of which is also the one of the `sqlite3` module.

Owns the classes and their attributes. Leaves out which class an error has: `flatwater-bridge`.
"""

from __future__ import annotations

import builtins
import sqlite3
import sys
from typing import TYPE_CHECKING, NamedTuple


class Warning(sqlite3.Warning):
    """Never raised; PEP 249 asks for it."""


class Constraint(NamedTuple):
    """The constraint that failed, as far as SQLite tells."""

    kind: str
    """"unique", "primary_key", "not_null", "check", "foreign_key", "trigger", "data_type" or "other"."""
    table: str | None
    """SQLite does not name that of a foreign key and of a trigger."""
    columns: tuple[str, ...]
    """In the order of the constraint; empty where SQLite names none."""
    name: str | None
    """The name of the index on an expression, or of the CHECK; of a CHECK without a name, its text."""


class Error(sqlite3.Error):
    """Any failure of a call. Its attributes never contain bound values.

    `sqlite_errorcode` is SQLite's extended result code, and `sqlite_errorname` its name, such as
    "SQLITE_CONSTRAINT_UNIQUE". Both are None if the error is not SQLite's; then it has a `code`.
    """

    kind: str = "misuse"
    """The kind of failure, such as "constraint", "busy" or "timeout"."""
    code: str | None = None
    """What went wrong, such as "returns_rows", if the error is not SQLite's. The page "Error codes" lists all."""
    constraint: Constraint | None = None
    """The constraint that failed, for an error of that kind."""
    retryable: bool = False
    """True if the same call may succeed later, and this one did nothing."""
    sql: str | None = None
    """The SQL, shortened."""
    hint: str | None = None
    """What to do about it."""
    offset: int | None = None
    """The byte in the SQL at which the offending token begins, if SQLite reported it."""
    applied: str | None = None
    """Whether the work was done. For a timeout "no" or "unknown"; "yes" for a write whose rows cannot be JSON."""
    if TYPE_CHECKING and sys.version_info < (3, 11):
        # From then on they are declared by the `sqlite3` module.
        sqlite_errorcode: int
        sqlite_errorname: str


class InterfaceError(Error, sqlite3.InterfaceError):
    """Never raised; PEP 249 asks for it."""


class DatabaseError(Error, sqlite3.DatabaseError):
    """The file is damaged, or is not a database."""


class DataError(DatabaseError, sqlite3.DataError):
    """A value is larger than SQLite stores, or cannot be read as what is asked for."""


class OperationalError(DatabaseError, sqlite3.OperationalError):
    """The SQL, the state of the database or its surroundings: a lock, a disk."""


class Timeout(OperationalError, builtins.TimeoutError):
    """The deadline of the call passed."""


class Busy(OperationalError):
    """Another connection or process held a lock for longer than the busy timeout."""


class IntegrityError(DatabaseError, sqlite3.IntegrityError):
    """A constraint failed, or a value does not fit its column."""


class UniqueViolation(IntegrityError):
    """A UNIQUE or a PRIMARY KEY constraint failed, or a unique index."""


class ForeignKeyViolation(IntegrityError):
    """A foreign key constraint failed."""


class NotNullViolation(IntegrityError):
    """A NOT NULL constraint failed."""


class CheckViolation(IntegrityError):
    """A CHECK constraint failed."""


class InternalError(DatabaseError, sqlite3.InternalError):
    """Never raised; PEP 249 asks for it."""


class ProgrammingError(DatabaseError, sqlite3.ProgrammingError):
    """The call is wrong, regardless of what the database contains; or the database is closed."""


class RowNotFound(ProgrammingError):
    """A call that needs a row, such as `query_one`, found none."""


class NotSupportedError(DatabaseError, sqlite3.NotSupportedError):
    """Never raised; PEP 249 asks for it."""


class AtExit(ProgrammingError):
    """A call of a thread that is still there when the interpreter ends and every database is closed. The native part
    makes it without running code of Python, so it has no `__init__`."""

    kind = "closed"
    code = "database_closed"


def make(
    name: str,
    message: str,
    kind: str,
    retryable: bool = False,
    sql: str | None = None,
    hint: str | None = None,
    sqlite: tuple[int | None, str | None] = (None, None),
    offset: int | None = None,
    applied: str | None = None,
    code: str | None = None,
    constraint: tuple[str, str | None, list[str], str | None] | None = None,
) -> Error:
    """Makes an exception. Called by the native part. The text is SQLite's own, with the hint behind it if there is
    one."""
    error: Error = globals()[name](f"{message} -- {hint}" if hint else message)
    error.kind, error.retryable, error.sql, error.hint = kind, retryable, sql, hint
    error.__dict__["sqlite_errorcode"], error.__dict__["sqlite_errorname"] = sqlite
    error.offset, error.applied, error.code = offset, applied, code
    if constraint is not None:
        of, table, columns, called = constraint
        error.constraint = Constraint(of, table, tuple(columns), called)
    return error


def in_row(error: BaseException, row: int) -> None:
    """Says in which row of parameters a value was refused. Called by the native part."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]} (row {row})",)


def in_row_of_result(error: BaseException, row: int, columns: tuple[str, ...]) -> None:
    """Says which row a program's class was called with, without its values. Called by the native part."""
    if sys.version_info >= (3, 11):
        error.add_note(f"row {row} of the result, with the columns {', '.join(columns)}")


def at_parameter(error: BaseException, place: str | None, sql: str) -> None:
    """Says which parameter of which SQL was refused, where the text does not say it. Called by the native part."""
    if isinstance(error, Error):
        error.sql = sql
        if place is not None:
            error.args = (f"parameter {place}: {error.args[0]}",)
    elif place is None:
        return
    elif isinstance(error, UnicodeEncodeError):
        error.reason = f"{error.reason} (parameter {place} of {sql})"
    elif type(error) in (OverflowError, TypeError) and len(error.args) == 1:
        error.args = (f"parameter {place}: {error.args[0]} (in {sql})",)
    elif sys.version_info >= (3, 11):
        # Of an adapter of the program, whose error stays as it is.
        error.add_note(f"parameter {place} of {sql}")


def name_of_type(value: object) -> str:
    """Returns the name of a value's type with its module: numpy has a `bool` too."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def misuse(message: str, hint: str | None = None, code: str = "invalid_argument") -> Error:
    """Makes the exception for a call that is wrong."""
    return make("ProgrammingError", message, "misuse", hint=hint, code=code)
