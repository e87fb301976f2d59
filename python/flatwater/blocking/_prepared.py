"""The prepared statements of `flatwater.blocking`.

Owns the handle. Leaves out running it.

Made by `python/tools/twins.py` from `_native.pyi`: change that, and run it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from .._given.row_types import RowsT_co, RowT_co
from .._native import Columns, ExecuteResult, RunResult

if TYPE_CHECKING:
    from .._given.types import ManyParams, Params, Seconds, Types
    from . import Executor

_T = TypeVar("_T")


class Prepared(Generic[RowsT_co, RowT_co]):
    """A statement of a database: `statement = db.prepare(sql)`. Its calls do not belong to a transaction."""

    __slots__ = ("_on", "sql")

    def __init__(self, on: Executor[RowsT_co, RowT_co], sql: str) -> None:
        self._on = on
        self.sql = sql

    def __repr__(self) -> str:
        return f"<flatwater.blocking.Prepared {self.sql!r}>"

    def execute(self, params: Params = None, *, timeout: Seconds | None = None) -> ExecuteResult:
        """As `Database.execute`."""
        return self._on.execute(self.sql, params, timeout=timeout)

    def run(self, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None) -> RunResult:
        """As `Database.run`."""
        return self._on.run(self.sql, params, types=types, timeout=timeout)

    def executemany(self, rows: ManyParams, *, timeout: Seconds | None = None) -> int:
        """As `Database.executemany`."""
        return self._on.executemany(self.sql, rows, timeout=timeout)

    @overload
    def query(
        self, params: Params = None, *, into: None = None, types: Types | None = None, timeout: Seconds | None = None
    ) -> RowsT_co: ...
    @overload
    def query(
        self,
        params: Params = None,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[dict[str, Any]]: ...
    @overload
    def query(
        self,
        params: Params = None,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[tuple[Any, ...]]: ...
    @overload
    def query(
        self,
        params: Params = None,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[_T]: ...
    def query(
        self, params: Params = None, *, into: Any = None, types: Types | None = None, timeout: Seconds | None = None
    ) -> Any:
        """As `Database.query`."""
        return self._on.query(self.sql, params, into=into, types=types, timeout=timeout)

    @overload
    def query_many(
        self, rows: ManyParams, *, into: None = None, types: Types | None = None, timeout: Seconds | None = None
    ) -> RowsT_co: ...
    @overload
    def query_many(
        self,
        rows: ManyParams,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[dict[str, Any]]: ...
    @overload
    def query_many(
        self,
        rows: ManyParams,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[tuple[Any, ...]]: ...
    @overload
    def query_many(
        self, rows: ManyParams, *, into: Callable[..., _T], types: Types | None = None, timeout: Seconds | None = None
    ) -> list[_T]: ...
    def query_many(
        self, rows: ManyParams, *, into: Any = None, types: Types | None = None, timeout: Seconds | None = None
    ) -> Any:
        """As `Database.query_many`."""
        return self._on.query_many(self.sql, rows, into=into, types=types, timeout=timeout)

    @overload
    def query_one(
        self, params: Params = None, *, into: None = None, types: Types | None = None, timeout: Seconds | None = None
    ) -> RowT_co: ...
    @overload
    def query_one(
        self,
        params: Params = None,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> dict[str, Any]: ...
    @overload
    def query_one(
        self,
        params: Params = None,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> tuple[Any, ...]: ...
    @overload
    def query_one(
        self,
        params: Params = None,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> _T: ...
    def query_one(
        self, params: Params = None, *, into: Any = None, types: Types | None = None, timeout: Seconds | None = None
    ) -> Any:
        """As `Database.query_one`."""
        return self._on.query_one(self.sql, params, into=into, types=types, timeout=timeout)

    @overload
    def query_optional(
        self, params: Params = None, *, into: None = None, types: Types | None = None, timeout: Seconds | None = None
    ) -> RowT_co | None: ...
    @overload
    def query_optional(
        self,
        params: Params = None,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> dict[str, Any] | None: ...
    @overload
    def query_optional(
        self,
        params: Params = None,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> tuple[Any, ...] | None: ...
    @overload
    def query_optional(
        self,
        params: Params = None,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> _T | None: ...
    def query_optional(
        self, params: Params = None, *, into: Any = None, types: Types | None = None, timeout: Seconds | None = None
    ) -> Any:
        """As `Database.query_optional`."""
        return self._on.query_optional(self.sql, params, into=into, types=types, timeout=timeout)

    def query_value(self, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None) -> Any:
        """As `Database.query_value`."""
        return self._on.query_value(self.sql, params, types=types, timeout=timeout)

    def query_optional_value(
        self, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Any:
        """As `Database.query_optional_value`."""
        return self._on.query_optional_value(self.sql, params, types=types, timeout=timeout)

    def query_values(
        self, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> list[Any]:
        """As `Database.query_values`."""
        return self._on.query_values(self.sql, params, types=types, timeout=timeout)

    def query_columns(self, params: Params = None, *, timeout: Seconds | None = None) -> Columns:
        """As `Database.query_columns`."""
        return self._on.query_columns(self.sql, params, timeout=timeout)

    def query_json(
        self,
        params: Params = None,
        *,
        arrays: bool = False,
        big_integers_as_strings: bool = False,
        embed: list[str] | None = None,
        timeout: Seconds | None = None,
    ) -> str:
        """As `Database.query_json`."""
        return self._on.query_json(
            self.sql,
            params,
            arrays=arrays,
            big_integers_as_strings=big_integers_as_strings,
            embed=embed,
            timeout=timeout,
        )
