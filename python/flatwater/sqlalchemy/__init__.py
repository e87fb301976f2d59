"""The driver of SQLAlchemy's asyncio extension for Flatwater.

    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine("sqlite+flatwater:///app.db")

SQLAlchemy finds it by its name; nothing needs to be imported. It is for SQLAlchemy 2.1.
"""

from .dialect import FlatwaterDialect

__all__ = ["FlatwaterDialect"]
