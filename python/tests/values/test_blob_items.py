"""The items and slices of a blob: those of the `Blob` of `sqlite3`."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from flatwater import blocking

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="`sqlite3` has blobs since Python 3.11")
CONTENT = bytes(range(10))

positions = some.one_of(some.none(), some.integers(-13, 13))
keys = some.one_of(
    some.integers(-13, 13),
    some.builds(slice, positions, positions, some.one_of(some.none(), some.integers(0, 3))),
    some.sampled_from([True, 1.0, "1", None, b"x", 1 << 100, slice("a", None), slice(1 << 100)]),
)
values = some.one_of(
    some.integers(-2, 300),
    some.binary(max_size=11),
    some.binary(max_size=11).map(bytearray),
    some.binary(max_size=11).map(memoryview),
    some.sampled_from([None, "x", 1.5, True]),
)


def theirs(stack: ExitStack, length: int):
    connection = stack.enter_context(closing(sqlite3.connect(":memory:")))
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (?)", (CONTENT[:length],))
    return stack.enter_context(connection.blobopen("t", "a", 1))


def ours(stack: ExitStack, length: int):
    db = stack.enter_context(blocking.connect(":memory:"))
    db.execute("CREATE TABLE t (a)")
    db.execute("INSERT INTO t VALUES (?)", (CONTENT[:length],))
    return stack.enter_context(db.open_blob("t", "a", 1))


class closing:  # noqa: N801, as in `contextlib`
    def __init__(self, connection) -> None:
        self.connection = connection

    def __enter__(self):
        return self.connection

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def told(call):
    try:
        return call()
    except Exception as error:
        return type(error)


def use(blob, kind, key, value):
    if kind == "read":
        return blob[key]
    if kind == "write":
        blob[key] = value
    elif kind == "delete":
        del blob[key]
    elif kind == "in":
        return value in blob
    else:
        return len(blob), blob.tell(), blob.read(3)


@settings(max_examples=60)
@given(
    some.integers(0, 10),
    some.lists(
        some.tuples(some.sampled_from(["read", "read", "write", "write", "delete", "in", "file"]), keys, values),
        max_size=25,
    ),
)
def test_items_and_slices_are_those_of_sqlite3(length, uses):
    with ExitStack() as stack:
        one, other = theirs(stack, length), ours(stack, length)
        for use_of_it in uses:
            found = told(lambda use_of_it=use_of_it: use(other, *use_of_it))
            expected = told(lambda use_of_it=use_of_it: use(one, *use_of_it))
            # Of an empty slice with a step `sqlite3` wants to read less than nothing.
            assert found == (b"" if expected is SystemError else expected), use_of_it
            assert other[:] == one[:]


@given(positions, positions, some.integers(-3, -1))
def test_a_slice_backwards_is_that_of_bytes(start, stop, step):
    # That of `sqlite3` reads a negative number of bytes.
    key, expected = slice(start, stop, step), bytearray(CONTENT)
    with ExitStack() as stack:
        blob = ours(stack, 10)
        assert blob[key] == expected[key]
        new = bytes(range(100, 100 + len(expected[key])))
        blob[key] = expected[key] = new
        assert blob[:] == expected


def test_an_error_says_what_that_of_sqlite3_says():
    with ExitStack() as stack:
        for blob in (theirs(stack, 10), ours(stack, 10)):
            with pytest.raises(IndexError, match="Blob index out of range"):
                blob[10]
            with pytest.raises(IndexError, match="Blob slice assignment is wrong size"):
                blob[0:2] = b"abc"
            with pytest.raises(TypeError, match="Blob indices must be integers"):
                blob["a"]
            with pytest.raises(ValueError, match="byte must be in range"):
                blob[0] = 256
