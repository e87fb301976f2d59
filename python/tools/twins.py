"""Writes the calls that stand in several classes of the package from one source: `Executor` in `_native.pyi`.

    python tools/twins.py

Owns: the files of `TWINS`, which a test compares with what this makes. Runs in the environment of the tests, which has
ruff. Invariant: a call, its overloads and its documentation are written once. Leaves out: the calls that `Executor` in
`flatwater.blocking` has of its own.
"""

from __future__ import annotations

import ast
import subprocess
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "flatwater"

# The place of what is imported from `collections.abc`.
ABC = "ABC_"

HEAD = '''"""{head}

Made by `python/tools/twins.py` from `_native.pyi`: change that, and run it.
"""

from __future__ import annotations

from collections.abc import {abc}
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from .._given.row_types import RowsT_co, RowT_co
{imports}

_T = TypeVar("_T")

{class_}
'''

PREPARED = '''
class Prepared(Generic[RowsT_co, RowT_co]):
    """A statement of a database: `statement = {await_}db.prepare(sql)`. Its calls do not belong to a transaction."""

    __slots__ = ("_on", "sql")

    def __init__(self, on: {on}, sql: str) -> None:
        self._on = on
        self.sql = sql

    def __repr__(self) -> str:
        return f"<{name} {{self.sql!r}}>"
'''


@dataclass(frozen=True)
class Twin:
    """A class with the calls of `Executor`."""

    head: str
    imports: str
    class_: str
    without: tuple[str, ...]
    # Its calls return the result; those of `Executor` return what is awaited for it.
    waits: bool
    # It has the SQL, which is no parameter then.
    has_sql: bool

    def text(self) -> str:
        """The file."""
        calls = {name: forms for name, forms in source().items() if name not in self.without}
        code = [HEAD.format(abc=ABC, head=self.head, imports=self.imports, class_=self.class_)]
        for name, forms in calls.items():
            if len(forms) > 1:
                code += [f"@overload\n{self.signature(form)} ..." for form in forms]
            code.append(self.body(name, forms))
        text = "\n".join([code[0], *("    " + part.replace("\n", "\n    ") for part in code[1:])])
        return formatted(text.replace(ABC, "Callable, Iterable" if "Iterable[" in text else "Callable"))

    def signature(self, form: ast.FunctionDef) -> str:
        arguments = deepcopy(form.args)
        if self.has_sql:
            del arguments.args[1]
        return f"def {form.name}({ast.unparse(arguments)}) -> {self.result(form)}:"

    def result(self, form: ast.FunctionDef) -> str:
        assert isinstance(form.returns, ast.Subscript)
        return ast.unparse(form.returns.slice if self.waits else form.returns)

    def body(self, name: str, forms: list[ast.FunctionDef]) -> str:
        form = forms[0] if len(forms) == 1 else any_of(forms[0])
        given = [argument.arg for argument in form.args.args[1:]]
        if self.has_sql:
            given[0] = "self.sql"
        given += [f"{argument.arg}={argument.arg}" for argument in form.args.kwonlyargs]
        call = f"self._on.{name}({', '.join(given)})"
        if self.waits and not self.has_sql:
            call = f"wait({call})"
        if self.result(form) != "None":
            call = f"return {call}"
        said = f"As `Database.{name}`." if self.has_sql else said_of(forms[0])
        return f'{self.signature(form)}\n    """{said}"""\n    {call}'


def any_of(form: ast.FunctionDef) -> ast.FunctionDef:
    """The form that stands for all overloads."""
    form = deepcopy(form)
    for argument in form.args.kwonlyargs:
        if argument.arg == "into":
            argument.annotation = ast.Name("Any")
    assert isinstance(form.returns, ast.Subscript)
    form.returns.slice = ast.Name("Any")
    return form


def said_of(form: ast.FunctionDef) -> str:
    """The documentation, without the indentation that is added to a method."""
    return (ast.get_docstring(form, clean=False) or "").replace("\n    ", "\n")


def source() -> dict[str, list[ast.FunctionDef]]:
    """The calls for programs by their names, each with its overloads."""
    stub = ast.parse((PACKAGE / "_native.pyi").read_text())
    [executor] = [node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "Executor"]
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in executor.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found.setdefault(node.name, []).append(node)
    return found


def formatted(code: str) -> str:
    command = ["ruff", "format", "--quiet", "--stdin-filename", str(PACKAGE / "made.py"), "-"]
    return subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout


TWINS = {
    "_handles/prepared.py": Twin(
        head="A statement that was compiled once, whose errors are known before it runs.\n\n"
        "Owns the handle. Leaves out running it: its database does that, and finds the compiled statement by its text.",
        imports="from .._native import Call, Columns, ExecuteResult, RunResult\n\n"
        "if TYPE_CHECKING:\n"
        "    from .._given.types import ManyParams, Params, Seconds, Types\n"
        "    from .scopes import Reads",
        class_=PREPARED.format(await_="await ", on="Reads[RowsT_co, RowT_co]", name="flatwater.Prepared"),
        without=("executescript", "batch"),
        waits=False,
        has_sql=True,
    ),
    "blocking/_prepared.py": Twin(
        head="The prepared statements of `flatwater.blocking`.\n\nOwns the handle. Leaves out running it.",
        imports="from .._native import Columns, ExecuteResult, RunResult\n\n"
        "if TYPE_CHECKING:\n"
        "    from .._given.types import ManyParams, Params, Seconds, Types\n"
        "    from . import Executor",
        class_=PREPARED.format(await_="", on="Executor[RowsT_co, RowT_co]", name="flatwater.blocking.Prepared"),
        without=("executescript", "batch"),
        waits=True,
        has_sql=True,
    ),
    "blocking/_calls.py": Twin(
        head="The calls of `flatwater.blocking` that wait for those of the same name.\n\n"
        "Owns the wait. Leaves out `executemany`, which takes the rows of a generator in parts (`blocking`).",
        imports="from .._native import Columns, ExecuteResult, Executor, RunResult, wait\n\n"
        "if TYPE_CHECKING:\n"
        "    from .._given.types import ManyParams, Params, Seconds, SqlLike, Types",
        class_="class Calls(Generic[RowsT_co, RowT_co]):\n"
        '    """The calls that run SQL, and wait for it."""\n\n'
        "    _on: Executor[RowsT_co, RowT_co]\n",
        without=("executemany",),
        waits=True,
        has_sql=False,
    ),
}


if __name__ == "__main__":
    for file, twin in TWINS.items():
        (PACKAGE / file).write_text(twin.text())
