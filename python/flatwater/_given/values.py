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
Form = Callable[[Any], object]
_adapters: dict[type, Form] = {}


def register_adapter(type: type[T], adapter: Callable[[T], object]) -> None:
    """Sets how values of this type, and of derived ones, are bound: as the value that the adapter returns."""
    _adapters[type] = adapter


class Json:
    """A value that is bound as the text of a JSON document, whatever its type."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Json({self.value!r})"


def adapt(value: object) -> object:
    """Returns a value as an int, a float, a str, bytes or None. Called by the native part."""
    return _adapt(value, _FORMS, _FORMS_BY_NAME)


def adapt_as_sqlite3(value: object) -> object:
    """The same for a database with `datetimes="sqlite3"`."""
    return _adapt(value, _FORMS_OF_SQLITE3, _FORMS_BY_NAME)


def adapt_standard(value: object) -> object:
    """The same for a database, or a call, with standard types."""
    return _adapt(value, _STANDARD, _STANDARD_BY_NAME)


def adapt_standard_as_sqlite3(value: object) -> object:
    """The same with both."""
    return _adapt(value, _STANDARD_OF_SQLITE3, _STANDARD_BY_NAME)


def _adapt(value: object, forms: Mapping[type, Form], forms_by_name: Mapping[tuple[str, str], Form]) -> object:
    for base in type(value).__mro__:
        if adapter := _adapters.get(base):
            return adapter(value)
        if form := forms.get(base) or forms_by_name.get((base.__module__, base.__qualname__)):
            return form(value)
    conform = getattr(value, "__conform__", None)
    if conform is not None and (adapted := conform(sqlite3.PrepareProtocol)) is not None:
        return adapted
    if (number := _number(value)) is not None:
        return number
    if (blob := _buffer(value)) is not None:
        return blob
    hint = "`flatwater.register_adapter` says how values of a type are stored"
    if hasattr(value, "__await__"):
        hint = "it was not awaited: pass what `await` returns"
    elif isinstance(value, dict):
        hint = 'types="standard" of `connect` stores it as JSON, and so does `flatwater.Json(value)`'
    elif isinstance(value, (list, tuple, set, frozenset)):
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


def _no_decimal(value: object) -> object:
    raise _refused(
        "SQLite has no decimals", 'store text, an integer number of the smallest unit, or use types="standard"'
    )


def _decimal(value: Any) -> str:
    """The digits, with the zeros of its scale. Of a column that SQLite takes for one of numbers 15 digits come back, or
    an integer of 64 bits: <https://sqlite.org/datatype3.html>."""
    if not value.is_finite():
        raise _refused("NaN and infinity cannot be stored as a decimal", "bind None")
    digits = "".join(map(str, value.as_tuple().digits)).strip("0")
    if len(digits) > _DIGITS or not -_EXPONENT < value.adjusted() < _EXPONENT:
        if value != value.to_integral_value() or not -(2**63) <= value < 2**63:
            hint = "store `str(value)` in a column declared TEXT or DECIMAL TEXT"
            raise _refused(f"a column of numbers keeps {_DIGITS} digits of a decimal, and this one has more", hint)
    text = format(value, "f")
    return text.removeprefix("-") if value == 0 else text


def _json(value: Any) -> str:
    import json

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused(f"a value of type {name_of_type(value)} is not JSON: {error}", _JSON_HINT) from None


def _json_of(value: Json) -> str:
    return _json(value.value)


_JSON_HINT = "JSON has dicts with texts as keys, lists, texts, numbers that are finite, booleans and None"
_DIGITS = 15
_EXPONENT = 300
_FORMS: dict[type, Form] = {
    Json: _json_of,
    bool: _bool,
    int: _same,
    float: _same,
    str: _same,
    bytes: _same,
    datetime.datetime: _datetime,
    datetime.date: _date,
    datetime.time: _time,
}
_FORMS_BY_NAME: dict[tuple[str, str], Form] = {
    ("uuid", "UUID"): str,
    ("decimal", "Decimal"): _no_decimal,
}

# A date has the same form in both. A time of day, which the module refuses, has that of Flatwater.
_FORMS_OF_SQLITE3 = {**_FORMS, datetime.datetime: _datetime_of_sqlite3}

_STANDARD = {**_FORMS, dict: _json, list: _json}
_STANDARD_OF_SQLITE3 = {**_FORMS_OF_SQLITE3, dict: _json, list: _json}
_STANDARD_BY_NAME = {**_FORMS_BY_NAME, ("decimal", "Decimal"): _decimal}
