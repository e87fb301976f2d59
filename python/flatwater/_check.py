"""The check of a database: its SQL, and the problems of its rows.

Owns both, for code that awaits and for code that waits. Leaves out running it.
"""

from __future__ import annotations

from collections.abc import Iterator

# As in the engine.
_MOST = 10_000


def sql(table: str | None, quick: bool, name: str) -> str:
    """The statement that checks a database, or one of its tables."""
    pragma = "quick_check" if quick else "integrity_check"
    return f"PRAGMA {_quoted(name)}.{pragma}({_MOST if table is None else _quoted(table)})"


def problems(row: str) -> Iterator[str]:
    """The problems of a row. The first row has all that the pages have, after a line with the name of the database."""
    for line in row.splitlines():
        if line not in ("", "ok") and not line.startswith("*** in database "):
            yield line


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
