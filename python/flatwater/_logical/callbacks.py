"""What a program gives to SQLite to call: functions, and hooks of a connection.

Owns giving it. Invariant: it is the connection's own, so it is given to no other. Leaves out calling it, which the
native part does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _native
from .connection import Logical
from .steps import Steps

if TYPE_CHECKING:
    from .._native import NativeConnection


def give(logical: Logical, what: str, code: Callable[[NativeConnection], None]) -> Steps[None]:
    """Gives something to the connection's own one: `code` gets that of the native part."""

    def work() -> Steps[None]:
        own = yield from logical.own(what)
        code(own.native)

    yield from logical.alone(work)


def create_function(
    logical: Logical, name: str, narg: int, code: Callable[..., Any] | None, deterministic: bool
) -> Steps[None]:
    """Creates a function, or removes it if there is no code."""

    def create(native: NativeConnection) -> None:
        if code is None:
            native.remove_function(name, narg)
        else:
            native.create(_native.function("function", name, narg, code, deterministic, True))

    return give(logical, "a function", create)
