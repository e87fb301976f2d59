"""The peers of this folder by name. Each is imported alone, so that its memory is its own."""

import importlib

PEERS = {
    "py-sqlite3": "builtin.Sqlite3",
    "py-aiosqlite": "aio.Aiosqlite",
    "py-aiosqlite-idiomatic": "aio_idiomatic.Idiomatic",
    "py-apsw": "apsw_sync.Apsw",
    "py-apsw-async": "apsw_async.ApswAsync",
    "py-flatwater": "flat.Flatwater",
}


def load(name):
    """The class of a peer."""
    module, kind = PEERS[name].split(".")
    return getattr(importlib.import_module(f"peers.{module}"), kind)
