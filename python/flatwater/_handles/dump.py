"""The dump of a database as SQL, as `sqlite3` writes it.

Owns what is asked of the database, and the lines. Knows nothing of how it is asked: the loops are those of the
databases. Differs from `sqlite3` in the rows of virtual tables, which are left out: their own tables have them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

# Expressions, which have no declared type, and names without brackets: no converter of the program is called.
TABLES = (
    "SELECT name || '' AS name, sql || '' AS sql FROM sqlite_master"
    " WHERE sql NOT NULL AND type = 'table' AND name LIKE ? ORDER BY name"
)
OTHERS = (
    "SELECT sql || '' AS sql FROM sqlite_master"
    " WHERE sql NOT NULL AND type IN ('index', 'trigger', 'view') AND name LIKE ?"
)


class Ask:
    """A query whose rows the dump needs."""

    def __init__(self, sql: str, params: tuple[str, ...] = ()) -> None:
        self.sql = sql
        self.params = params


class Lines:
    """A query whose rows are lines of the dump, without their semicolon."""

    def __init__(self, sql: str) -> None:
        self.sql = sql


def dump(pattern: str | None) -> Generator[str | Ask | Lines, Any, None]:
    """Yields the lines of the dump, and what must be asked for. The rows that an `Ask` returns are sent back."""
    like = "%" if pattern is None else pattern
    if (yield Ask("PRAGMA foreign_key_check")):
        yield "PRAGMA foreign_keys=OFF;"
    yield "BEGIN TRANSACTION;"
    tables = yield Ask(TABLES, (like,))
    writes_schema, sequence = False, []
    for name, sql in tables:
        if name == "sqlite_sequence":
            rows = yield Ask("SELECT name, seq FROM sqlite_sequence")
            sequence = ['DELETE FROM "sqlite_sequence";']
            sequence += [f'INSERT INTO "sqlite_sequence" VALUES({_text(table)},{seq});' for table, seq in rows]
            continue
        if name == "sqlite_stat1":
            yield 'ANALYZE "sqlite_master";'
        elif name.startswith("sqlite_"):
            continue
        elif sql.upper().startswith("CREATE VIRTUAL TABLE"):
            if not writes_schema:
                yield "PRAGMA writable_schema=ON;"
            writes_schema = True
            yield (
                "INSERT INTO sqlite_master(type,name,tbl_name,rootpage,sql)"
                f"VALUES('table',{_text(name)},{_text(name)},0,{_text(sql)});"
            )
            continue
        else:
            yield f"{sql};"
        columns = yield Ask(f"PRAGMA table_info({_name(name)})")
        values = "||','||".join(f"quote({_name(column[1])})" for column in columns)
        insert = _text(f"INSERT INTO {_name(name)} VALUES(")
        yield Lines(f"SELECT {insert}||{values}||')' AS line FROM {_name(name)}")
    for (sql,) in (yield Ask(OTHERS, (like,))):
        yield f"{sql};"
    if writes_schema:
        yield "PRAGMA writable_schema=OFF;"
    yield from sequence
    yield "COMMIT;"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
