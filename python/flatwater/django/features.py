"""What Django may use of SQLite.

Owns the answers where Django's backend asks for the version of Python's SQLite, which is not that of Flatwater. Leaves
out everything else, which is the same.
"""

from __future__ import annotations

from django.db.backends.sqlite3 import features
from django.utils.functional import cached_property


class DatabaseFeatures(features.DatabaseFeatures):
    """The features of Flatwater's SQLite."""

    can_alter_table_drop_column = True
    # Not for a Django that does not know it.
    supports_aggregate_order_by_clause = "supports_aggregate_order_by_clause" in vars(features.DatabaseFeatures)

    @cached_property
    def can_return_columns_from_insert(self) -> bool:
        """True: it has RETURNING."""
        return True
