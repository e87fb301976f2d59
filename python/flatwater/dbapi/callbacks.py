"""What a connection of `flatwater.dbapi` gives to SQLite to call: functions, collations and hooks.

Owns these calls. Each makes the connection its own, so what is given is on no other. Leaves out calling it, which the
native part does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._logical import Logical, waited
from .._logical.callbacks import give, has_extensions, load_extension

if TYPE_CHECKING:
    from .._native import NativeConnection


class Callbacks:
    """The part of a connection that takes code of the program."""

    _logical: Logical

    def create_function(
        self, name: str, narg: int, func: Callable[..., Any] | None, *, deterministic: bool = False
    ) -> None:
        """Creates a function. With None, it is removed."""
        self._create("function", name, narg, func, deterministic)

    def create_aggregate(self, name: str, n_arg: int, aggregate_class: Callable[[], Any] | None) -> None:
        """Creates an aggregate function, of a class with `step` and `finalize`. With None, it is removed."""
        self._create("aggregate", name, n_arg, aggregate_class, False)

    def create_window_function(self, name: str, num_params: int, aggregate_class: Callable[[], Any] | None, /) -> None:
        """Creates a window function, of a class with `step`, `inverse`, `value` and `finalize`. With None, it is
        removed."""
        self._create("window function", name, num_params, aggregate_class, False)

    def create_collation(self, name: str, callback: Callable[[str, str], int] | None, /) -> None:
        """Creates a collation. With None, it is removed."""

        def create(native: NativeConnection) -> None:
            if callback is None:
                native.remove_collation(name)
            else:
                native.create(_native.function("collation", name, -1, callback, True, True))

        waited(give(self._logical, "a collation", create))

    def set_authorizer(self, authorizer_callback: Callable[..., int] | None) -> None:
        """Asks the callback for each action of a statement that is compiled. It returns a number such as SQLITE_OK."""
        code = authorizer_callback
        waited(give(self._logical, "an authorizer", lambda native: native.set_authorizer(code)))

    def set_progress_handler(self, progress_handler: Callable[[], object] | None, n: int) -> None:
        """Calls the handler after each `n` steps of SQLite's machine. A true result interrupts the statement."""
        code = progress_handler
        waited(give(self._logical, "a progress handler", lambda native: native.set_progress_handler(code, n)))

    def set_trace_callback(self, trace_callback: Callable[[str], object] | None) -> None:
        """Calls the callback with the text of each statement that runs."""
        code = trace_callback
        waited(give(self._logical, "a trace callback", lambda native: native.set_trace_callback(code)))

    def interrupt(self) -> None:
        """Interrupts the statements that run in other threads: they raise `OperationalError`."""
        self._logical.mode.interrupt()

    def load_extension(self, name: str, /) -> None:
        """Does nothing for an extension of the option `load_extension` of `connect`, which is loaded. Raises
        `NotSupportedError` for another."""
        load_extension(self._logical, name)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # As in a Python that was built without extensions, unless the connection has some.
            if name == "enable_load_extension" and has_extensions(self.__dict__.get("_logical")):
                return lambda enable, /: None
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def _create(self, kind: str, name: str, narg: int, code: Callable[..., Any] | None, deterministic: bool) -> None:
        def create(native: NativeConnection) -> None:
            if code is None:
                native.remove_function(name, narg)
            else:
                native.create(_native.function(kind, name, narg, code, deterministic, True))

        waited(give(self._logical, "a function", create))
