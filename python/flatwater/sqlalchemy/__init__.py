"""The driver of SQLAlchemy's asyncio extension for Flatwater.

    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine("sqlite+flatwater:///app.db")

SQLAlchemy finds it by its name; nothing needs to be imported. It is for SQLAlchemy 2.0 and 2.1. `libsql+flatwater://`
and `rqlite+flatwater://` are databases on servers, and `sqlite+flatwater_sync://` is for `create_engine`.
"""

from .dialect import FlatwaterDialect
from .servers import LibsqlDialect, RqliteDialect
from .synchronous import FlatwaterSyncDialect

__all__ = ["FlatwaterDialect", "FlatwaterSyncDialect", "LibsqlDialect", "RqliteDialect"]
