"""The stream of a result as C sees it: what a reader may do with the structs, and that nothing is left behind."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
from test_leaks import heap_bytes

import flatwater
from flatwater import blocking

STREAMS = 100_000
SQL = "SELECT 1 AS id, 'Ada' AS name, NULL AS a UNION ALL SELECT 2, NULL, NULL"


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


# https://arrow.apache.org/docs/format/CDataInterface.html
POINTER = ctypes.c_void_p
Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", POINTER),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", POINTER),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))),
    ("private_data", POINTER),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(POINTER)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", POINTER),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))),
    ("private_data", POINTER),
]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(Stream))),
    ("private_data", POINTER),
]

get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def stream_in(capsule: object) -> Stream:
    """The struct in the capsule, which must be kept meanwhile."""
    return Stream.from_address(get_pointer(capsule, b"arrow_array_stream"))


def moved(struct: ctypes.Structure) -> ctypes.Structure:
    """The struct in another place; the first one is left empty."""
    other = type(struct).from_buffer_copy(struct)
    struct.release = type(struct.release)()
    return other


def release(struct: ctypes.Structure) -> None:
    assert struct.release
    struct.release(ctypes.byref(struct))
    assert not struct.release


def taken(made: flatwater.Columns) -> Stream:
    """A stream that has been moved out of its capsule, which is gone."""
    capsule = made.__arrow_c_stream__()
    return moved(stream_in(capsule))


def next_of(stream: Stream) -> Array:
    array = Array()
    assert stream.get_next(ctypes.byref(stream), ctypes.byref(array)) == 0
    return array


def schema_of(stream: Stream) -> Schema:
    schema = Schema()
    assert stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) == 0
    return schema


@pytest.fixture
def made() -> flatwater.Columns:
    with blocking.connect(":memory:") as db:
        return db.query_columns(SQL)


def test_the_structs_are_those_of_the_specification(made):
    capsule = made.__arrow_c_stream__(requested_schema=None)
    stream = stream_in(capsule)
    schema = schema_of(stream)
    fields = [schema.children[index].contents for index in range(schema.n_children)]
    assert (schema.format, schema.flags, [field.format for field in fields]) == (b"+s", 0, [b"l", b"u", b"n"])
    assert [(field.name, field.flags, field.n_children) for field in fields] == [
        (b"id", 2, 0),
        (b"name", 2, 0),
        (b"a", 2, 0),
    ]
    array = next_of(stream)
    columns = [array.children[index].contents for index in range(array.n_children)]
    assert (array.length, array.null_count, array.n_buffers, array.buffers[0]) == (2, 0, 1, None)
    counts = [(column.length, column.null_count, column.offset, column.n_buffers) for column in columns]
    assert counts == [(2, 0, 0, 2), (2, 1, 0, 3), (2, 2, 0, 0)]
    assert columns[0].buffers[0] is None and columns[1].buffers[0] is not None
    assert list((ctypes.c_int64 * 2).from_address(columns[0].buffers[1])) == [1, 2]
    assert ctypes.c_uint8.from_address(columns[1].buffers[0]).value == 0b01
    assert list((ctypes.c_int32 * 3).from_address(columns[1].buffers[1])) == [0, 3, 3]
    assert ctypes.string_at(columns[1].buffers[2], 3) == b"Ada"
    for _ in range(2):
        assert not next_of(stream).release, "after the last batch there is an empty one"
    assert stream.get_last_error(ctypes.byref(stream)) is None
    for struct in (schema, array, stream):
        release(struct)


def test_a_struct_that_was_moved_out_lives_on_its_own(made):
    stream = taken(made)
    schema, array = schema_of(stream), next_of(stream)
    field, column = moved(schema.children[1].contents), moved(array.children[1].contents)
    for struct in (stream, schema, array):
        release(struct)
    del made
    assert (field.name, ctypes.string_at(column.buffers[2], 3)) == (b"name", b"Ada")
    for struct in (field, column):
        release(struct)


def not_taken(made: flatwater.Columns) -> None:
    made.__arrow_c_stream__()


def taken_and_not_read(made: flatwater.Columns) -> None:
    release(taken(made))


def read_in_part(made: flatwater.Columns) -> None:
    capsule = made.__arrow_c_stream__()
    stream = stream_in(capsule)
    schema, array = schema_of(stream), next_of(stream)
    column = moved(array.children[0].contents)
    for struct in (schema, array, column):
        release(struct)


@pytest.mark.parametrize("use", [not_taken, taken_and_not_read, read_in_part])
def test_streams_leave_nothing_behind(made, use: Callable[[flatwater.Columns], None]):
    for _ in range(STREAMS // 100):
        use(made)
    before = heap_bytes()
    for _ in range(STREAMS):
        use(made)
    # One byte of each stream would be a tenth of a megabyte; the smallest piece of memory is 32 bytes.
    assert heap_bytes() - before < STREAMS
