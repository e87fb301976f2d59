"""Values that SQLite has no type for, in the form in which they are stored.

Owns the forms, which are the same in every language, and the adapters of programs. Invariant: it imports no module for
the sake of a type, because who has a value has imported its module. Leaves out int, float, str, bytes, bool and None,
which the native part binds as they are.
"""

from __future__ import annotations

import datetime
import operator
import re
import sqlite3
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .._errors import Error, misuse, name_of_type

T = TypeVar("T")
_adapters: dict[type, Callable[[Any], object]] = {}


def register_adapter(type: type[T], adapter: Callable[[T], object]) -> None:
    """Sets how values of this type, and of derived ones, are bound: as the value that the adapter returns."""
    _adapters[type] = adapter


def adapt(value: object) -> object:
    """Returns a value as an int, a float, a str, bytes or None. Called by the native part."""
    return _adapt(value, _FORMS)


def adapt_as_sqlite3(value: object) -> object:
    """The same for a database with `datetimes="sqlite3"`."""
    return _adapt(value, _FORMS_OF_SQLITE3)


def _adapt(value: object, forms: Mapping[type, Callable[[Any], object]]) -> object:
    for base in type(value).__mro__:
        if adapter := _adapters.get(base):
            return adapter(value)
        if form := forms.get(base) or _FORMS_BY_NAME.get((base.__module__, base.__qualname__)):
            return form(value)
    conform = getattr(value, "__conform__", None)
    if conform is not None and (adapted := conform(sqlite3.PrepareProtocol)) is not None:
        return adapted
    if (number := _number(value)) is not None:
        return number
    if (blob := _buffer(value)) is not None:
        return blob
    hint = "`flatwater.register_adapter` says how values of a type are stored"
    if isinstance(value, (list, tuple, set, frozenset)):
        hint = 'for `IN`, put the SQL together: `Sql("... IN ").bind_list(values)`'
    raise _refused(f"a value of type {name_of_type(value)} cannot be bound to a statement", hint)


def _refused(message: str, hint: str) -> Error:
    return misuse(message, hint, "invalid_value")


def _buffer(value: Any) -> bytes | None:
    """Returns what a value has in memory, whatever its items are, unless it has no buffer or one of addresses."""
    try:
        with memoryview(value) as view:
            return None if "O" in view.format or "P" in view.format else view.tobytes()
    except TypeError:
        return None


def _number(value: Any) -> object:
    """Returns a number of another library as Python's, or None if it is none. The numbers of numpy have a buffer too,
    as its arrays have, which would be stored as a blob."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.bool_):
        return int(value)
    kind = type(value)
    if hasattr(kind, "__index__") and not hasattr(kind, "__len__"):
        return operator.index(value)
    numbers = sys.modules.get("numbers")
    if numbers is not None and isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        number = float(value)
        if number != value and value == value:
            raise _refused(f"a value of type {name_of_type(value)} is not a float", "store text, or round it")
        return number
    if numpy is not None and isinstance(value, numpy.generic):
        raise _refused(
            f"a value of type {name_of_type(value)} cannot be bound to a statement",
            "`value.item()` is what Python has for it",
        )
    return None


def _same(value: object) -> object:
    return value


def _bool(value: int) -> int:
    return int(value)


_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d"
_OFFSET = r"[+-]\d\d:\d\d(:\d\d(\.\d{6})?)?"
_MICROSECONDS = r"\.\d{6}"
_NO_FRACTION = ".000000"


def _checked(value: object, own: type, text: str, form: str) -> str:
    """Returns the text of a value. One of a derived class, such as `pandas.NaT`, may have a text of another form."""
    if type(value) is not own and not re.fullmatch(form, text):
        hint = "bind None or a plain value, or say how it is stored: `flatwater.register_adapter`"
        raise _refused(f"a value of type {name_of_type(value)} does not have the form of a {own.__name__}", hint)
    return text


def _datetime(value: datetime.datetime) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    text = value.isoformat(" ", "microseconds").removesuffix(_NO_FRACTION)
    return _checked(value, datetime.datetime, text, f"{_DATE} {_TIME}({_MICROSECONDS})?")


def _datetime_of_sqlite3(value: datetime.datetime) -> str:
    """As the adapter of the `sqlite3` module: no fraction if it is 0, and the offset of its time zone."""
    form = f"{_DATE} {_TIME}({_MICROSECONDS})?({_OFFSET})?"
    return _checked(value, datetime.datetime, value.isoformat(" "), form)


def _date(value: datetime.date) -> str:
    return _checked(value, datetime.date, value.isoformat(), _DATE)


def _time(value: datetime.time) -> str:
    if value.tzinfo is not None:
        hint = "bind a datetime, or the time without its zone"
        raise _refused("a time of day with a time zone cannot be stored", hint)
    text = value.isoformat("microseconds").removesuffix(_NO_FRACTION)
    return _checked(value, datetime.time, text, f"{_TIME}({_MICROSECONDS})?")


def _decimal(value: object) -> object:
    raise _refused("SQLite has no decimals", "store text, or an integer number of the smallest unit")


_FORMS: Mapping[type, Callable[[Any], object]] = {
    bool: _bool,
    int: _same,
    float: _same,
    str: _same,
    bytes: _same,
    datetime.datetime: _datetime,
    datetime.date: _date,
    datetime.time: _time,
}
_FORMS_BY_NAME: Mapping[tuple[str, str], Callable[[Any], object]] = {
    ("uuid", "UUID"): str,
    ("decimal", "Decimal"): _decimal,
}

# A date has the same form in both. A time of day, which the module refuses, has that of Flatwater.
_FORMS_OF_SQLITE3 = {**_FORMS, datetime.datetime: _datetime_of_sqlite3}
