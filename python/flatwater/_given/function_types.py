"""Types of SQL functions that are written in Python.

Owns what a function returns, and what an aggregate has. Only type checkers read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Stored = Any
"""The result of a function, which is what may be a parameter: None, a number, a str, bytes, what has an adapter."""


class Aggregate(Protocol):
    """An instance is one group: `step` is called with each row, then `finalize` for the result."""

    @property
    def step(self) -> Callable[..., object]: ...

    def finalize(self) -> Stored: ...


class WindowFunction(Aggregate, Protocol):
    """Also with OVER: `inverse` is called with a row that leaves the window, `value` for the result of now."""

    @property
    def inverse(self) -> Callable[..., object]: ...

    def value(self) -> Stored: ...
