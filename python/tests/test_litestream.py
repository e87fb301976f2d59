"""Litestream beside the example `examples/litestream`: whatever is killed, what was synced is in the replica."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "litestream"
LITESTREAM = shutil.which("litestream", path=str(Path(sys.executable).parent))

pytestmark = pytest.mark.skipif(LITESTREAM is None, reason="there is no wheel of Litestream for this system")


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < until, "it never happens"
        time.sleep(0.01)


class Place:
    """A database, its replica, and the programs that work on them."""

    def __init__(self, folder: Path) -> None:
        self.database, self.replica = folder / "data" / "app.db", folder / "replica"
        self.database.parent.mkdir()
        self.log = folder / "app.log"
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "DATABASE": str(self.database),
            "REPLICA": str(self.replica),
            # A path of a socket may have 107 bytes.
            "LITESTREAM_SOCKET": os.path.relpath(folder / "socket", folder),
        }
        self.folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, *command: object, log: str = "app.log") -> subprocess.Popen[bytes]:
        with (self.folder / log).open("ab") as out, (self.folder / "errors.log").open("ab") as errors:
            started = subprocess.Popen(
                [str(part) for part in command],
                stdout=out,
                stderr=errors,
                env=self.environment,
                cwd=self.folder,
                start_new_session=True,
            )
        self.running.append(started)
        return started

    def app(self) -> subprocess.Popen[bytes]:
        return self.start(sys.executable, EXAMPLE / "app.py", self.database)

    def litestream(self) -> subprocess.Popen[bytes]:
        return self.start(LITESTREAM, "replicate", "-config", EXAMPLE / "litestream.yml", log="litestream.log")

    def kill(self, program: subprocess.Popen[bytes]) -> None:
        """Kills it and all that it has started."""
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        self.running.remove(program)

    def acknowledged(self) -> dict[int, int]:
        """The rows, and how often the WAL had been restarted by then."""
        # What was killed may have left a part of a line.
        lines = re.findall(r"^acknowledged (\d+) (\d+)\n", self.log.read_text(), re.MULTILINE)
        return {int(row): int(restarts) for row, restarts in lines}

    def does(self, *arguments: object) -> bool:
        command = [str(LITESTREAM), *(str(argument) for argument in arguments)]
        return not subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, timeout=90
        ).returncode

    def synced(self) -> set[int]:
        """Rows that are in the replica, because they were acknowledged before a sync that succeeded began."""
        before: list[set[int]] = []

        def syncs() -> bool:
            before.append(set(self.acknowledged()))
            return self.does("sync", "-wait", "-socket", self.environment["LITESTREAM_SOCKET"], self.database)

        wait_for(lambda: bool(self.acknowledged()))
        wait_for(syncs)
        return before[-1]

    def restored(self) -> set[int]:
        copy = self.folder / "restored.db"
        copy.unlink(missing_ok=True)
        assert self.does("restore", "-integrity-check", "full", "-o", copy, f"file://{self.replica}")
        with sqlite3.connect(copy) as db:
            return {row for (row,) in db.execute("SELECT id FROM orders WHERE length(note) = 2000")}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    for program in list(place.running):
        place.kill(program)


def write_until_the_wal_is_cut(place: Place) -> None:
    """While Litestream is not there, the program keeps the WAL short by itself."""
    rows = place.acknowledged()
    last, before = max(rows, default=0), rows[max(rows)] if rows else 0
    wait_for(lambda: any(resets > before for row, resets in place.acknowledged().items() if row > last))


def test_what_was_synced_is_restored_whatever_was_killed(place: Place) -> None:
    app, litestream = place.app(), place.litestream()
    place.synced()
    for _ in range(4):
        time.sleep(random.random() / 4)
        place.kill(litestream)
        write_until_the_wal_is_cut(place)
        if random.random() < 0.5:
            place.kill(app)
            app = place.app()
        litestream = place.litestream()
        rows = place.synced()
        time.sleep(random.random() / 4)
        assert rows <= place.restored()
    rows = place.synced()
    place.kill(app)
    place.kill(litestream)
    restored = place.restored()
    assert rows and rows <= restored
    with sqlite3.connect(place.database) as db:
        assert restored <= {row for (row,) in db.execute("SELECT id FROM orders")}


def test_the_wal_is_left_to_litestream_while_it_runs(place: Place) -> None:
    place.app()
    place.litestream()
    place.synced()
    first = place.acknowledged()
    # More than Flatwater lets the WAL become by itself.
    wait_for(lambda: len(place.acknowledged()) > len(first) + 12_000)
    last = place.acknowledged()
    assert last[max(last)] == first[max(first)]
    # Litestream begins it anew from 1,000 pages on, when it next looks.
    assert place.database.with_name("app.db-wal").stat().st_size < 64 << 20


def test_a_new_machine_begins_with_what_was_synced(place: Place) -> None:
    command = f"{sys.executable} {EXAMPLE / 'app.py'} {place.database}"
    container = place.start(EXAMPLE / "run.sh", command)
    wait_for(lambda: bool(place.acknowledged()))
    rows = place.synced()
    place.kill(container)
    shutil.rmtree(place.database.parent)
    place.database.parent.mkdir()
    place.log.write_text("")
    place.start(EXAMPLE / "run.sh", command)
    wait_for(lambda: bool(place.acknowledged()))
    with sqlite3.connect(place.database) as db:
        assert rows <= {row for (row,) in db.execute("SELECT id FROM orders")}
