"""shapes_{narrow,wide,text,numeric,nullable}: all of 1000 rows of one shape, every field touched."""

from functools import partial

from data import INSERT_WIDE, SELECT_WIDE, WIDE, expect, expect_rows, same, wide_row
from lane import Lane
from measure import Timing

ROWS = 1000


async def run(trial, create, insert, select, row):
    count = trial.size(500, 5)
    rows = [row(i) for i in range(ROWS)]
    async with trial.open() as peer:
        await peer.execute(create)
        await peer.many(insert, rows)
        await expect_rows(peer, select, rows)
        timing = Timing()
        for _ in range(count):
            right = await timing.time(same(peer, rows, select))
            expect(right, True, "the rows are those that were written")
        return timing.end(count)


def text(i):
    words = [("title", 70), ("body", 200), ("summary", 90), ("notes", 90)]
    return (i, *(f"The {word} of row {i} ".ljust(length, ".") for word, length in words), i * 1.5, i * 3)


def numeric(i):
    return (i * 7, i * 13, i * 0.333, i * 1.414, i * 99, f"n {i}")


def nullable(i):
    return (
        f"name {i}" if i % 2 == 0 else None,
        i * 1.5 if i % 3 == 0 else None,
        f"tag {i % 7}" if i % 4 == 0 else None,
        i if i % 2 == 1 else None,
        f"a note on row {i}" if i % 5 == 0 else None,
        i * 0.5 if i % 3 != 0 else None,
    )


SHAPES = {
    "narrow": (
        "2 columns: integers",
        "CREATE TABLE narrow (id INTEGER PRIMARY KEY, n INTEGER)",
        "INSERT INTO narrow VALUES (?, ?)",
        "SELECT id, n FROM narrow",
        lambda i: (i, i * 7),
    ),
    "wide": ("20 columns: integers, reals and texts", WIDE, INSERT_WIDE, SELECT_WIDE, wide_row),
    "text": (
        "7 columns, four of them texts of 70 to 200 characters",
        "CREATE TABLE text (id INTEGER PRIMARY KEY, title TEXT, body TEXT, summary TEXT, notes TEXT, r REAL, "
        "n INTEGER)",
        "INSERT INTO text VALUES (?, ?, ?, ?, ?, ?, ?)",
        "SELECT id, title, body, summary, notes, r, n FROM text",
        text,
    ),
    "numeric": (
        "6 columns: integers, reals and a short text",
        "CREATE TABLE numeric (a INTEGER, b INTEGER, c REAL, d REAL, e INTEGER, f TEXT)",
        "INSERT INTO numeric VALUES (?, ?, ?, ?, ?, ?)",
        "SELECT a, b, c, d, e, f FROM numeric",
        numeric,
    ),
    "nullable": (
        "6 columns, about half of the fields NULL",
        "CREATE TABLE nullable (name TEXT, value REAL, tag TEXT, count INTEGER, note TEXT, score REAL)",
        "INSERT INTO nullable VALUES (?, ?, ?, ?, ?, ?)",
        "SELECT name, value, tag, count, note, score FROM nullable",
        nullable,
    ),
}

LANES = [
    Lane("reads", f"shapes_{word}", f"1000 rows of {columns}", "queries",
         partial(run, create=create, insert=insert, select=select, row=row), release=True)
    for word, (columns, create, insert, select, row) in SHAPES.items()
]
