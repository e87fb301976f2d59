"""The tables and rows of the lanes, as kit/src/data.rs defines them.

Owns: table definitions, statements and rows that several lanes use. Leaves out: traffic drawn at random.
"""

T = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL, value REAL NOT NULL)"
INSERT_T = "INSERT INTO t (name, value) VALUES (?, ?)"
DELETE_T = "DELETE FROM t"

ITEMS = (
    "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL, "
    "value REAL, category TEXT NOT NULL, created_at TEXT NOT NULL)"
)
INSERT_ITEM = "INSERT INTO items (name, description, value, category, created_at) VALUES (?, ?, ?, ?, ?)"
SELECT_ITEMS = "SELECT id, name, description, value, category, created_at FROM items"
SELECT_ITEM = "SELECT id, name, description, value, category, created_at FROM items WHERE id = ?"

WIDE_COLUMNS = [f"i{c}" for c in range(7)] + [f"r{c}" for c in range(6)] + [f"s{c}" for c in range(7)]
WIDE = "CREATE TABLE wide (id INTEGER PRIMARY KEY, {})".format(
    ", ".join(f"{name} {dict(i='INTEGER', r='REAL', s='TEXT')[name[0]]}" for name in WIDE_COLUMNS)
)
INSERT_WIDE = f"INSERT INTO wide ({', '.join(WIDE_COLUMNS)}) VALUES ({', '.join('?' * len(WIDE_COLUMNS))})"
SELECT_WIDE = f"SELECT {', '.join(WIDE_COLUMNS)} FROM wide ORDER BY id"


def t_row(i):
    return (f"item_{i}", i * 1.5)


def t_rows(count):
    return [t_row(i) for i in range(count)]


def item(i):
    """Row `i` of `items` with its id."""
    description = f"A description of item {i} that is as long as such texts are ".ljust(85, ".")
    created = f"2026-01-{i % 9 + 1:02}T12:00:00.000Z"
    return (i + 1, f"Item {i}", description, i * 1.5, f"category_{i % 10}", created)


def items(count):
    return [item(i) for i in range(count)]


def wide_row(i):
    return (*(i + c for c in range(7)), *(i * 0.1 + c for c in range(7, 13)), *(f"str_{i + c}" for c in range(13, 20)))


def wide_rows(count):
    return [wide_row(i) for i in range(count)]


def expect(found, expected, what):
    """What a lane found is what it expected."""
    if found != expected:
        shown = [repr(it) if len(repr(it)) < 200 else repr(it)[:200] + "..." for it in (found, expected)]
        raise AssertionError(f"{what}: found {shown[0]}, expected {shown[1]}")


async def same(peer, expected, sql, params=()):
    """Whether a query answers the expected rows. Comparing touches every field."""
    return await peer.query(sql, params) == expected


async def expect_rows(peer, sql, expected):
    """The rows that a query answers are the expected ones in order."""
    found = await peer.query(sql)
    expect(len(found), len(expected), f"number of rows of {sql}")
    for at, (row, wanted) in enumerate(zip(found, expected)):
        expect(row, wanted, f"row {at} of {sql}")


async def expect_t(peer, count):
    """`t` holds exactly the rows `0..count`, whatever order they were written in."""
    await expect_rows(peer, "SELECT name, value FROM t ORDER BY value", t_rows(count))


async def fill_items(peer, count):
    """Makes `items` and its first `count` rows."""
    await peer.execute(ITEMS)
    await peer.many(INSERT_ITEM, [row[1:] for row in items(count)])
    await expect_rows(peer, "SELECT count(*) FROM items", [(count,)])
