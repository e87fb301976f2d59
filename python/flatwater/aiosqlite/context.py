"""What a call of a connection returns: a coroutine that is a block too.

Owns it: `async with db.execute(sql) as cursor` closes the cursor at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from functools import update_wrapper
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from .cursor import Cursor

T = TypeVar("T")
S = TypeVar("S")
P = ParamSpec("P")


class Result(Coroutine[Any, Any, T]):
    """A call that is about to be made."""

    __slots__ = ("_coro", "_obj")

    def __init__(self, coro: Coroutine[Any, Any, T]) -> None:
        self._coro = coro
        self._obj: T

    def send(self, value: Any) -> Any:
        return self._coro.send(value)

    def throw(self, *exception: Any) -> Any:
        return self._coro.throw(*exception)

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coro.__await__()

    async def __aenter__(self) -> T:
        self._obj = await self._coro
        return self._obj

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(self._obj, Cursor):
            await self._obj.close()


def contextmanager(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Result[T]]:
    """Makes a method's coroutine such a call."""

    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Result[T]:
        return Result(method(self, *args, **kwargs))

    update_wrapper(call, method)
    return call
