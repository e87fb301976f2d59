"""Servers for tests: the stand-in for an rqlite cluster, and a real libSQL server where `SQLD` names its program."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from urllib.request import Request, urlopen

from flatwater import blocking

ROOT = Path(__file__).parents[2]
SQLD = os.environ.get("SQLD")


class Cluster:
    """Three nodes, and what controls them."""

    def __init__(self) -> None:
        command = ["cargo", "run", "--quiet", "-p", "rqlite-double"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        listens = json.loads(self.process.stdout.readline())
        self.control = listens["control"]
        self.address = f"rqlite://ada:secret@{','.join(listens['nodes'])}"

    def order(self, **order: object) -> dict[str, object]:
        """Gives an order, and returns what the cluster is at."""
        with urlopen(Request(f"http://{self.control}/", json.dumps(order).encode())) as answer:
            return json.load(answer)

    def close(self) -> None:
        """Ends it, and waits."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Sqld:
    """A libSQL server."""

    def __init__(self) -> None:
        assert SQLD is not None
        self.folder = Path(tempfile.mkdtemp(prefix="flatwater-sqld-"))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        listens = ["--http-listen-addr", f"127.0.0.1:{port}", "--db-path", str(self.folder / "db"), "--no-welcome"]
        # Its path may be one of the project's root.
        self.process = subprocess.Popen(
            [Path(SQLD).absolute(), *listens],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.address = f"libsql://127.0.0.1:{port}/?tls=0&timeout=60s"
        # It answers when it is there.
        blocking.connect(self.address).close()

    def close(self) -> None:
        """Ends it, and waits."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)
