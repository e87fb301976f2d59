"""Django's backend for SQLite, with Flatwater in the place of `sqlite3`: `"ENGINE": "flatwater_backend"`."""
