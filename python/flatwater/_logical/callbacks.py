"""What a program gives to SQLite to call: functions, hooks of a connection, and extensions, which are there already.

Owns giving it. Invariant: it is the connection's own, so it is given to no other. Leaves out calling it, which the
native part does, and loading extensions, which is an option of the engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._errors import NotSupportedError
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


def has_extensions(logical: Logical | None) -> bool:
    """Returns true if the connection was opened with extensions, so that a program may load them as in `sqlite3`."""
    return logical is not None and "load_extension" in logical.settings.options


def load_extension(logical: Logical, path: str) -> None:
    """Does nothing for an extension of the connection's option, which is loaded. Raises for another."""
    given = logical.settings.options.get("load_extension", ())
    every = given if isinstance(given, list) else [given] if given else []
    paths = [one[0] if isinstance(one, tuple) else one for one in every]
    if os.fsdecode(path) not in [os.fsdecode(one) for one in paths]:
        raise NotSupportedError("an extension is loaded by the option `load_extension` of `connect`")
