"""SQL functions and collations that are written in Python.

Owns the methods that create and remove them: those of a database, and of what the option `functions` is called with.
They do not block, and are the same whether calls are awaited or wait. Leaves out calling them, which the native part
does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._errors import misuse
from .._told.names import of_functions

if TYPE_CHECKING:
    from .function_types import Aggregate, Stored, WindowFunction


class Functions:
    """Creates SQL functions and collations, and removes them.

    They run on the threads of the database, and must not call it. A deterministic function that has been short may also
    run on the thread that awaits the call or waits for it. An exception in one fails the statement, and is the
    `__cause__` of its error."""

    __slots__ = ()

    def create_function(
        self, name: str, narg: int, func: Callable[..., Stored] | None, *, deterministic: bool = False
    ) -> None:
        """Creates an SQL function of `narg` arguments, -1 for any number, in the place of one with the same name and
        `narg`. `func` is called with None, int, float, str or bytes, and returns what may be a parameter. With None for
        `func`, it is removed.

        `deterministic` says that the result depends on the arguments alone: indexes and generated columns need that.
        Such a function must not wait for the event loop: in reads that were short so far, it may run on the loop's
        thread."""
        self._create("function", name, narg, func, deterministic)

    def create_aggregate(self, name: str, narg: int, aggregate_class: Callable[[], Aggregate] | None) -> None:
        """Creates an aggregate function. For each group of rows there is an instance of the class: its `step` is called
        with the arguments of each row, and then `finalize` for the result. Without rows the result is NULL. With None
        for the class, the function is removed."""
        self._create("aggregate", name, narg, aggregate_class)

    def create_window_function(
        self, name: str, narg: int, aggregate_class: Callable[[], WindowFunction] | None
    ) -> None:
        """Creates an aggregate function that can be used with OVER as well: an instance also has `value`, the result of
        now, and `inverse`, which is called with the arguments of a row that leaves the window. With None for the class,
        the function is removed."""
        self._create("window function", name, narg, aggregate_class)

    def create_collation(self, name: str, compare: Callable[[str, str], int] | None) -> None:
        """Creates a collation: `compare` is called with two texts, and returns an int below 0, 0, or one above. It must
        always order the same way. With None for `compare`, it is removed."""
        if compare is None:
            self._remove_collation(name)
        else:
            self._give(_native.function("collation", name, -1, compare, True, False))

    def _create(
        self, kind: str, name: str, narg: int, code: Callable[..., Any] | None, deterministic: bool = False
    ) -> None:
        if code is None:
            self._remove_function(name, narg)
        else:
            self._give(_native.function(kind, name, narg, code, deterministic, self._keeps_datetimes()))

    def _give(self, function: _native.NativeFunction) -> None:
        raise NotImplementedError

    def _remove_function(self, name: str, narg: int) -> None:
        raise NotImplementedError

    def _remove_collation(self, name: str) -> None:
        raise NotImplementedError

    def _keeps_datetimes(self) -> bool:
        raise NotImplementedError


NOT_YET = "there is nothing to remove in `functions`: what is created last has the name"


class Collected(Functions):
    """The functions of a database that is about to be opened."""

    __slots__ = ("_as_sqlite3", "all")

    def __init__(self, as_sqlite3: bool) -> None:
        self._as_sqlite3 = as_sqlite3
        self.all: list[_native.NativeFunction] = []

    def _give(self, function: _native.NativeFunction) -> None:
        self.all.append(function)

    def _remove_function(self, name: str, narg: int) -> None:
        raise misuse(NOT_YET, code="invalid_function")

    def _remove_collation(self, name: str) -> None:
        raise misuse(NOT_YET, code="invalid_function")

    def _keeps_datetimes(self) -> bool:
        return self._as_sqlite3

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            of_functions(self, name)


def collect(options: Any, as_sqlite3: bool) -> list[_native.NativeFunction]:
    """Takes the option `functions`, and calls it for the functions that the database has when it is opened."""
    create = options.pop("functions", None)
    collected = Collected(as_sqlite3)
    if create is not None:
        if not callable(create):
            raise TypeError('the option "functions" must be something that can be called')
        create(collected)
    return collected.all
