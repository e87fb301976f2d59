"""Work that is the same whether it is awaited or waited for: generators that yield what has to be waited for.

Owns how such work is driven. A step has `__await__` for a task and `_wait` for a thread, as the calls of the native
part have. Invariant: an error of Flatwater leaves a driver with the text of `sqlite3`. Leaves out the work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any, Protocol, TypeVar

from .._errors import Error
from .errors import as_of_sqlite3

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Step(Awaitable[T_co], Protocol[T_co]):
    """Something to wait for."""

    def _wait(self) -> T_co: ...


# What is yielded is a `Step`; what is sent is its result.
Steps = Generator[Any, Any, T]


async def awaited(steps: Steps[T]) -> T:
    """Does the work, and awaits its steps."""
    given: Any = None
    resume: Any = steps.send
    try:
        while True:
            step = resume(given)
            try:
                given = await step
                resume = steps.send
            except BaseException as error:
                given, resume = error, steps.throw
    except StopIteration as done:
        result: T = done.value
        return result
    except Error as error:
        raise as_of_sqlite3(error)


def waited(steps: Steps[T]) -> T:
    """Does the work, and blocks this thread for its steps."""
    given: Any = None
    resume: Any = steps.send
    try:
        while True:
            step = resume(given)
            try:
                given = step._wait()
                resume = steps.send
            except BaseException as error:
                given, resume = error, steps.throw
    except StopIteration as done:
        result: T = done.value
        return result
    except Error as error:
        raise as_of_sqlite3(error)


class Whole(Step[T]):
    """A call that goes on to its end, also if its task is cancelled meanwhile: the task learns of it then."""

    __slots__ = ("_call",)

    def __init__(self, call: Any) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, Any, T]:
        cancelled: BaseException | None = None
        while True:
            try:
                future = self._call.send(None)
            except StopIteration as done:
                if cancelled is not None:
                    raise cancelled from None
                result: T = done.value
                return result
            try:
                yield future
            except GeneratorExit:
                self._call.close()
                raise
            except BaseException as error:
                # The future is over, so the call goes on with another one.
                cancelled = error

    def _wait(self) -> T:
        result: T = self._call._wait()
        return result


class Pause(Step[None]):
    """Other tasks get their turn."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, Any, None]:
        yield

    def _wait(self) -> None:
        pass
