"""SQL that is built at run time: text of the program, and values that are bound.

Owns the builder, and taking t-strings apart (Python 3.14). Invariant: a value never becomes part of the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._errors import misuse, name_of_type


class Sql:
    """SQL with bound values. Pass it in place of a text::

    sql = Sql("SELECT id, title FROM tasks WHERE id IN ").bind_list(ids)
    if state is not None:
        sql.push(" AND state = ").bind(state)
    tasks = await db.query(sql)
    """

    __slots__ = ("_params", "_text")

    def __init__(self, text: str = "") -> None:
        self._text = [text]
        self._params: list[object] = []

    def push(self, text: str) -> Sql:
        """Appends a text of the program. It must not contain user input: bind that."""
        self._text.append(text)
        return self

    def push_identifier(self, name: str) -> Sql:
        """Appends the name of a table, a column or an index, quoted."""
        if "\0" in name:
            raise misuse("an identifier has a NUL byte", code="nul_byte")
        # Two backticks are one inside of a name.
        gap = " " if next(filter(None, reversed(self._text)), "").endswith("`") else ""
        self._text.append(f"{gap}`{name.replace('`', '``')}`")
        return self

    def push_sql(self, other: Sql) -> Sql:
        """Appends other SQL with its values."""
        self._text.extend(other._text)
        self._params.extend(other._params)
        return self

    def bind(self, value: object) -> Sql:
        """Appends a `?` and binds the value to it."""
        self._text.append("?")
        self._params.append(value)
        return self

    def bind_list(self, values: Iterable[object]) -> Sql:
        """Appends a list for `IN` or `NOT IN`, `(?, ?, ?, ?)`, and binds the values to it. The list may be empty.

        One of the values is repeated until the list has one of few lengths, so that lists of many lengths have few
        texts. `IN` takes a list as a set; where the number of values counts, there is `bind_row`.
        """
        values = list(values)
        more = _padded(len(self._params), len(values)) - len(values)
        if more:
            small = next((value for value in values if value is None or isinstance(value, int | float)), values[-1])
            values.extend([small] * more)
        return self.bind_row(values)

    def bind_row(self, values: Iterable[object]) -> Sql:
        """Appends a row in parentheses, `(?, ?, ?)`, and binds the values to it, each once.

        For VALUES, or as arguments.
        """
        values = list(values)
        self._text.append(f"({', '.join('?' * len(values))})")
        self._params.extend(values)
        return self

    @property
    def text(self) -> str:
        """The SQL text."""
        return "".join(self._text)

    @property
    def params(self) -> tuple[object, ...]:
        """The values, in the order of the text's parameters."""
        return tuple(self._params)

    def __repr__(self) -> str:
        return f"Sql({self.text!r}, {len(self._params)} values)"


def _padded(before: int, count: int) -> int:
    """Returns how long a list of `count` values becomes, with `before` values before it."""
    length = (count + 1023) // 1024 * 1024 if count > 1024 else 1 << (count - 1).bit_length() if count else 0
    return count if before + length > 32_766 else length


def take_apart(sql: Any, params: object) -> tuple[str, object]:
    """Returns the text and the parameters of what was passed in place of a text. Called by the native part."""
    if _is_template(sql):
        sql = _of_template(sql)
    if not isinstance(sql, Sql):
        raise TypeError(f"SQL must be a str, a t-string or an Sql, not {name_of_type(sql)}")
    if params is not None:
        raise misuse("there are two sets of values: the Sql has its own", "bind all of them in the Sql")
    return sql.text, sql.params


def _is_template(value: Any) -> bool:
    return hasattr(value, "strings") and hasattr(value, "interpolations")


def _of_template(template: Any) -> Sql:
    """Returns the SQL of a t-string. A value that is SQL itself, an `Sql` or a t-string, becomes part of it."""
    sql = Sql(template.strings[0])
    for part, text in zip(template.interpolations, template.strings[1:], strict=True):
        if part.conversion or part.format_spec:
            raise misuse("a value in a t-string is bound as it is", "format it before, or cast it in SQL")
        if _is_template(part.value):
            sql.push_sql(_of_template(part.value))
        elif isinstance(part.value, Sql):
            sql.push_sql(part.value)
        else:
            sql.bind(part.value)
        sql.push(text)
    return sql
