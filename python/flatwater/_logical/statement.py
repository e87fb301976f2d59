"""What a statement is, by its words: which begin a transaction, which control one, and where a script's statements end.

Owns reading them. Pure. Invariant: comments, strings and quoted names are skipped as SQLite's tokenizer skips them.
Leaves out whether it is valid, which SQLite says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

from .._errors import Error, make
from .errors import operational

# White space, a comment, something in quotes, a word, or one other character. What has no end ends with the text.
_TOKEN = re.compile(
    r"""(?P<gap>[\s\ufeff]+|--[^\n]*|/\*.*?(?:\*/|\Z))"""
    r"""|(?P<quoted>'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?)"""
    r"""|(?P<word>[\w$]+)|(?P<other>.)""",
    re.DOTALL,
)
_NAME = r"""("(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`|\[[^\]]*\]|[\w$]+)"""
# SQLite takes a name behind it, which means nothing.
_TRANSACTION = rf"""(?:\s+TRANSACTION(?:\s+(?!TO\b){_NAME.replace("(", "(?:", 1)})?)?"""
_CONTROL = [
    (name, re.compile(pattern + r"\s*;?\s*\Z", re.IGNORECASE))
    for name, pattern in (
        ("begin", rf"BEGIN(?:\s+(DEFERRED|IMMEDIATE|EXCLUSIVE))?{_TRANSACTION}"),
        ("rollback_to", rf"ROLLBACK{_TRANSACTION}\s+TO(?:\s+SAVEPOINT)?\s*{_NAME}"),
        ("commit", rf"(?:COMMIT|END){_TRANSACTION}()"),
        ("rollback", rf"ROLLBACK{_TRANSACTION}()"),
        ("savepoint", rf"SAVEPOINT\s*{_NAME}"),
        ("release", rf"RELEASE(?:\s+SAVEPOINT)?\s*{_NAME}"),
    )
]
_EARLIER = re.compile(r"\b(last_insert_rowid|total_changes|changes)\s*\(\s*\)", re.IGNORECASE)


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

    __slots__ = ("control", "first", "has_rows", "is_dml", "kind", "name", "sql", "tells_of_earlier")

    def __init__(self, sql: str) -> None:
        self.sql = sql
        words = [token.upper() for token in _words(sql)]
        self.first = next((word for word in words if word != ";"), "")
        self.is_dml = self.first in ("INSERT", "UPDATE", "DELETE", "REPLACE")
        self.has_rows = "RETURNING" in words
        self.control, self.name = "", ""
        self.tells_of_earlier = _EARLIER.search(sql) is not None
        self.kind = self._kind(words)

    def _kind(self, words: list[str]) -> Kind:
        first = self.first
        if not first:
            return Kind.NOTHING
        if first in ("SELECT", "VALUES", "EXPLAIN"):
            return Kind.READ
        if first == "WITH":
            return Kind.READ if _verb(words) in ("SELECT", "VALUES", "") else Kind.WRITE
        if first == "PRAGMA":
            return Kind.PRAGMA
        if first == "VACUUM":
            return Kind.VACUUM
        if first in ("ATTACH", "DETACH") or _makes_temp(words):
            return Kind.OWN
        text = _without_gaps(self.sql) if first in _CONTROLS else ""
        for control, pattern in _CONTROL if text else ():
            if found := pattern.match(text):
                self.control, self.name = control, _unquoted(found[1] or "")
                return Kind.CONTROL
        return Kind.WRONG if text else Kind.WRITE

    def error(self) -> Error:
        """What SQLite says of a statement that is `WRONG`."""
        if len(list(statements(self.sql))) > 1:
            return make("ProgrammingError", "You can only execute one statement at a time.", "misuse")
        known = {*_CONTROLS, "DEFERRED", "IMMEDIATE", "EXCLUSIVE", "TRANSACTION", "TO"}
        rest = [word for word in _words(self.sql) if word.upper() not in known]
        return operational(f'near "{rest[0]}": syntax error' if rest and rest[0] != ";" else "incomplete input")

    def about(self, values: dict[str, int]) -> str:
        """The text with values in the place of the functions that tell of earlier statements."""
        return _EARLIER.sub(lambda found: f"({values[found[1].lower()]} /*{found[0]}*/)", self.sql)


_CONTROLS = ("BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE")
_STAND_IN = re.compile(r"\(-?\d+ /\*((?:last_insert_rowid|total_changes|changes)\s*\(\s*\))\*/\)", re.IGNORECASE)


def column_name(name: str) -> str:
    """The name of a column of such a text, as that of the program's text has it."""
    return _STAND_IN.sub(lambda found: found[1], name)


@lru_cache(maxsize=256)
def statement(sql: str) -> Statement:
    """Reads a text, unless it was read lately."""
    return Statement(sql)


def statements(script: str) -> Iterator[str]:
    """The statements of a script, each with its semicolon. Where a trigger ends, `sqlite3_complete` says the same."""
    begins, state = 0, "start"
    for token in _TOKEN.finditer(script):
        if token.lastgroup == "gap":
            continue
        word = token[0].upper() if token.lastgroup != "quoted" else ""
        if word == ";" and state in ("trigger", "semicolon"):
            state = "semicolon"
        elif word == ";":
            if state != "start":
                yield script[begins : token.end()]
            begins, state = token.end(), "start"
        elif state in ("trigger", "semicolon", "end"):
            state = "end" if (state, word) == ("semicolon", "END") else "trigger"
        elif state in ("start", "explain") and word in ("CREATE", "EXPLAIN"):
            state = word.lower()
        elif state == "create" and word in ("TEMP", "TEMPORARY", "TRIGGER"):
            state = "trigger" if word == "TRIGGER" else "create"
        elif state != "explain":
            state = "other"
    if state != "start":
        yield script[begins:]


def _words(sql: str) -> Iterator[str]:
    """Words and other characters, without gaps and what is in quotes."""
    return (token[0] for token in _TOKEN.finditer(sql) if token.lastgroup in ("word", "other"))


def _verb(words: list[str]) -> str:
    """What a WITH is followed by: the first verb outside of all parentheses."""
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if depth == 0 and word in ("SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE"):
            return word
    return ""


def _makes_temp(words: list[str]) -> bool:
    named = [word for word in words[:8] if word != ";"]
    return named[:1] == ["CREATE"] and (named[1:2] in (["TEMP"], ["TEMPORARY"]) or _names_temp(named))


def _names_temp(words: list[str]) -> bool:
    return any(two == ("TEMP", ".") for two in zip(words, words[1:], strict=False))


def _without_gaps(sql: str) -> str:
    """The text with one space between its words."""
    tokens = (token[0] for token in _TOKEN.finditer(sql) if token.lastgroup != "gap")
    return " ".join(token for token in tokens if token != ";")


def _unquoted(name: str) -> str:
    quote = name[:1]
    if quote == "[":
        return name[1:-1]
    return name[1:-1].replace(quote * 2, quote) if quote in ("'", '"', "`") and quote else name
