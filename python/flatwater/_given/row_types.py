"""What a database returns of rows, for type checkers: all of a result, and one of them.

Owns these variables. Invariant: of a database that was opened without `into`, and of a type that says nothing, they are
`Rows` and `Row`. Leaves out making rows, which the native part does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from .._native import Row, Rows

    RowsT_co = TypeVar("RowsT_co", covariant=True, default=Rows)
    RowT_co = TypeVar("RowT_co", covariant=True, default=Row)
else:
    from typing import TypeVar

    RowsT_co = TypeVar("RowsT_co", covariant=True)
    RowT_co = TypeVar("RowT_co", covariant=True)
