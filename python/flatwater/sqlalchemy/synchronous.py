"""The dialect for SQLAlchemy's synchronous engines.

Owns what differs from SQLAlchemy's dialect for `sqlite3`. Runs on the threads of the program. Invariants: those of
`dialect`. Leaves out connections and cursors, which are those of `flatwater.dbapi`.
"""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from .. import dbapi
from .._logical.files import with_tuning
from .dialect import OfFlatwater
from .keys import Keys


class SyncConnection(Keys, dbapi.Connection):
    """A connection of `flatwater.dbapi` that a table may be built again on."""

    _has_keys_off = False

    def _rows(self, sql: str) -> list[Any]:
        rows: list[Any] = self.execute(sql).fetchall()
        return rows

    def commit(self) -> None:
        """Commits the transaction, if one is open."""
        self._check_keys()
        super().commit()
        self._turn_keys_on()

    def rollback(self) -> None:
        """Rolls the transaction back, if one is open."""
        super().rollback()
        self._turn_keys_on()


class FlatwaterSyncDialect(OfFlatwater, SQLiteDialect_pysqlite):
    """`sqlite+flatwater_sync://`."""

    driver = "flatwater_sync"
    supports_statement_cache = True

    @classmethod
    def import_dbapi(cls) -> Any:
        """`flatwater.dbapi`."""
        return dbapi

    def connect(self, *args: Any, **given: Any) -> Any:
        """Opens a connection."""
        # SQLAlchemy writes texts in single quotes, and names that it takes from the program in double quotes.
        options = with_tuning({"factory": SyncConnection, **given}, double_quoted_strings=False)
        return super().connect(*args, **cast(Any, options))
