"""The calls of `flatwater.blocking` that wait for those of the same name.

Owns the wait. Leaves out `executemany`, which takes the rows of a generator in parts (`blocking`).

Made by `python/tools/twins.py` from `_native.pyi`: change that, and run it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from .._given.row_types import RowsT_co, RowT_co
from .._native import Columns, ExecuteResult, Executor, RunResult, wait

if TYPE_CHECKING:
    from .._given.types import ManyParams, Params, Seconds, SqlLike, Types

_T = TypeVar("_T")


class Calls(Generic[RowsT_co, RowT_co]):
    """The calls that run SQL, and wait for it."""

    _on: Executor[RowsT_co, RowT_co]

    def execute(self, sql: SqlLike, params: Params = None, *, timeout: Seconds | None = None) -> ExecuteResult:
        """Runs one statement that returns no rows. Returns its changes and the rowid of the last row it inserted."""
        return wait(self._on.execute(sql, params, timeout=timeout))

    def run(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> RunResult:
        """Runs any one statement. Returns its rows, if it returns rows, and what it changed: for programs that do not
        know what the statement is, such as consoles and adapters."""
        return wait(self._on.run(sql, params, types=types, timeout=timeout))

    def executescript(self, sql: str, *, timeout: Seconds | None = None) -> None:
        """Runs several statements without parameters, separated by semicolons, all or nothing."""
        wait(self._on.executescript(sql, timeout=timeout))

    def batch(
        self, statements: Iterable[SqlLike | tuple[str, Params]], *, timeout: Seconds | None = None
    ) -> list[RunResult]:
        """Runs several statements with their parameters, all or nothing, in one trip. Returns a result for each."""
        return wait(self._on.batch(statements, timeout=timeout))

    @overload
    def query(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: None = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> RowsT_co: ...
    @overload
    def query(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[dict[str, Any]]: ...
    @overload
    def query(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[tuple[Any, ...]]: ...
    @overload
    def query(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[_T]: ...
    def query(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: Any = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Any:
        """Runs one statement and returns all its rows: a sequence of `Row`, or a list of what `into` makes of each.
        `types` says what the values of columns mean, as the option of `connect`; here each column must be there."""
        return wait(self._on.query(sql, params, into=into, types=types, timeout=timeout))

    @overload
    def query_many(
        self,
        sql: str,
        rows: ManyParams,
        *,
        into: None = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> RowsT_co: ...
    @overload
    def query_many(
        self,
        sql: str,
        rows: ManyParams,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[dict[str, Any]]: ...
    @overload
    def query_many(
        self,
        sql: str,
        rows: ManyParams,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[tuple[Any, ...]]: ...
    @overload
    def query_many(
        self,
        sql: str,
        rows: ManyParams,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> list[_T]: ...
    def query_many(
        self,
        sql: str,
        rows: ManyParams,
        *,
        into: Any = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Any:
        """Runs one statement that returns rows once per row of parameters, all or nothing: an INSERT with RETURNING.
        Returns the rows of all its runs in the order of the parameters, or a list of what `into` makes of each."""
        return wait(self._on.query_many(sql, rows, into=into, types=types, timeout=timeout))

    @overload
    def query_one(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: None = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> RowT_co: ...
    @overload
    def query_one(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> dict[str, Any]: ...
    @overload
    def query_one(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> tuple[Any, ...]: ...
    @overload
    def query_one(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> _T: ...
    def query_one(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: Any = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Any:
        """Runs one statement and returns its first row, or what `into` makes of it. Raises `RowNotFound` if there is
        no row."""
        return wait(self._on.query_one(sql, params, into=into, types=types, timeout=timeout))

    @overload
    def query_optional(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: None = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> RowT_co | None: ...
    @overload
    def query_optional(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[dict[Any, Any]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> dict[str, Any] | None: ...
    @overload
    def query_optional(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: type[tuple[Any, ...]],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> tuple[Any, ...] | None: ...
    @overload
    def query_optional(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: Callable[..., _T],
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> _T | None: ...
    def query_optional(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        into: Any = None,
        types: Types | None = None,
        timeout: Seconds | None = None,
    ) -> Any:
        """Runs one statement and returns its first row, or what `into` makes of it; None if there is no row."""
        return wait(self._on.query_optional(sql, params, into=into, types=types, timeout=timeout))

    def query_value(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Any:
        """Runs one statement and returns the first value of its first row; None for NULL. Raises `RowNotFound` if there
        is no row."""
        return wait(self._on.query_value(sql, params, types=types, timeout=timeout))

    def query_optional_value(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> Any:
        """Runs one statement and returns the first value of its first row; None for NULL and if there is no row."""
        return wait(self._on.query_optional_value(sql, params, types=types, timeout=timeout))

    def query_values(
        self, sql: SqlLike, params: Params = None, *, types: Types | None = None, timeout: Seconds | None = None
    ) -> list[Any]:
        """Runs one statement and returns the first value of every row."""
        return wait(self._on.query_values(sql, params, types=types, timeout=timeout))

    def query_columns(self, sql: SqlLike, params: Params = None, *, timeout: Seconds | None = None) -> Columns:
        """Runs one statement and returns its result as columns, for libraries that read Arrow, such as pandas. Raises
        if a column has values of several types."""
        return wait(self._on.query_columns(sql, params, timeout=timeout))

    def query_json(
        self,
        sql: SqlLike,
        params: Params = None,
        *,
        arrays: bool = False,
        big_integers_as_strings: bool = False,
        embed: list[str] | None = None,
        timeout: Seconds | None = None,
    ) -> str:
        """Runs one statement and returns its rows as the text of a JSON array of objects, or of arrays."""
        return wait(
            self._on.query_json(
                sql,
                params,
                arrays=arrays,
                big_integers_as_strings=big_integers_as_strings,
                embed=embed,
                timeout=timeout,
            )
        )
