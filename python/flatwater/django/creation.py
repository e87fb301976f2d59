"""The databases of Django's tests, and their copies for workers that run tests in parallel.

Owns how one is copied and opened again. Runs in the process of the tests, and in each worker. Invariants: a copy is
whole, what is in the WAL too; a worker opens its own, because what was open before a fork cannot be used after it.
Leaves out names and the rest, which are Django's.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import creation

from .._logical.files import with_tuning

BESIDE = ("-wal", "-shm")


class DatabaseCreation(creation.DatabaseCreation):
    """Creates, copies and removes databases of tests."""

    def get_test_db_clone_settings(self, suffix: Any) -> dict[str, Any]:
        """The settings of a copy, which is a file, also of a database in memory."""
        settings: dict[str, Any] = super().get_test_db_clone_settings(suffix)
        if self.is_in_memory_db(settings["NAME"]):
            settings = {**settings, "NAME": f"{self.connection.alias}_{suffix}.sqlite3"}
        return settings

    def _clone_test_db(self, suffix: Any, verbosity: int, keepdb: bool = False) -> None:
        target = self.get_test_db_clone_settings(suffix)["NAME"]
        if keepdb and os.access(target, os.F_OK):
            return
        if verbosity >= 1:
            self.log(f"Copying the test database into {target}...")
        self._remove(target)
        self.connection.ensure_connection()
        with closing(sqlite3.connect(target)) as copy:
            self.connection.connection.backup(copy)

    def setup_worker_connection(self, _worker_id: Any) -> None:
        """Opens the copy of a worker: in memory, if the database is."""
        clone = self.get_test_db_clone_settings(_worker_id)
        settings = self.connection.settings_dict
        # It is of the process before the fork.
        self.connection.connection = None
        if not self.is_in_memory_db(settings["NAME"]):
            settings.update(clone)
            return
        given = settings["OPTIONS"]
        settings["NAME"] = f"file:memorydb_{self.connection.alias}_{_worker_id}?mode=memory&cache=shared"
        settings["OPTIONS"] = with_tuning(given, deserialize=Path(clone["NAME"]).read_bytes())
        self.connection.connect()
        settings["OPTIONS"] = given

    def _destroy_test_db(self, test_database_name: Any, verbosity: int) -> None:
        if test_database_name and not self.is_in_memory_db(test_database_name):
            self._remove(test_database_name)

    def _remove(self, path: Any) -> None:
        for file in (path, *(f"{path}{end}" for end in BESIDE)):
            Path(file).unlink(missing_ok=True)
