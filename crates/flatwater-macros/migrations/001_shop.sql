CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT UNIQUE,
    active BOOLEAN NOT NULL DEFAULT 1,
    born DATE,
    created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP,
    settings JSON,
    score REAL
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    status TEXT NOT NULL CHECK (status IN ('new', 'paid', 'sent')),
    total REAL NOT NULL DEFAULT 0,
    note TEXT,
    placed_at DATETIME
);
CREATE INDEX orders_by_user ON orders (user_id, status);
CREATE INDEX orders_by_day ON orders (date(placed_at));
CREATE TABLE items (
    order_id INTEGER NOT NULL REFERENCES orders (id),
    line INTEGER NOT NULL,
    product TEXT NOT NULL,
    quantity INTEGER NOT NULL,
    price REAL NOT NULL,
    discount REAL,
    PRIMARY KEY (order_id, line)
) WITHOUT ROWID;
CREATE TABLE facts (
    id INTEGER PRIMARY KEY,
    n INTEGER NOT NULL,
    m INTEGER,
    r REAL NOT NULL,
    s REAL,
    t TEXT NOT NULL,
    u TEXT,
    b BLOB NOT NULL,
    c BLOB,
    a ANY,
    twice INTEGER AS (n * 2) VIRTUAL,
    shout TEXT NOT NULL AS (upper(t)) STORED
) STRICT;
CREATE INDEX facts_by_n ON facts (n, m, r);
CREATE TABLE loose (a, b INTEGER, c VARCHAR(10), d NUMERIC, e STRING, f BLOB, g REAL, h INTEGER NOT NULL, i TEXT NOT NULL);
CREATE TABLE pairs (k TEXT PRIMARY KEY, v INTEGER) STRICT, WITHOUT ROWID;
CREATE TABLE nodes (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES nodes (id), title TEXT NOT NULL) STRICT;
CREATE TABLE keys_desc (id INTEGER PRIMARY KEY DESC, v TEXT);
