"""The forms of values that a program chooses when it opens a database.

Owns taking these options, which belong to Python alone, and giving them to the native part. Leaves out the forms
themselves, which are in `values` for parameters and in the native part for results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .._native import check_types

if TYPE_CHECKING:
    from .._native import NativeDatabase
    from .types import Types


class Converters(NamedTuple):
    """What makes values of bytes, by the names of types in upper case, and where the type of a column is found."""

    by_type: Mapping[str, Callable[[bytes], Any]]
    from_declared: bool = True
    from_name: bool = True


class Forms:
    """What was chosen."""

    __slots__ = ("_converters", "_into", "_types", "datetimes_of_sqlite3")

    def __init__(self, options: Any) -> None:
        """Takes the options from those of `connect`."""
        datetimes = options.pop("datetimes", None)
        if datetimes not in (None, "utc", "sqlite3"):
            raise TypeError('the option "datetimes" must be "utc" or "sqlite3"')
        self.datetimes_of_sqlite3 = bool(datetimes == "sqlite3")
        self._converters = _converters(options.pop("converters", None))
        self._types: Types | None = options.pop("types", None)
        if self._types is not None:
            check_types(self._types)
        self._into: Callable[..., object] | None = options.pop("into", None)
        if self._into is not None and not callable(self._into):
            raise TypeError('the option "into" must be a class, or a function that is called with the columns by name')

    def give(self, native: NativeDatabase) -> None:
        """Gives them to a database that was just opened."""
        if self._converters is not None:
            native.set_forms(self.datetimes_of_sqlite3, *self._converters, self._types, self._into)
        elif self.datetimes_of_sqlite3 or self._types is not None or self._into is not None:
            native.set_forms(self.datetimes_of_sqlite3, None, False, False, self._types, self._into)


def _converters(given: object) -> Converters | None:
    if given is None or isinstance(given, Converters):
        return given
    if not isinstance(given, Mapping):
        raise TypeError('the option "converters" must be a dict of names of types and functions')
    for name, converter in given.items():
        if not isinstance(name, str) or not callable(converter):
            raise TypeError('the option "converters" must have the name of a type and a function in each item')
    return Converters({name.upper(): converter for name, converter in given.items()})
