"""The scenarios that hold in every language (docs/design/conformance.md), run on this package.

The driver maps each verb to the call of Python. Fields and verbs that it does not know are errors. Every scenario
runs on a file and in memory.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import datetime
import decimal
import json
import os
import sqlite3
import struct
import uuid
from pathlib import Path
from typing import Any

import pytest
from conftest import Sum

import flatwater

FOLDER = Path(__file__).parents[2] / "conformance" / "scenarios"
SCENARIOS = [
    (file.stem, scenario)
    for file in sorted(FOLDER.glob("*.json"))
    for scenario in json.loads(file.read_text("utf-8"))["scenarios"]
]

COMMON = {"in", "timeout_ms", "start", "error"}
# Each verb with the fields that it may have beside the common ones.
VERBS = {
    "open": {"path", "options"},
    "close": set(),
    "execute": {"params", "changes", "last_insert_rowid"},
    "run": {"params", "columns", "result"},
    "execute_many": {"rows", "changes"},
    "query_many": {"rows", "returned"},
    "batch": {"results"},
    "execute_script": set(),
    "query": {"params", "columns", "rows"},
    "query_one": {"params", "row"},
    "query_value": {"params", "value"},
    "query_optional": {"params", "row"},
    "query_optional_value": {"params", "value"},
    "query_values": {"params", "values"},
    "query_json": {"params", "json_options", "json"},
    "stream": {"sql", "params"},
    "next": {"rows", "end"},
    "snapshot": set(),
    "prepare": {"sql"},
    "begin": set(),
    "commit": set(),
    "rollback": set(),
    "savepoint": set(),
    "release": set(),
    "rollback_to": set(),
    "connection": {"foreign_keys"},
    "transaction": {"as", "raised"},
    "raise": set(),
    "migrate": {"ignore_missing", "applied"},
    "backup": set(),
    "vacuum": set(),
    "vacuum_into": set(),
    "incremental_vacuum": {"pages"},
    "serialize": set(),
    "open_blob": {"table", "column", "rowid", "bytes"},
    "read_blob": {"position", "bytes", "value"},
    "write_blob": {"position", "value"},
    "create": {"as"},
    "remove": {"as"},
    "await": set(),
    "drop": set(),
    "write_file": set(),
}


def checked(value):
    if value == "bad":
        raise ValueError("it is bad")
    return value


# The functions that scenarios name: the method that creates one, its number of arguments, its code.
FUNCTIONS: dict[str, tuple[str, tuple[int, ...], Any]] = {
    "double": ("create_function", (1,), lambda number: None if number is None else 2 * number),
    "triple": ("create_function", (1,), lambda number: None if number is None else 3 * number),
    "checked": ("create_function", (1,), checked),
    "arguments": ("create_function", (-1,), lambda *values: len(values)),
    "total": ("create_aggregate", (1,), Sum),
    "moving": ("create_window_function", (1,), Sum),
    "reversed": ("create_collation", (), lambda one, other: (one < other) - (one > other)),
}


def create(on: flatwater.Database, step: dict[str, Any], verb: str) -> None:
    method, narg, code = FUNCTIONS[step[verb]]
    options = {"deterministic": True} if method == "create_function" else {}
    getattr(on, method)(step.get("as", step[verb]), *narg, code if verb == "create" else None, **options)


class Raised(Exception):
    """The program's own error."""


@dataclasses.dataclass
class Started:
    step: dict[str, Any]
    task: asyncio.Task[Any]


@dataclasses.dataclass
class Stream:
    block: flatwater.Stream
    rows: Any


def value(of: Any) -> Any:
    """Returns a value as Python has it."""
    if not isinstance(of, dict):
        assert not isinstance(of, list), "a list is no value"
        return of
    [(tag, text)] = of.items()
    match tag:
        case "int":
            return int(text)
        case "real":
            return float(text)
        case "blob":
            return base64.b64decode(text)
        case "zeros":
            return bytes(text)
        case "repeat":
            return text[0] * text[1]
        case "utc" | "datetime":
            return datetime.datetime.fromisoformat(text)
        case "date":
            return datetime.date.fromisoformat(text)
        case "time":
            return datetime.time.fromisoformat(text)
        case "uuid":
            return uuid.UUID(text)
        case "decimal":
            return decimal.Decimal(text)
        case "json":
            return text
    raise AssertionError(f"{tag} is no type")


def params(of: Any) -> Any:
    if isinstance(of, dict):
        return {name: value(one) for name, one in of.items()}
    return [value(one) for one in of]


def same(expected: Any, found: Any) -> None:
    """Compares a value with its type and its bits: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    expected = value(expected)
    if isinstance(expected, float) and isinstance(found, float):
        assert struct.pack("d", expected) == struct.pack("d", found)
    else:
        assert (type(expected), expected) == (type(found), found)


def same_row(expected: list[Any], found: Any) -> None:
    assert len(expected) == len(found)
    for one, other in zip(expected, found):
        same(one, other)


def same_rows(expected: list[list[Any]], found: Any) -> None:
    assert len(expected) == len(found)
    for one, other in zip(expected, found):
        same_row(one, other)


def same_result(expected: dict[str, Any], found: Any) -> None:
    assert set(expected) <= {"changes", "last_insert_rowid", "rows"}
    for field in ("changes", "last_insert_rowid"):
        if field in expected:
            assert getattr(found, field) == expected[field]
    if "rows" in expected:
        assert (expected["rows"] is None) == (found.rows is None)
        same_rows(expected["rows"] or [], found.rows or [])


def failed(expected: dict[str, Any], error: BaseException) -> None:
    """Compares an exception with the error that is expected."""
    fields = set(
        "kind code constraint message_contains hint_contains hint sql_contains at retryable applied hides".split()
    )
    assert set(expected) <= fields
    if isinstance(error, OverflowError | UnicodeEncodeError):
        # What Python itself raises for such a value.
        assert expected["kind"] == "misuse"
        return
    assert isinstance(error, flatwater.Error), error
    assert error.kind == expected["kind"], error
    if "code" in expected:
        assert (error.code or error.sqlite_errorname) == expected["code"]
    if "constraint" in expected:
        given = {"table": None, "columns": [], "name": None, **expected["constraint"]}
        assert (
            error.constraint is not None
            and {**error.constraint._asdict(), "columns": [*error.constraint.columns]} == given
        )
    assert expected.get("message_contains", "") in str(error)
    plain = (error.hint or "").lower().replace("_", "")
    assert expected.get("hint_contains", "").lower().replace("_", "") in plain
    if "hint" in expected:
        assert expected["hint"] == (error.hint is not None)
    assert expected.get("sql_contains", "") in (error.sql or "")
    if "at" in expected:
        assert error.sql is not None and error.sql.encode()[error.offset :].startswith(expected["at"].encode())
    if "retryable" in expected:
        assert error.retryable == expected["retryable"]
    if "applied" in expected:
        assert error.applied == expected["applied"]
    if "hides" in expected:
        assert expected["hides"] not in f"{error!r} {error} {error.__dict__}"


def ended(step: dict[str, Any], verb: str, result: Any) -> None:
    """Compares the result of a call."""
    if verb == "execute":
        for field in ("changes", "last_insert_rowid"):
            if field in step:
                assert getattr(result, field) == step[field]
    elif verb == "execute_many" and "changes" in step:
        assert result == step["changes"]
    elif verb == "batch" and "results" in step:
        assert len(result) == len(step["results"])
        for expected, found in zip(step["results"], result):
            same_result(expected, found)
    elif verb == "run":
        assert list(result.columns) == step.get("columns", list(result.columns))
        same_result(step.get("result", {}), result)
    elif verb == "query":
        if "columns" in step:
            assert list(result.columns) == step["columns"]
        if "rows" in step:
            same_rows(step["rows"], result)
    elif verb == "query_many" and "returned" in step:
        same_rows(step["returned"], result)
    elif verb in ("query_one", "query_optional") and "row" in step:
        assert (step["row"] is None) == (result is None)
        same_row(step["row"] or [], result or [])
    elif verb in ("query_value", "query_optional_value") and "value" in step:
        same(step["value"], result)
    elif verb == "query_values" and "values" in step:
        same_row(step["values"], result)
    elif verb == "query_json" and "json" in step:
        assert result == step["json"]
    elif verb == "migrate" and "applied" in step:
        assert result == step["applied"]
    elif verb == "incremental_vacuum" and "pages" in step:
        assert result == step["pages"]
    elif verb == "open_blob" and "bytes" in step:
        assert len(result) == step["bytes"]
    elif verb == "read_blob" and "value" in step:
        same(step["value"], result)


class Program:
    """The program that a scenario describes."""

    def __init__(self, path: str, directory: Path) -> None:
        self.path = path
        self.directory = directory
        self.handles: dict[str, Any] = {}

    def keep(self, name: str, handle: Any) -> None:
        assert name not in self.handles, f"{name} is used twice"
        self.handles[name] = handle

    def named(self, path: str) -> str:
        return path.replace("{path}", self.path).replace("{directory}", str(self.directory))

    def connect(self, path: str | None, options: dict[str, Any]) -> Any:
        options = dict(options)
        if "busy_timeout_ms" in options:
            options["busy_timeout"] = options.pop("busy_timeout_ms") / 1000
        if "migrations" in options:
            options["migrations"] = [tuple(one) for one in options["migrations"]]
        if "attach" in options:
            options["attach"] = {name: self.named(file) for name, file in options["attach"].items()}
        if (given := options.get("deserialize")) is not None:
            options["deserialize"] = self.handles[given] if isinstance(given, str) else value(given).encode()
        if tuning := {name: options.pop(name) for name in list(options) if name in flatwater.Tuning.__annotations__}:
            options["tuning"] = tuning
        return flatwater.connect(self.named("{path}" if path is None else path), **options)

    async def run(self, scenario: dict[str, Any]) -> None:
        assert set(scenario) <= {"name", "options", "needs_a_file", "steps"}
        steps = scenario["steps"]
        first = next((step for step in steps if "write_file" not in step), {})
        if "open" not in first:
            self.keep("db", await self.connect(None, scenario.get("options", {})))
        try:
            await self.steps(steps)
            started = [name for name, handle in self.handles.items() if isinstance(handle, Started)]
            assert not started, f"{started} were started, and neither awaited nor dropped"
        finally:
            for handle in [handle for handle in self.handles.values() if not isinstance(handle, flatwater.Database)]:
                await self.let_go(handle)
            for handle in self.handles.values():
                if isinstance(handle, flatwater.Database):
                    await handle.close()

    async def steps(self, steps: list[dict[str, Any]]) -> None:
        for number, step in enumerate(steps, 1):
            try:
                await self.step(step)
            except AssertionError as error:
                raise AssertionError(f"step {number}: {error}") from error

    async def step(self, step: dict[str, Any]) -> None:
        [verb] = [field for field in step if field in VERBS]
        assert set(step) - {verb} <= VERBS[verb] | COMMON, f"{verb} has other fields: {step}"
        of = step[verb]
        if verb == "raise":
            raise Raised(of)
        if verb == "write_file":
            data = value(of)
            Path(self.path).write_bytes(data.encode() if isinstance(data, str) else data)
        elif verb == "drop":
            await self.let_go(self.handles.pop(of))
        elif verb == "await":
            started = self.handles.pop(of)
            await self.end(started.step, started.task)
        elif verb == "next":
            await self.next(step, self.handles[of])
        elif verb == "transaction":
            await self.transaction(step)
        elif "start" in step:
            task = asyncio.ensure_future(self.call(step, verb))
            # It takes its place in the queue in its first step.
            await asyncio.sleep(0)
            self.keep(step["start"], Started(step, task))
        else:
            await self.end(step, self.call(step, verb))

    async def end(self, step: dict[str, Any], call: Any) -> None:
        [verb] = [field for field in step if field in VERBS]
        try:
            result = await call
            if verb == "query" and "error" in step:
                # With types a value is read when it is asked for.
                [tuple(row) for row in result]
        except (flatwater.Error, OverflowError, UnicodeEncodeError) as error:
            if "error" not in step:
                raise
            failed(step["error"], error)
            return
        assert "error" not in step, f"it did not fail: {step}"
        ended(step, verb, result)
        if verb in ("open", "snapshot", "prepare", "begin", "stream", "serialize", "open_blob", "connection"):
            self.keep(step[verb], result)

    async def next(self, step: dict[str, Any], stream: Stream) -> None:
        try:
            for expected in step.get("rows", []):
                same_row(expected, await anext(stream.rows))
            if step.get("end") or "error" in step:
                row = await anext(stream.rows, None)
                assert "error" not in step and row is None, f"the next is {row}"
        except flatwater.Error as error:
            if "error" not in step:
                raise
            failed(step["error"], error)

    async def let_go(self, handle: Any) -> None:
        match handle:
            case Started():
                handle.task.cancel()
                await asyncio.gather(handle.task, return_exceptions=True)
            case Stream():
                handle.block.close()
            case flatwater.Database():
                # It is closed when nothing refers to it any more, and would warn.
                handle._is_closed = True
            case flatwater.Transaction():
                await handle.__aexit__(Raised, Raised("dropped"), None)
            case flatwater.Connection():
                await handle.close()
            case flatwater.Snapshot():
                await handle.__aexit__(None, None, None)

    async def transaction(self, step: dict[str, Any]) -> None:
        on = self.handles[step.get("in", "db")]
        name = step["as"]
        try:
            async with on.transaction(timeout=timeout(step)) as tx:
                self.keep(name, tx)
                try:
                    await self.steps(step["transaction"])
                finally:
                    del self.handles[name]
        except Raised as error:
            assert step.get("raised") == str(error)
        except flatwater.Error as error:
            if "error" not in step:
                raise
            failed(step["error"], error)
        else:
            assert "raised" not in step and "error" not in step, "it did not fail"

    def text(self, of: Any) -> str | flatwater.Sql:
        if isinstance(of, str):
            return of
        if "prepared" in of:
            return self.handles[of["prepared"]].sql
        sql = flatwater.Sql()
        for part, argument in of["built"]:
            if part == "bind":
                sql.bind(value(argument))
            elif part == "bind_list":
                sql.bind_list([value(one) for one in argument])
            else:
                getattr(sql, {"push": "push", "push_identifier": "push_identifier"}[part])(argument)
        return sql

    async def call(self, step: dict[str, Any], verb: str) -> Any:
        of = step[verb]
        if verb == "open":
            return await self.connect(step.get("path"), step.get("options", {}))
        if verb == "close":
            return await self.handles[of].close()
        if verb in ("read_blob", "write_blob"):
            blob = self.handles[of]
            blob.seek(step["position"])
            return await (blob.read(step["bytes"]) if verb == "read_blob" else blob.write(value(step["value"])))
        if verb in ("commit", "rollback"):
            return await self.end_of(self.handles.pop(of), verb)
        on = self.handles[step.get("in", "db")]
        limit = timeout(step)
        values = params(step["params"]) if "params" in step else None
        match verb:
            case "begin":
                return await on.transaction(timeout=limit).__aenter__()
            case "savepoint" | "release" | "rollback_to":
                return await getattr(on, verb)(of)
            case "connection":
                return on.connection(foreign_keys=step.get("foreign_keys"))
            case "snapshot":
                return await on.snapshot(timeout=limit).__aenter__()
            case "stream":
                return await self.stream(on, step["sql"], values, limit)
            case "prepare":
                return await on.prepare(step["sql"], timeout=limit)
            case "execute_many":
                return await on.executemany(of, [params(row) for row in step["rows"]], timeout=limit)
            case "query_many":
                return await on.query_many(of, [params(row) for row in step["rows"]], timeout=limit)
            case "execute_script":
                return await on.executescript(of, timeout=limit)
            case "batch":
                return await on.batch([(sql, params(row)) for sql, row in of], timeout=limit)
            case "create" | "remove":
                return create(on, step, verb)
            case "migrate":
                migrations = [tuple(one) for one in of]
                return await on.migrate(migrations, ignore_missing=step.get("ignore_missing", False), timeout=limit)
            case "backup" | "vacuum_into":
                return await getattr(on, verb)(self.named(of), timeout=limit)
            case "vacuum" | "serialize":
                return await getattr(on, verb)(timeout=limit)
            case "incremental_vacuum":
                return await on.incremental_vacuum(of, timeout=limit)
            case "open_blob":
                return await on.open_blob(step["table"], step["column"], step["rowid"], timeout=limit)
            case "query_json":
                return await on.query_json(self.text(of), values, **step.get("json_options", {}), timeout=limit)
        return await getattr(on, verb)(self.text(of), values, timeout=limit)

    async def stream(self, on: Any, sql: str, values: Any, limit: float | None) -> Stream:
        block = await on.stream(sql, values, timeout=limit).__aenter__()
        return Stream(block, aiter(block))

    async def end_of(self, tx: flatwater.Transaction, verb: str) -> None:
        if verb == "commit":
            await tx.__aexit__(None, None, None)
        else:
            await tx.rollback()


def timeout(step: dict[str, Any]) -> float | None:
    return step["timeout_ms"] / 1000 if "timeout_ms" in step else None


def places(scenario: dict[str, Any]) -> list[str]:
    return ["file"] if "needs_a_file" in scenario else ["file", "memory"]


@pytest.mark.parametrize(
    ("scenario", "place"),
    [
        pytest.param(scenario, place, id=f"{file}-{scenario['name']}-{place}")
        for file, scenario in SCENARIOS
        for place in places(scenario)
    ],
)
async def test_scenario(scenario, place, tmp_path):
    path = ":memory:" if place == "memory" else str(tmp_path / "scenario.db")
    await Program(path, tmp_path).run(scenario)
    writes_file = any("write_file" in step for step in scenario["steps"])
    if os.path.exists(path) and not writes_file:
        plain = sqlite3.connect(path)
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        plain.close()


@pytest.mark.parametrize(
    "step",
    [
        {"query": "SELECT 1", "rows": [[2]]},
        {"query": "SELECT 1", "rows": [[{"real": "1"}]]},
        {"query": "SELECT 1 AS a", "columns": ["b"]},
        {"query": "SELECT 1", "error": {"kind": "sql"}},
        {"query": "SELEC 1", "error": {"kind": "misuse"}},
        {"query": "SELEC 1", "error": {"kind": "sql", "at": "1"}},
        {"query_one": "SELECT 1", "row": None},
        {"query_value": "SELECT 1", "value": None},
        {"query_json": "SELECT 1 AS a", "json": "[]"},
        {"execute": "CREATE TABLE t (a)", "changes": 1},
        {"transaction": [], "as": "tx", "raised": "x"},
        {"query": "SELECT 1", "start": "never awaited"},
        {"query": "SELECT 1", "rwos": []},
    ],
    ids=json.dumps,
)
async def test_a_wrong_expectation_fails(step, tmp_path):
    with pytest.raises(AssertionError):
        await Program(":memory:", tmp_path).run({"name": "a_b", "steps": [step]})


def test_there_are_scenarios():
    assert len(SCENARIOS) >= 150
