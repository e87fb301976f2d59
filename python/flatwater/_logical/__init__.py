"""What `sqlite3` calls a connection, on the engine: the core of the modules that have its surface.

    connection = Logical(Settings("app.db"))
    await awaited(connection.open())
    cursor = LogicalCursor(connection)
    await awaited(cursor.execute("SELECT 1"))
    rows = await awaited(cursor.fetchall())

A module for threads does the same with `waited`.
"""

from .connection import Logical
from .cursor import NOT_THERE, LogicalCursor
from .errors import Closed
from .files import Settings
from .rows import Description, Row, RowFactory
from .steps import Steps, awaited, waited

__all__ = [
    "NOT_THERE",
    "Closed",
    "Description",
    "Logical",
    "LogicalCursor",
    "Row",
    "RowFactory",
    "Settings",
    "Steps",
    "awaited",
    "waited",
]
