"""Values that SQLite has no type for, in the form in which they are stored.

Owns the forms, which are the same in every language, and the adapters of programs. Leaves out int, float, str, bytes,
bool and None, which the native part binds as they are.
"""

from __future__ import annotations

import datetime
import decimal
import sqlite3
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from ._errors import misuse

T = TypeVar("T")
_adapters: dict[type, Callable[[Any], object]] = {}


def register_adapter(type: type[T], adapter: Callable[[T], object]) -> None:
    """Binds values of this type, and of derived ones, as what the adapter returns for them."""
    _adapters[type] = adapter


def adapt(value: object) -> object:
    """Returns a value as an int, a float, a str, bytes or None. Called by the native part."""
    for base in type(value).__mro__:
        if adapter := _adapters.get(base):
            return adapter(value)
        if form := _FORMS.get(base):
            return form(value)
    conform = getattr(value, "__conform__", None)
    if conform is not None and (adapted := conform(sqlite3.PrepareProtocol)) is not None:
        return adapted
    hint = "`flatwater.register_adapter` says how values of a type are stored"
    if isinstance(value, (list, tuple, set, frozenset)):
        hint = 'for `IN`, put the SQL together: `Sql("... IN ").bind_list(values)`'
    raise misuse(f"a value of type {type(value).__name__} cannot be bound to a statement", hint)


def _same(value: object) -> object:
    return value


def _bool(value: int) -> int:
    return int(value)


def _datetime(value: datetime.datetime) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return value.isoformat(" ", "microseconds")


def _time(value: datetime.time) -> str:
    if value.tzinfo is not None:
        raise misuse("a time of day with a time zone cannot be stored", "bind a datetime, or the time without its zone")
    return value.isoformat("microseconds")


def _decimal(value: decimal.Decimal) -> object:
    raise misuse("SQLite has no decimals", "store text, or an integer number of the smallest unit")


_FORMS: dict[type, Callable[[Any], object]] = {
    bool: _bool,
    int: _same,
    float: _same,
    str: _same,
    bytes: _same,
    bytearray: bytes,
    memoryview: bytes,
    datetime.datetime: _datetime,
    datetime.date: datetime.date.isoformat,
    datetime.time: _time,
    uuid.UUID: str,
    decimal.Decimal: _decimal,
}
