"""The limits of SQLite that a connection has: those that it was compiled with.

Owns which compile option sets which limit. Invariant: no program can set them, so they are those of all connections.
Leaves out the memory and the steps of a statement, which are options of the engine.
"""

from __future__ import annotations

from .._errors import make
from .connection import Logical
from .steps import Steps, Whole

# By the number of a limit (<https://sqlite.org/c3ref/c_limit_attached.html>).
OPTIONS = (
    "MAX_LENGTH",
    "MAX_SQL_LENGTH",
    "MAX_COLUMN",
    "MAX_EXPR_DEPTH",
    "MAX_COMPOUND_SELECT",
    "MAX_VDBE_OP",
    "MAX_FUNCTION_ARG",
    "MAX_ATTACHED",
    "MAX_LIKE_PATTERN_LENGTH",
    "MAX_VARIABLE_NUMBER",
    "MAX_TRIGGER_DEPTH",
    "DEFAULT_WORKER_THREADS",
)
OF_OPTION = """
SELECT CAST(substr(compile_options, length(?1) + 2) AS INTEGER) FROM pragma_compile_options
WHERE compile_options LIKE ?1 || '=%'
"""


def limit(logical: Logical, category: int) -> Steps[int]:
    """Returns a limit by its number."""
    if not 0 <= category < len(OPTIONS):
        raise make("ProgrammingError", "'category' is out of bounds", "misuse")

    def work() -> Steps[int]:
        value: int = (yield Whole(logical.on.query_one(OF_OPTION, (OPTIONS[category],))))[0]
        return value

    return (yield from logical.alone(work))
