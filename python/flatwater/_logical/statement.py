"""What a statement is, by its words: which begin a transaction, and which control one.

Owns reading them. Pure. Invariant: the words are the tokens of the engine, so nothing in a comment, a string or a
quoted name counts. Leaves out whether it is valid, which SQLite says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache

from .._errors import Error, make
from .._native import Statements, Tokens
from .errors import operational

# So many tokens say what a statement is, but for one that controls a transaction.
HEAD = 16
# What it is, itself, and the white space and comments before it.
Token = tuple[str, str, str]

EARLIER = ("last_insert_rowid", "changes", "total_changes")
VERBS = ("SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE")
CONTROLS = ("BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE")


class Kind(Enum):
    """What is done with a statement."""

    NOTHING = "nothing"
    READ = "read"
    WRITE = "write"
    PRAGMA = "pragma"
    CONTROL = "control"
    # As the statements before by its first word, but none of them.
    WRONG = "wrong"
    VACUUM = "vacuum"
    OWN = "own"


class Statement:
    """One text, and what it is."""

    __slots__ = (
        "busy_timeout",
        "calls",
        "changes_rows",
        "control",
        "first",
        "is_dml",
        "kind",
        "name",
        "sets_keys",
        "sql",
    )

    def __init__(self, sql: str) -> None:
        self.sql = sql
        # The functions that tell of earlier statements: where a call begins and ends, and the function.
        self.calls: list[tuple[int, int, str]] = []
        # The tokens that say what it is.
        head: list[Token] = []
        verb, depth = "", 0
        before = (0, "", ""), (0, "", "")
        for begin, end, token in _places(sql):
            kind, text, _ = token
            if text in ("", ";"):
                continue
            if len(head) < HEAD or head[0][1].upper() in CONTROLS:
                head.append(token)
            if kind in ("word", "other"):
                word = text.upper()
                depth += (word == "(") - (word == ")")
                if not verb and depth == 0 and word in VERBS:
                    # What a WITH is followed by: the first one outside of all parentheses.
                    verb = word
            (at, named, name), (_, _, opens) = before
            if text == ")" and opens == "(" and named in ("word", "name") and _same(name).lower() in EARLIER:
                self.calls.append((at, end, _same(name).lower()))
            before = before[1], (begin, kind, text)
        self.first = head[0][1].upper() if head and head[0][0] in ("word", "other") else "?" if head else ""
        self.is_dml = self.first in ("INSERT", "UPDATE", "DELETE", "REPLACE")
        self.control, self.name = "", ""
        # Of a PRAGMA busy_timeout: what it sets, or -1 if it asks. None for all others.
        self.busy_timeout: int | None = None
        # True for a PRAGMA foreign_keys with a value.
        self.sets_keys = False
        self.kind = self._kind(head, verb)
        self.changes_rows = self.is_dml or (self.first == "WITH" and self.kind is Kind.WRITE)
        if not self.changes_rows and (self.kind is not Kind.READ or self.first == "EXPLAIN"):
            # They are called later.
            self.calls = []

    def _kind(self, head: list[Token], verb: str) -> Kind:
        first = self.first
        if not first:
            return Kind.NOTHING
        if first in ("SELECT", "VALUES", "EXPLAIN"):
            return Kind.READ
        if first == "WITH":
            return Kind.READ if verb in ("SELECT", "VALUES", "") else Kind.WRITE
        if first == "PRAGMA":
            name, value = _pragma(head)
            self.busy_timeout = _milliseconds(value) if name == "BUSY_TIMEOUT" else None
            self.sets_keys = name == "FOREIGN_KEYS" and bool(value)
            return Kind.PRAGMA
        if first == "VACUUM":
            return Kind.VACUUM
        if first in ("ATTACH", "DETACH") or (first == "CREATE" and _makes_temp(head)):
            return Kind.OWN
        if first not in CONTROLS:
            return Kind.WRITE
        control = _control(head)
        if control is None:
            return Kind.WRONG
        self.control, self.name = control
        return Kind.CONTROL

    def error(self) -> Error:
        """What SQLite says of a statement that is `WRONG`."""
        if len(list(Statements(self.sql))) > 1:
            return make("ProgrammingError", "You can only execute one statement at a time.", "misuse")
        known = {*CONTROLS, "DEFERRED", "IMMEDIATE", "EXCLUSIVE", "TRANSACTION", "TO"}
        words = (token for kind, token, _ in Tokens(self.sql) if kind in ("word", "other"))
        rest = [word for word in words if word.upper() not in known]
        return operational(f'near "{rest[0]}": syntax error' if rest and rest[0] != ";" else "incomplete input")

    def telling(self, numbers: Mapping[str, int]) -> tuple[str, dict[str, str]]:
        """The text with numbers in the place of these functions. And for each place how the program has written it, of
        which SQLite makes the name of a column."""
        parts, places, at = [], {}, 0
        for begin, end, function in self.calls:
            if function in numbers:
                # An expression, because a number alone means a column in an ORDER BY.
                place = f"({numbers[function]}|0 /*{begin}*/)"
                while place in self.sql:
                    place = f"({place})"
                places[place] = self.sql[begin:end]
                parts += [self.sql[at:begin], place]
                at = end
        return "".join([*parts, self.sql[at:]]), places


@lru_cache(maxsize=256)
def statement(sql: str) -> Statement:
    """Reads a text, unless it was read lately."""
    return Statement(sql)


def _places(sql: str) -> Iterator[tuple[int, int, Token]]:
    """The tokens, with where each begins and ends."""
    end = 0
    for token in Tokens(sql):
        begin = end + len(token[2])
        end = begin + len(token[1])
        yield begin, end, token


def _makes_temp(read: list[Token]) -> bool:
    named = [_same(token) for _, token, _ in read[:8]]
    is_in_temp = any(two == ("TEMP", ".") for two in zip(named, named[1:], strict=False))
    return named[1:2] in (["TEMP"], ["TEMPORARY"]) or is_in_temp


def _pragma(read: list[Token]) -> tuple[str, list[str]]:
    """The name of a PRAGMA, and the words of its value. None: it asks."""
    rest = [_same(token) for _, token, _ in read[1:]]
    if rest[1:2] == ["."]:
        del rest[:2]
    return rest[0] if rest else "", [word for word in rest[1:] if word not in ("=", "(", ")", "+")]


def _milliseconds(value: list[str]) -> int:
    """What a PRAGMA busy_timeout sets, and -1 if it asks."""
    if not value:
        return -1
    return int(value[0]) if value[0].isascii() and value[0].isdecimal() else 0


def _control(read: list[Token]) -> tuple[str, str] | None:
    """What transaction control does, and with which name. None if it is none that SQLite knows."""
    rest = deque(read)
    first = rest.popleft()[1].upper()

    def follows(*words: str) -> str:
        is_next = bool(rest) and rest[0][0] == "word" and rest[0][1].upper() in words
        return rest.popleft()[1].upper() if is_next else ""

    def name() -> str | None:
        if not rest or rest[0][0] == "other":
            return None
        kind, token, _ = rest.popleft()
        # A quote inside of quotes is written twice, which are two tokens.
        while kind != "word" and rest and rest[0][0] == kind and not rest[0][2] and rest[0][1][0] == token[0] != "[":
            token += rest.popleft()[1]
        return _unquoted(token)

    def transaction() -> None:
        # SQLite takes a name behind it, which means nothing.
        if follows("TRANSACTION") and rest and rest[0][1].upper() != "TO":
            name()

    control: str
    named: str | None = ""
    if first == "BEGIN":
        control, named = "begin", follows("DEFERRED", "IMMEDIATE", "EXCLUSIVE")
        transaction()
    elif first in ("COMMIT", "END"):
        control = "commit"
        transaction()
    elif first == "ROLLBACK":
        transaction()
        control = "rollback"
        if follows("TO"):
            follows("SAVEPOINT")
            control, named = "rollback_to", name()
    elif first == "SAVEPOINT":
        control, named = "savepoint", name()
    else:
        follows("SAVEPOINT")
        control, named = "release", name()
    return None if rest or named is None else (control, named)


def _same(token: str) -> str:
    """A word or a name as SQLite compares keywords."""
    return _unquoted(token).upper()


def _unquoted(name: str) -> str:
    quote = name[:1]
    if quote == "[":
        return name[1:-1]
    return name[1:-1].replace(quote * 2, quote) if quote in ("'", '"', "`") and quote else name
