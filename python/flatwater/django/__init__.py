"""The backend of Django for Flatwater: Django's own for SQLite, with connections of `flatwater.dbapi`.

    DATABASES = {"default": {"ENGINE": "flatwater.django", "NAME": BASE_DIR / "db.sqlite3"}}

It is for Django 5.2 and later. An asynchronous view may use the package's own calls beside Django's, live queries too:

    async with flatwater.django.connect() as db:
        names = await db.query_values("SELECT name FROM shop_user")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import DEFAULT_DB_ALIAS, connections

if TYPE_CHECKING:
    from .._handles.database import Connecting

__all__ = ["connect"]


def connect(alias: str = DEFAULT_DB_ALIAS) -> Connecting:
    """Opens the file of one of DATABASES for the package's own calls, with the options that Django's connections have:
    `async with connect() as db`. Raises Django's `NotSupportedError` for a database in memory."""
    # Not the connection of this context, which belongs to the thread that uses it first.
    connecting: Connecting = connections.create_connection(alias).connecting()
    return connecting
